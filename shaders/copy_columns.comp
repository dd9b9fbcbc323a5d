// copy_columns: some columns of each row of a matrix, to columns of another. Words are copied as they are.
//! kernel copy_columns
//! kernel copy_columns_128 THREADS=128
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = THREADS) in;
layout(push_constant) uniform Push {
  uint count; // words
  uint columns; // that are copied, of each row
  uint from_row; // words of a row
  uint from_column;
  uint to_row;
  uint to_column;
};

layout(binding = 0) readonly buffer B0 { uint x[]; };
layout(binding = 1) writeonly buffer B1 { uint y[]; };

void main() {
  uint i = group_index() * THREADS + gl_LocalInvocationIndex;
  if (i >= count) return;
  uint row = i / columns;
  uint column = i % columns;
  y[row * to_row + to_column + column] = x[row * from_row + from_column + column];
}
