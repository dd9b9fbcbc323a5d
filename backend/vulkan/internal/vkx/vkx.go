//go:build cgo

// Package vkx holds the Vulkan calls that the 1.0 binding github.com/vulkan-go/vulkan cannot make, or cannot make
// safely: every wrapper of it that takes a slice of structs leaves the C copy of that slice to a finalizer, so
// the garbage collector may free it during the call. vkx owns the loader, the function tables, every call that takes
// arrays and every call newer than Vulkan 1.0; a whole command buffer is a flat array of [Command] that one call
// records. Types, constants and handles are the binding's.
//
// # Ownership and threads
//
// An [Instance] and a [Device] are closed by who made them; using one after Close crashes. As in Vulkan itself, the caller
// keeps calls on one queue or command buffer apart; pipelines may be created from several goroutines.
package vkx

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "vkx.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// handles are 64-bit everywhere in this package.
const _ = uint(unsafe.Sizeof(uintptr(0)) - 8)

// u64 gives the bits of a non-dispatchable handle.
func u64[H any](h H) C.VkxHandle { return *(*C.VkxHandle)(unsafe.Pointer(&h)) }

// handle is the reverse of u64.
func handle[H any](bits C.VkxHandle) H { return *(*H)(unsafe.Pointer(&bits)) }

// dispatchable gives the pointer that an instance, physical device, device, queue or command buffer is.
func dispatchable[H any](h H) C.VkxDispatchable { return *(*C.VkxDispatchable)(unsafe.Pointer(&h)) }

// Result is a VkResult that is not VK_SUCCESS, as an error.
type Result struct {
	Call string // the Vulkan function that gave it
	Code vk.Result
}

// Error gives the function and the result's name.
func (r *Result) Error() string { return r.Call + ": " + resultName(r.Code) }

// Check makes an error of a result; nil for VK_SUCCESS.
func Check(call string, code vk.Result) error {
	if code == vk.Success {
		return nil
	}
	return &Result{Call: call, Code: code}
}

// Code gives the VkResult in an error's chain, or VK_SUCCESS if there is none.
func Code(err error) vk.Result {
	var r *Result
	if errors.As(err, &r) {
		return r.Code
	}
	return vk.Success
}

func resultName(code vk.Result) string {
	names := map[vk.Result]string{
		vk.NotReady:                  "not ready",
		vk.Timeout:                   "timeout",
		vk.Incomplete:                "incomplete",
		vk.ErrorOutOfHostMemory:      "out of host memory",
		vk.ErrorOutOfDeviceMemory:    "out of device memory",
		vk.ErrorInitializationFailed: "initialization failed",
		vk.ErrorDeviceLost:           "device lost",
		vk.ErrorMemoryMapFailed:      "memory map failed",
		vk.ErrorLayerNotPresent:      "layer not present",
		vk.ErrorExtensionNotPresent:  "extension not present",
		vk.ErrorFeatureNotPresent:    "feature not present",
		vk.ErrorIncompatibleDriver:   "no Vulkan driver is installed, or none is compatible",
		vk.ErrorTooManyObjects:       "too many objects",
		vk.ErrorFragmentedPool:       "fragmented pool",
		vk.ErrorValidationFailed:     "validation failed",
		vk.ErrorInvalidShaderNv:      "invalid shader",
		vk.ErrorSurfaceLost:          "surface lost",
		vk.ErrorNativeWindowInUse:    "the native window is in use",
		vk.Suboptimal:                "suboptimal",
		vk.ErrorOutOfDate:            "out of date",
		vk.Result(-13):               "unknown error",
		vk.Result(-1000069000):       "out of pool memory",
	}
	if name, ok := names[code]; ok {
		return name
	}
	return fmt.Sprintf("VkResult %d", code)
}

// LibraryNames are the loaders that Load tries, in order.
func LibraryNames() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"vulkan-1.dll"}
	case "darwin":
		return []string{
			"libvulkan.1.dylib", "libMoltenVK.dylib",
			"/opt/homebrew/lib/libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib",
			"/opt/homebrew/lib/libMoltenVK.dylib", "/usr/local/lib/libMoltenVK.dylib",
		}
	default:
		return []string{"libvulkan.so.1", "libvulkan.so"}
	}
}

var loaded struct {
	sync.Mutex
	done bool
}

// Load opens the Vulkan loader, once a process, and hands it to the binding too. An error names each library that was
// tried and why it failed; a later call tries again.
func Load(names ...string) error {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.done {
		return nil
	}
	var failures []error
	for _, name := range names {
		cname := C.CString(name)
		var reason [256]C.char
		ok := C.vkx_load(cname, &reason[0], C.size_t(len(reason))) == 0
		C.free(unsafe.Pointer(cname))
		if !ok {
			failures = append(failures, fmt.Errorf("%s: %s", name, C.GoString(&reason[0])))
			continue
		}
		vk.SetGetInstanceProcAddr(C.vkx_get_instance_proc_addr())
		if err := vk.Init(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		loaded.done = true
		return nil
	}
	return errors.Join(failures...)
}

type (
	cCount  = C.uint32_t
	cResult = C.VkxResult
	cHandle = C.VkxHandle
)

// enumerate runs the usual pair of calls: one for the count, one for the elements, and again while the list grows.
func enumerate[T any](call string, f func(count *cCount, out *T) cResult) ([]T, error) {
	for {
		var n cCount
		if r := vk.Result(f(&n, nil)); r != vk.Success {
			return nil, Check(call, r)
		}
		if n == 0 {
			return nil, nil
		}
		out := make([]T, n)
		switch r := vk.Result(f(&n, &out[0])); r {
		case vk.Success:
			return out[:n], nil
		case vk.Incomplete:
		default:
			return nil, Check(call, r)
		}
	}
}

// text reads a fixed-size C string.
func text(s []C.char) string {
	b := make([]byte, 0, len(s))
	for _, c := range s {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// cStrings is an array of C strings in C memory.
type cStrings struct {
	array **C.char
	n     C.uint32_t
}

func newCStrings(s []string) cStrings {
	if len(s) == 0 {
		return cStrings{}
	}
	array := (**C.char)(C.calloc(C.size_t(len(s)), C.size_t(unsafe.Sizeof(uintptr(0)))))
	for i, p := range s {
		unsafe.Slice(array, len(s))[i] = C.CString(p)
	}
	return cStrings{array, C.uint32_t(len(s))}
}

func (s cStrings) free() {
	if s.array == nil {
		return
	}
	for _, p := range unsafe.Slice(s.array, s.n) {
		C.free(unsafe.Pointer(p))
	}
	C.free(unsafe.Pointer(s.array))
}

func cBool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// at gives string k.
func at(s cStrings, k int) *C.char { return unsafe.Slice(s.array, s.n)[k] }

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }
