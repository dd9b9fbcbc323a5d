#!/bin/sh
# Installs what vktrain's tests need and the machine lacks, says so, and installs nothing else:
# a C compiler, the Vulkan loader, a Vulkan driver (a software one where there is no GPU driver),
# the validation layers and the shader tools. Debian, Ubuntu, Fedora, macOS with Homebrew.
set -eu

say() { printf 'setup: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# as_root runs a command as root, and says what to run by hand where that can't be.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		sudo "$@"
	else
		say "not root, and sudo can't be used: run this yourself, then try again:"
		say "  $*"
		return 1
	fi
}

have_loader() {
	for dir in /usr/lib /usr/lib64 /usr/local/lib /usr/lib/*-linux-gnu; do
		[ -e "$dir/libvulkan.so.1" ] && return 0
	done
	return 1
}

have_driver() {
	[ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && return 0
	for f in /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json; do
		[ -e "$f" ] && return 0
	done
	return 1
}

have_layers() {
	for f in /usr/share/vulkan/explicit_layer.d/*validation*.json /etc/vulkan/explicit_layer.d/*validation*.json; do
		[ -e "$f" ] && return 0
	done
	return 1
}

# wanted lists packages for what is missing: wanted COMPILER LOADER DRIVER LAYERS GLSLANG SPIRV_TOOLS SPIRV_CROSS
wanted() {
	have cc || have gcc || have clang || echo "$1"
	have_loader || echo "$2"
	have_driver || echo "$3"
	have_layers || echo "$4"
	have glslangValidator || echo "$5"
	have spirv-val || echo "$6"
	have spirv-cross || echo "$7"
}

install() { # install LIST COMMAND...
	list=$1
	shift
	if [ -z "$list" ]; then
		say "nothing to install"
		return 0
	fi
	say "installing: $list"
	# shellcheck disable=SC2086
	as_root "$@" $list >/dev/null
}

have go || {
	say "Go is missing: install Go 1.26 or newer (https://go.dev/dl), then try again"
	exit 1
}

case $(uname -s) in
Darwin)
	have brew || {
		say "Homebrew is missing: install it (https://brew.sh), or train on the CPU with CGO_ENABLED=0"
		exit 1
	}
	list=
	for p in molten-vk vulkan-loader vulkan-validationlayers glslang spirv-tools spirv-cross; do
		brew list "$p" >/dev/null 2>&1 || list="$list $p"
	done
	if [ -n "$list" ]; then
		say "installing with Homebrew:$list"
		# shellcheck disable=SC2086
		brew install $list
	fi
	;;
Linux)
	if have apt-get; then
		list=$(wanted "gcc libc6-dev" libvulkan1 mesa-vulkan-drivers vulkan-validationlayers glslang-tools spirv-tools spirv-cross | tr '\n' ' ')
		[ -z "$list" ] || as_root apt-get update -qq
		install "$list" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends
	elif have dnf; then
		list=$(wanted gcc vulkan-loader mesa-vulkan-drivers vulkan-validation-layers glslang spirv-tools spirv-cross | tr '\n' ' ')
		install "$list" dnf install -y -q --skip-unavailable
	else
		say "no apt-get or dnf here: install a C compiler, the Vulkan loader and a Vulkan driver yourself (Mesa's lavapipe will do)"
	fi
	;;
*)
	say "no set-up for $(uname -s): install a C compiler and a Vulkan driver yourself"
	;;
esac
