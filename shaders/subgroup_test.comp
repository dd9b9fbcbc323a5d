// subgroup_test: what a device's subgroup operations give, for the host to compare with what they must. Each thread writes who it is and then results
// of the operations, of values that the host can compute from that.
//! kernel subgroup_test_vote OP=1
//! kernel subgroup_test_arithmetic OP=2
//! kernel subgroup_test_ballot OP=3
//! kernel subgroup_test_shuffle OP=4
//! kernel subgroup_test_clustered OP=5
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#if OP == 1
#extension GL_KHR_shader_subgroup_vote : require
#elif OP == 2
#extension GL_KHR_shader_subgroup_arithmetic : require
#elif OP == 3
#extension GL_KHR_shader_subgroup_ballot : require
#elif OP == 4
#extension GL_KHR_shader_subgroup_shuffle : require
#elif OP == 5
#extension GL_KHR_shader_subgroup_clustered : require
#endif
#undef THREADS
#define THREADS 128
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push { uint seed; };
layout(binding = 0) writeonly buffer B0 { uint y[]; };

const uint SLOTS = 16; // words a thread

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint x = ((i + seed) * 2654435761u) >> 20; // 12 bits
  uint lane = gl_SubgroupInvocationID;
  uint at = i * SLOTS;
  y[at] = gl_SubgroupID;
  y[at + 1] = lane;
  y[at + 2] = gl_SubgroupSize;
  at += 3;
#if OP == 1
  y[at] = uint(subgroupAll(x < 4096u));
  y[at + 1] = uint(subgroupAll(x % 8u != 0u));
  y[at + 2] = uint(subgroupAny(x % 8u == 0u));
  y[at + 3] = uint(subgroupAny(x >= 4096u));
  y[at + 4] = uint(subgroupAllEqual(x));
  y[at + 5] = uint(subgroupAllEqual(gl_WorkGroupID.x + seed));
#elif OP == 2
  float f = float(x) - 2048.0;
  y[at] = subgroupAdd(x);
  y[at + 1] = subgroupMax(x);
  y[at + 2] = subgroupMin(x);
  y[at + 3] = uint(int(subgroupAdd(f)));
  y[at + 4] = uint(int(subgroupMax(f)));
  y[at + 5] = uint(int(subgroupMin(f)));
  y[at + 6] = subgroupOr(x);
  y[at + 7] = subgroupInclusiveAdd(x);
  y[at + 8] = subgroupExclusiveAdd(x);
#elif OP == 3
  uvec4 ballot = subgroupBallot((x & 1u) != 0u);
  y[at] = ballot.x;
  y[at + 1] = ballot.y;
  y[at + 2] = ballot.z;
  y[at + 3] = ballot.w;
  y[at + 4] = subgroupBroadcast(x, 0u);
  y[at + 5] = subgroupBroadcast(x, 3u);
  y[at + 6] = subgroupBroadcastFirst(x);
  y[at + 7] = uint(int(subgroupBroadcast(float(x) - 2048.0, 2u)));
  y[at + 8] = subgroupBallotBitCount(ballot);
#elif OP == 4
  y[at] = subgroupShuffle(x, (lane + 1u) % gl_SubgroupSize);
  y[at + 1] = subgroupShuffle(x, gl_SubgroupSize - 1u - lane);
  y[at + 2] = subgroupShuffleXor(x, 1u);
  y[at + 3] = subgroupShuffleXor(x, 2u);
  y[at + 4] = subgroupShuffleXor(x, gl_SubgroupSize / 2u);
#elif OP == 5
  y[at] = subgroupClusteredAdd(x, 4u); // Metal has clusters of 4 alone
  y[at + 1] = subgroupClusteredMax(x, 4u);
  y[at + 2] = uint(int(subgroupClusteredAdd(float(x) - 2048.0, 4u)));
#endif
}
