"""NumPy kernels of the scatter family: what the documents say, in time that memory traffic takes.

Every layout turns its indices into *targets*: numbers of rows of the output, seen as a matrix of
`rows` by `width`. Blocks of targets are then written or reduced. What holds for all:

- With reduction none the last update in row-major order of the indices is the value: NumPy documents
  that of repeated indices in an assignment the last one counts, and blocks are taken in order.
- With a reduction the updates of a target are applied one after the other in row-major order.
- Integers wrap in their own type. The mean of integers is rounded towards minus infinity and its sum
  does not wrap. On boolean data sum and max are OR, prod and min are AND, sub is XOR.
- f64, f32, complex types and integers of 8 bits and more are reduced in their own type. Where the
  documents are silent about narrower floating-point types (f16, bf16, f8, f6, f4), they are reduced in
  f64 and rounded once, to nearest even, after the last update; so is the mean of f32. f8e8m0, which
  holds powers of two only, rounds the middle up. A value that is too great for the type becomes what
  ml_dtypes makes of it.
- The mean counts the old value where that takes part: (old + updates) / (hits + 1).
- min and max propagate NaN; of two zeros of different sign they give either.
- An element that no update hits keeps its bits, -0.0 included.
"""
