// Package cpu runs programs on the processor, without cgo.
//
// A program is compiled to a list of closures over slices of one arena; a pool of workers shares each of them out. Which elements
// a task computes depends on shapes alone and tasks never share a sum, so the bits are the same for any number of workers.
//
// One goroutine runs the submissions of all executables in order, so Submit does not wait, and reads and writes of stores queue up behind
// what was submitted before them. A kernel that panics gives an error at Fetch.
//
// Kernels take checked shapes from package graph and do not check them again.
package cpu
