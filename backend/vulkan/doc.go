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
// # Lesser devices
//
// Every kernel has a variant for workgroups of 128 threads with 16 KiB of shared memory, the least that Vulkan allows, and needs no subgroup
// operations and no 16-bit types. Options.Limits, or the environment variable VKTRAIN_LIMITS, makes any device look like a lesser one. What
// drivers are known to say wrongly is corrected in one table (quirks.go).
//
// # Submissions
//
// A program is cut into submissions of at most Options.SubmitLimit by estimates, and cut anew after its second run where those were wrong. The
// last command of each submission leaves the run's number for the host: one that is missing counts as a lost device.
//
// # Errors
//
// Every result is checked. A *DeviceLostError names the nodes that ran; after it the backend can only be closed. With validation on, what
// the layer reports is returned by the call in which it spoke, as a *ValidationError.
//
// Built without cgo, the package has no Vulkan: Open and Devices say so.
package vulkan
