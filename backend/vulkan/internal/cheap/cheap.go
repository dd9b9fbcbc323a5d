//go:build cgo

// Package cheap tells how much memory C code holds: the binding, the loader and the driver. It is for tests that look for leaks. The
// process's resident memory is no use to them: it wavers by megabytes with what the allocator keeps and the kernel takes back.
package cheap

/*
#include <stdlib.h>

#if defined(__APPLE__)
#include <malloc/malloc.h>
static long long in_use(void) {
	malloc_statistics_t s;
	malloc_zone_statistics(NULL, &s);
	return (long long)s.size_in_use;
}
#elif defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#include <malloc.h>
static long long in_use(void) {
	struct mallinfo2 m = mallinfo2();
	return (long long)(m.uordblks + m.hblkhd);
}
#else
static long long in_use(void) { return -1; }
#endif
*/
import "C"

// InUse is the bytes that C code has allocated and not freed. ok is false where the C library does not tell.
func InUse() (bytes int, ok bool) {
	n := int(C.in_use())
	return n, n >= 0
}
