// The table of a dispatch over many tensors: rows of ROW words, the first of which is the number of the tensor's first workgroup.
layout(push_constant) uniform Push {
  uint tensors;
};

// The start in the table of the row that a workgroup belongs to.
uint row_of(uint group) {
  uint low = 0;
  uint high = tensors; // the tensor is in low..high-1
  while (high - low > 1) {
    uint middle = (low + high) / 2;
    if (table[middle * ROW] <= group) low = middle;
    else high = middle;
  }
  return low * ROW;
}
