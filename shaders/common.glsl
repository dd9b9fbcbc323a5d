// What every kernel shares. Floor: Vulkan 1.1, 32-bit types, and in some variant of each kernel 128 threads and 16 KiB of shared memory.
#extension GL_EXT_control_flow_attributes : require

// Threads of a group, where a kernel has no number of its own: 256, and 128 in the variant for devices that allow no more.
#ifndef THREADS
#define THREADS 256
#endif

// A dispatch may need more groups than one dimension has: they are numbered over x and y, and those past the last have no work.
uint group_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

const float LOWEST = -3.4028234e38; // the most negative float: a maximum starts here, so that no -inf is computed with

// Integer tests: a driver that assumes finite math may drop those on floats.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
