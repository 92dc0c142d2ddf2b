"""NumPy kernels of the scatter operators: results as specified, at the speed of memory traffic.

Every layout converts its indices to *targets*: row numbers of the output, which is viewed as a matrix of
`rows` by `width`. Blocks of updates are then written or reduced to their targets. For all layouts:

- With reduction none the last update in row-major order of the indices is the value. NumPy guarantees that
  the last of repeated indices counts in an assignment, and blocks are processed in order.
- With a reduction the updates of a target are applied sequentially in row-major order.
- Integers wrap in their own type. The mean of integers is rounded towards minus infinity, and its sum does
  not wrap. On boolean data sum and max are OR, prod and min are AND, sub is XOR.
- f64, f32, complex types and integers of 8 bits and more are reduced in their own type. For narrower
  floating-point types (f16, bf16, f8, f6, f4) the specifications do not say how: here in f64, with one
  rounding to nearest even after the last update; the mean of f32 likewise. f8e8m0, which has powers of two
  only, rounds ties up. For a value that is too large for the type, ml_dtypes decides the result.
- The mean includes the old value if the reduction does: (old + updates) / (hits + 1).
- min and max propagate NaN; of two zeros of different sign they return either.
- An element without an update keeps its bits, including -0.0.
"""
