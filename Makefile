# make test   sets the machine up (and says what it installs), then runs every test; no Vulkan driver is a failure
# make build  builds ./vktrain
# make lint   gofmt, go vet, staticcheck
# make lint-window  the same of what is built with -tags window alone, which needs the headers of X11 and OpenGL
# make shaders  compiles the GLSL and rewrites the manifest

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Homebrew's libraries are not on the linker's path.
ifeq ($(shell uname -s),Darwin)
export CGO_LDFLAGS += -L$(shell brew --prefix)/lib
endif

.PHONY: build setup test lint lint-window shaders clean

build:
	go build -o vktrain ./cmd/vktrain

setup:
	@./tools/setup.sh

# -p 1: the drivers that run on the CPU take all its cores by themselves.
test: setup
	VKTRAIN_REQUIRE_VULKAN=1 go test -p 1 -timeout 30m ./...

lint:
	@files=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "not gofmted: $$files"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

lint-window:
	go vet -tags window ./report/window ./cmd/vktrain
	go run $(STATICCHECK) -tags window ./report/window ./cmd/vktrain

shaders:
	go run ./tools/spirv

clean:
	rm -f vktrain
