//go:build cgo

package cheap

// #include <stdlib.h>
import "C"

// allocate is here and not in the test, where cgo can't be used.
func allocate(size int) (free func()) {
	p := C.malloc(C.size_t(size))
	return func() { C.free(p) }
}
