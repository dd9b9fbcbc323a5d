// Package vulkan runs programs on GPUs with Vulkan compute shaders.
//
// Vulkan 1.1 and a compute queue are enough; everything else is used where a device has it. Programs are compiled once: every tensor gets
// its place, every kernel its pipeline and descriptor set, and the whole step is recorded into command buffers that are submitted again and
// again. Nothing in a step waits for the host.
//
// # Memory
//
// All buffers are parts of a few large blocks. What a program or store needs is known and compared with what the device has before anything
// is allocated; if it does not fit, the error is a *MemoryError. Variables live in device memory. Inputs and outputs have two slots each in
// memory that the host sees, so that feeding and reading overlap execution; a device that shares the host's memory reads its inputs where
// the host writes them.
//
// # Errors
//
// Every result is checked. A *DeviceLostError names the nodes that ran; after it the backend can only be closed. With validation on, what
// the layer reports is returned by the call in which it spoke, as a *ValidationError.
//
// Built without cgo, the package has no Vulkan: Open and Devices say so.
package vulkan
