"""Plain operators of OpenVINO's opsets, one row each."""

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

_BROADCASTS = ("auto_broadcast",)
_SUMS = ("exclusive", "reverse")
_SKIPS = ("allow_axis_skip", "pytorch_dynamic_rank")
_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")

ROWS = (
    PlainOp("Identity", conversion.identity),
    PlainOp("Convert", conversion.convert, ("destination_type",)),
    PlainOp("ConvertLike", conversion.convert_like),
    PlainOp("Reshape", layout.openvino_reshape, ("special_zero",)),
    PlainOp("Squeeze", layout.openvino_squeeze, _SKIPS),
    PlainOp("Unsqueeze", layout.openvino_unsqueeze),
    PlainOp("Transpose", layout.openvino_transpose),
    PlainOp("Broadcast", repetition.broadcast, ("mode",)),
    PlainOp("Tile", repetition.openvino_tile),
    PlainOp("Concat", partition.concat, ("axis",)),
    PlainOp("Split", partition.openvino_split, ("num_splits",)),
    PlainOp("VariadicSplit", partition.variadic_split),
    PlainOp("ShapeOf", generation.shape_of, ("output_type",)),
    PlainOp("Gather", selection.openvino_gather, ("batch_dims",)),
    PlainOp("GatherND", selection.openvino_gather_nd, ("batch_dims",)),
    PlainOp("GatherElements", selection.openvino_gather_elements, ("axis",)),
    PlainOp("Slice", slicing.openvino_slice),
    PlainOp("StridedSlice", slicing.strided_slice, _MASKS),
    PlainOp("Range", generation.openvino_range, ("output_type",)),
    PlainOp("NonZero", generation.non_zero, ("output_type",)),
    PlainOp("Add", arithmetic.binary(np.add), _BROADCASTS),
    PlainOp("Subtract", arithmetic.binary(np.subtract), _BROADCASTS),
    PlainOp("Multiply", arithmetic.binary(np.multiply), _BROADCASTS),
    PlainOp("Divide", arithmetic.openvino_divide, ("m_pythondiv", *_BROADCASTS)),
    PlainOp("Mod", arithmetic.binary(arithmetic.truncate_mod), _BROADCASTS),
    PlainOp("FloorMod", arithmetic.binary(arithmetic.floor_mod), _BROADCASTS),
    PlainOp("Power", arithmetic.power, _BROADCASTS),
    PlainOp("Minimum", arithmetic.binary(np.minimum), _BROADCASTS),
    PlainOp("Maximum", arithmetic.binary(np.maximum), _BROADCASTS),
    PlainOp("Abs", arithmetic.unary(np.abs)),
    PlainOp("Negative", arithmetic.unary(np.negative)),
    PlainOp("Floor", arithmetic.unary(arithmetic.floor)),
    PlainOp("Ceiling", arithmetic.unary(arithmetic.ceiling)),
    PlainOp("Sqrt", arithmetic.unary(arithmetic.square_root)),
    PlainOp("ReLU", arithmetic.unary(arithmetic.relu)),
    PlainOp("Select", logic.select, _BROADCASTS),
    PlainOp("Less", logic.comparison(np.less), _BROADCASTS),
    PlainOp("LessEqual", logic.comparison(np.less_equal), _BROADCASTS),
    PlainOp("Greater", logic.comparison(np.greater), _BROADCASTS),
    PlainOp("GreaterEqual", logic.comparison(np.greater_equal), _BROADCASTS),
    PlainOp("Equal", logic.comparison(np.equal), _BROADCASTS),
    PlainOp("NotEqual", logic.comparison(np.not_equal), _BROADCASTS),
    PlainOp("LogicalAnd", logic.logical(np.logical_and), _BROADCASTS),
    PlainOp("LogicalOr", logic.logical(np.logical_or), _BROADCASTS),
    PlainOp("LogicalXor", logic.logical(np.logical_xor), _BROADCASTS),
    PlainOp("LogicalNot", logic.logical_not),
    PlainOp("CumSum", reduction.openvino_cumulative_sum, _SUMS),
    PlainOp("ReduceSum", reduction.openvino_reduce(np.add), ("keep_dims",)),
    PlainOp("ReduceProd", reduction.openvino_reduce(np.multiply), ("keep_dims",)),
    PlainOp("ReduceMax", reduction.openvino_reduce(np.maximum), ("keep_dims",)),
    PlainOp("ReduceMin", reduction.openvino_reduce(np.minimum), ("keep_dims",)),
)
