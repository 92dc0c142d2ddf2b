"""Plain operators of ONNX's main domain, one row each."""

import numpy as np

from ir_scatter.ops.plain import (
    arithmetic,
    conversion,
    generation,
    layout,
    logic,
    partition,
    reduction,
    repetition,
    selection,
    slicing,
)
from ir_scatter.ops.plain.plain_op import PlainOp

_ROUNDING = ("saturate", "round_mode")
_SUMS = ("exclusive", "reverse")
_AXES = ("axes", "keepdims", "noop_with_empty_axes")

ROWS = (
    PlainOp("Identity", conversion.identity),
    PlainOp("Cast", conversion.cast, ("to", *_ROUNDING)),
    PlainOp("CastLike", conversion.cast_like, _ROUNDING),
    PlainOp("Reshape", layout.onnx_reshape, ("allowzero", "shape")),
    PlainOp("Flatten", layout.flatten, ("axis",)),
    PlainOp("Squeeze", layout.onnx_squeeze, ("axes",)),
    PlainOp("Unsqueeze", layout.onnx_unsqueeze, ("axes",)),
    PlainOp("Transpose", layout.onnx_transpose, ("perm",)),
    PlainOp("Expand", repetition.expand),
    PlainOp("Tile", repetition.onnx_tile),
    PlainOp("ConstantOfShape", repetition.constant_of_shape, ("value",)),
    PlainOp("Concat", partition.concat, ("axis",)),
    PlainOp("Split", partition.onnx_split, ("axis", "split", "num_outputs")),
    PlainOp("Shape", generation.shape, ("start", "end")),
    PlainOp("Size", generation.size),
    PlainOp("Gather", selection.onnx_gather, ("axis",)),
    PlainOp("GatherND", selection.onnx_gather_nd, ("batch_dims",)),
    PlainOp("GatherElements", selection.onnx_gather_elements, ("axis",)),
    PlainOp("Slice", slicing.onnx_slice, ("starts", "ends", "axes")),
    PlainOp("Range", generation.onnx_range, ("stash_type",)),
    PlainOp("NonZero", generation.non_zero),
    PlainOp("Add", arithmetic.binary(np.add)),
    PlainOp("Sub", arithmetic.binary(np.subtract)),
    PlainOp("Mul", arithmetic.binary(np.multiply)),
    PlainOp("Div", arithmetic.binary(arithmetic.truncate_divide)),
    PlainOp("Mod", arithmetic.onnx_mod, ("fmod",)),
    PlainOp("Pow", arithmetic.power),
    PlainOp("Min", arithmetic.variadic(np.minimum)),
    PlainOp("Max", arithmetic.variadic(np.maximum)),
    PlainOp("Abs", arithmetic.unary(np.abs)),
    PlainOp("Neg", arithmetic.unary(np.negative)),
    PlainOp("Floor", arithmetic.unary(arithmetic.floor)),
    PlainOp("Ceil", arithmetic.unary(arithmetic.ceiling)),
    PlainOp("Sqrt", arithmetic.unary(arithmetic.square_root)),
    PlainOp("Relu", arithmetic.unary(arithmetic.relu)),
    PlainOp("Where", logic.where),
    PlainOp("Less", logic.comparison(np.less)),
    PlainOp("LessOrEqual", logic.comparison(np.less_equal)),
    PlainOp("Greater", logic.comparison(np.greater)),
    PlainOp("GreaterOrEqual", logic.comparison(np.greater_equal)),
    PlainOp("Equal", logic.comparison(np.equal)),
    PlainOp("And", logic.logical(np.logical_and)),
    PlainOp("Or", logic.logical(np.logical_or)),
    PlainOp("Xor", logic.logical(np.logical_xor)),
    PlainOp("Not", logic.logical_not),
    PlainOp("CumSum", reduction.onnx_cumulative_sum, _SUMS),
    PlainOp("ReduceSum", reduction.onnx_reduce(np.add), _AXES),
    PlainOp("ReduceProd", reduction.onnx_reduce(np.multiply), _AXES),
    PlainOp("ReduceMax", reduction.onnx_reduce(np.maximum), _AXES),
    PlainOp("ReduceMin", reduction.onnx_reduce(np.minimum), _AXES),
)
