// Package shaders has the compute kernels: GLSL sources, and beside them the SPIR-V that tools/spirv compiled and that is embedded here
// with a description of each kernel. It knows nothing of Vulkan's API.
//
// Every kernel runs on the least Vulkan 1.1 device: at most 256 threads, 32 KiB of shared memory, 128 bytes of push constants,
// storage buffers in set 0 alone, 32-bit types, no atomics on floats. Those that need more say so by their capabilities.
package shaders

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/vktrain/vktrain/shaders/manifest"
)

//go:generate go run ../tools/spirv -dir .

//go:embed manifest.json spv/*.spv
var files embed.FS

// Kernel is a compiled compute shader and what it expects.
type Kernel = manifest.Kernel

// load reads the embedded manifest; what is wrong there is a mistake of the build, not of the user.
var load = sync.OnceValue(func() map[string]Kernel {
	data, err := files.ReadFile("manifest.json")
	if err != nil {
		panic("shaders: " + err.Error())
	}
	var m manifest.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		panic("shaders: manifest.json: " + err.Error())
	}
	kernels := make(map[string]Kernel, len(m.Kernels))
	for _, k := range m.Kernels {
		if k.SPIRV, err = files.ReadFile("spv/" + k.Name + ".spv"); err != nil {
			panic(fmt.Sprintf("shaders: kernel %s: %v", k.Name, err))
		}
		kernels[k.Name] = k
	}
	return kernels
})

// Lookup finds a kernel by name. Its slices must not be modified.
func Lookup(name string) (Kernel, bool) {
	k, ok := load()[name]
	return k, ok
}

// All lists the kernels by name.
func All() []Kernel {
	byName := load()
	all := make([]Kernel, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}
