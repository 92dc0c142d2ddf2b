"""How general operators round, and how their outputs may jump after a small change of an input.

    rounds(op)      MatMul: True      Relu, Gather: False: their outputs are elements of inputs, or 0
    jump_of(op)     Greater: Jump.COMPARISON      Round: Jump.STEP      TopK: Jump.ORDER

This module does not import NumPy. An operator that is not listed here rounds, and does not jump.
"""

from enum import Enum

from ir_scatter.core.model import OPENVINO
from ir_scatter.ops.general import GeneralOp


class Jump(Enum):
    """How an output jumps if a floating-point input changes by a rounding error."""

    COMPARISON = "two inputs are compared, element by element"
    STEP = "an element becomes another whole number, or another level"
    ORDER = "elements are sorted, and positions change"
    SELECTION = "elements are selected, and others may be selected"


_COMPARISON = "Less LessEqual LessOrEqual Greater GreaterEqual GreaterOrEqual Equal NotEqual"
_STEP = (
    "Floor Ceiling Ceil Round Sign Convert ConvertLike Cast CastLike Mod FloorMod QuantizeLinear "
    "DynamicQuantizeLinear FakeQuantize FakeConvert QLinearMatMul QLinearConv QLinearAdd QLinearMul "
    "QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QLinearReduceMean QLinearGlobalAveragePool "
    "QLinearAveragePool QLinearWhere QLinearConcat QGemm DynamicQuantizeMatMul Bucketize SearchSorted "
    "Shrink ThresholdedRelu Hardmax"
)
_ORDER = "TopK ArgMax ArgMin"
_SCORES = {
    "MulticlassNms": 1, "MatrixNms": 1, "DetectionOutput": 1, "Proposal": 0, "GenerateProposals": 3,
    "CTCGreedyDecoder": 0, "CTCGreedyDecoderSeqLen": 0,
}  # fmt: skip
"""Operators that choose by scores, with the input that holds them."""

_SELECTION = f"NonZero Unique NonMaxSuppression {' '.join(_SCORES)}"
_QUANTIZING = {
    type: port
    for port, types in {
        0: "FakeQuantize QLinearConcat",
        1: "QuantizeLinear",
        3: "QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QLinearReduceMean QLinearGlobalAveragePool "
        "QLinearAveragePool",
        6: "QLinearMatMul QLinearConv QLinearAdd QLinearMul",
        7: "QLinearWhere QGemm",
    }.items()
    for type in types.split()
}
"""Operators that round a quotient to whole numbers, with the input that divides, or is divided.

Runtimes round the quotient itself in other places, so that a near tie falls to either side even if all
inputs are exact."""
_JUMPS = {
    type: jump
    for types, jump in (
        (_COMPARISON, Jump.COMPARISON),
        (_STEP, Jump.STEP),
        (_ORDER, Jump.ORDER),
        (_SELECTION, Jump.SELECTION),
    )
    for type in types.split()
}

_RECTIFIERS = "PReLU PRelu LeakyRelu"
_CONVERSIONS = "Convert ConvertLike Cast CastLike"
_EXACT = (
    "Abs Negative Neg Sign Floor Ceiling Ceil Round ReLU Relu Minimum Min Maximum Max Clamp Clip ReduceMax "
    "ReduceMin MaxPool GlobalMaxPool AdaptiveMaxPool MaxUnpool TopK ArgMax ArgMin Hardmax Dropout Pad "
    "Reverse ReverseSequence Roll Trilu OneHot EyeLike Eye SpaceToDepth DepthToSpace SpaceToBatch "
    "BatchToSpace ShuffleChannels CenterCropPad Compress Unique GatherTree ReadValue Assign SliceScatter "
    "ExtractImagePatches"
)
"""Operators whose outputs are elements of inputs, or constants."""

_BASIC = f"Add Subtract Sub Multiply Mul {_RECTIFIERS} {_CONVERSIONS}"
"""Operators with correct rounding: an exact result if the element type has it, else the nearest number."""

_EXACT_TYPES, _BASIC_TYPES = frozenset(_EXACT.split()), frozenset(_BASIC.split())


def rounds(op: GeneralOp) -> bool:
    """Return whether elements of floating-point outputs may be rounded."""
    is_moving = op.moves is None or (bool(op.moves) and not is_basic(op))
    return not is_moving and not _types_of(op) & _EXACT_TYPES


def is_basic(op: GeneralOp) -> bool:
    """Return whether an output is exact if the element type can represent it."""
    return bool(_types_of(op) & _BASIC_TYPES)


def jump_of(op: GeneralOp) -> Jump | None:
    return next((_JUMPS[type] for type in _types_of(op) if type in _JUMPS), None)


def quotient_port(op: GeneralOp) -> int | None:
    """Return the input whose last bits decide about near ties of a quantising operator."""
    return next((_QUANTIZING[type] for type in _types_of(op) if type in _QUANTIZING), None)


def scores_port(op: GeneralOp) -> int | None:
    """Return the input that holds the scores by which an operator chooses boxes or classes."""
    return next((_SCORES[type] for type in _types_of(op) if type in _SCORES), None)


def _types_of(op: GeneralOp) -> set[str]:
    return {op.type_in(OPENVINO), op.type_in("")} - {""}
