"""What each version of ONNX's operators changed, from the documents of both versions.

`facts_of` gives what must be known to take a node from one version to the next, in either
direction. A version that is in neither table was not compared yet: nothing may be taken for granted.
"""

from ir_scatter.elements import FLOATS, onnx_types
from ir_scatter.ops.onnx_widened import WIDENED
from ir_scatter.ops.opset_conditions import (
    AttributeIs,
    HasOutputs,
    IsNegative,
    IsWritten,
    MayBeNegative,
    MayCross,
    MayHaveOtherRank,
    MayHaveType,
    MayStartOutside,
)
from ir_scatter.ops.opset_facts import (
    Added,
    Barrier,
    Coerced,
    Counted,
    Empty,
    Exclusive,
    Fact,
    Form,
    ForZeros,
    Listed,
    Misread,
    Moved,
    Redefined,
    Removed,
    Renamed,
    Sampled,
    Switch,
    Words,
    Wrapped,
)

FIRST_OPSET = 7
"""The oldest opset that the tables know: nothing was compared with the versions before it."""

_LOWEST = -3.4028234663852886e38
_FLOAT = onnx_types("float")
_UNSIGNED_FLOAT8 = onnx_types("float8e4m3fnuz", "float8e5m2fnuz")
_UNSIGNED_FLOAT8_NUMBERS = (18, 20)
_SAME = ("SAME_UPPER", "SAME_LOWER")

_AXES_INPUT = Moved("axes", 1, Form.LIST)
_REDUCED_AXES = Moved("axes", 1, Form.LIST, empty=Empty.ABSENT)
_NEGATIVE_AXIS = Barrier("a negative axis means nothing before", (IsNegative("axis"),), up=False)
_NEGATIVE_AXES = Barrier("negative axes mean nothing before", (IsNegative("axes"),), up=False)
_ONE_SCALE = Barrier("the older version takes one scale only", (MayHaveOtherRank(1, 0),), up=False)
_TIES = Barrier("the older version does not say which of equal values wins", up=False)
_CEILING = AttributeIs("ceil_mode", (1,), 0)
_RIGHT_PADDING = Barrier(
    "with ceil_mode, windows that start behind the input are left out since", (_CEILING, MayStartOutside())
)
_ONES = Added("dilations", 1, is_list_of_same=True)
_MASK = "an output of another type, or with another content"
_FLOAT8 = "infinity becomes the greatest number since, and was NaN before"
_SATURATES = AttributeIs("saturate", (1,), 1)
_COORDINATES = "coordinate_transformation_mode"
_ADD_MUL = {"none": "none", "add": "add", "mul": "mul"}
_MAX_MIN = {"max": "max", "min": "min"}
_REDUCTIONS = Words("reduction", up=_ADD_MUL | _MAX_MIN, down=_ADD_MUL)
_COORDINATES_11 = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


def _same_words(*words: str) -> dict[str, str]:
    return {word: word for word in words}


_COERCED = (Coerced(before=1, after=-1),)

CHANGES: dict[tuple[str, int], tuple[Fact, ...]] = {
    ("ArgMax", 11): (_NEGATIVE_AXIS,),
    ("ArgMax", 12): (_TIES,),
    ("ArgMin", 11): (_NEGATIVE_AXIS,),
    ("ArgMin", 12): (_TIES,),
    # The formulas for auto_pad of version 11 contradict the text of that attribute, which those of 10
    # and 19 agree with.
    ("AveragePool", 19): (
        _ONES,
        Barrier(
            "with ceil_mode and count_include_pad, the documents leave open what counts as padding",
            (_CEILING, AttributeIs("count_include_pad", (1,), 0)),
        ),
    ),
    ("AveragePool", 22): (_RIGHT_PADDING,),
    ("BatchNormalization", 9): (Removed("spatial", 1),),
    ("BatchNormalization", 14): (
        Barrier("the outputs of training are other ones", (HasOutputs(1),)),
    ),
    ("Cast", 13): (
        Barrier("the older version does not say what becomes of numbers out of range", up=False),
    ),
    ("Cast", 24): (
        Barrier(_FLOAT8, (AttributeIs("to", _UNSIGNED_FLOAT8_NUMBERS), _SATURATES)),
    ),
    ("CastLike", 24): (Barrier(_FLOAT8, (MayHaveType(1, _UNSIGNED_FLOAT8), _SATURATES)),),
    ("Clip", 11): (
        Moved("min", 1, Form.LIKE_DATA, absent=_LOWEST, default=_LOWEST, default_types=_FLOAT),
        Moved("max", 2, Form.LIKE_DATA, absent=-_LOWEST, default=-_LOWEST, default_types=_FLOAT),
    ),
    ("Clip", 13): (
        Barrier("the older version does not say what a min above max means", (MayCross(1, 2),), up=False),
    ),
    ("Compress", 11): (_NEGATIVE_AXIS,),
    ("Concat", 11): (_NEGATIVE_AXIS,),
    ("Constant", 12): (
        Listed(
            "value",
            (
                ("value_float", "f32"), ("value_floats", "f32"), ("value_int", "i64"),
                ("value_ints", "i64"), ("value_string", "string"), ("value_strings", "string"),
            ),
        ),
    ),
    ("ConvTranspose", 11): (
        Barrier("an odd number of padding is divided the other way", (AttributeIs("auto_pad", _SAME),)),
        Barrier("an odd number of padding is divided the other way", (IsWritten("output_shape"),)),
    ),
    ("DFT", 20): (Moved("axis", 2, Form.SCALAR, absent=1, default=-2),),
    ("DequantizeLinear", 13): (
        Added("axis", is_idle=True),
        _ONE_SCALE,
    ),
    ("Dropout", 10): (Redefined(1, _MASK),),
    ("Dropout", 12): (
        Redefined(1, _MASK),
        Moved("ratio", 1, Form.FLOAT, absent=0.5, default=0.5),
        Added("seed", is_idle=True),
        Switch(2, "the older version cannot be told to train"),
    ),
    ("Flatten", 11): (_NEGATIVE_AXIS,),
    ("Gather", 11): (
        Barrier("a negative index means nothing before", (MayBeNegative(1),), up=False),
    ),
    ("GridSample", 20): (
        Words(
            "mode",
            up={"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"},
            down={"linear": "bilinear", "cubic": "bicubic"},
        ),
        Barrier("the older version takes 4 dimensions only", (MayHaveOtherRank(0, 4),), up=False),
    ),
    ("GroupNormalization", 21): (
        Barrier("scale and bias have one number per channel since, and had one per group before"),
    ),
    ("Hardmax", 11): (_NEGATIVE_AXIS,),
    ("Hardmax", 13): _COERCED,
    ("LogSoftmax", 11): (_NEGATIVE_AXIS,),
    ("LogSoftmax", 13): _COERCED,
    ("LpPool", 18): (_ONES,),
    ("MaxPool", 10): (_ONES,),
    ("MaxPool", 22): (_RIGHT_PADDING,),
    ("Mod", 13): (
        Barrier("the older version leaves special cases of division open", up=False),
    ),
    ("Mod", 28): (
        Barrier(
            "the older version takes float numbers with fmod only",
            (AttributeIs("fmod", (0,), 0), MayHaveType(0, FLOATS)),
            up=False,
        ),
    ),
    ("NonMaxSuppression", 11): (
        Barrier("the older version does not say whether a box at the threshold stays", up=False),
    ),
    ("OneHot", 11): (Wrapped(), _NEGATIVE_AXIS),
    ("Pad", 11): (
        Moved("pads", 1, Form.LIST, empty=Empty.KEPT),
        Moved("value", 2, Form.LIKE_DATA, absent=0.0, default=0.0),
    ),
    ("Pad", 19): (
        Words(
            "mode",
            up=_same_words("constant", "reflect", "edge"),
            down=_same_words("constant", "reflect", "edge"),
        ),
    ),
    ("QuantizeLinear", 13): (
        Added("axis", is_idle=True),
        _ONE_SCALE,
    ),
    # The tables of Cast hold here too; whether those of this version or of the one before is not said.
    ("QuantizeLinear", 24): (
        Barrier(_FLOAT8, (MayHaveType(2, _UNSIGNED_FLOAT8), _SATURATES)),
        Barrier(_FLOAT8, (AttributeIs("output_dtype", _UNSIGNED_FLOAT8_NUMBERS), _SATURATES)),
    ),
    **{
        (f"Reduce{name}", 11): (_NEGATIVE_AXES,)
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
    ("ReduceSum", 13): (_REDUCED_AXES,),
    **{
        (f"Reduce{name}", 18): (_REDUCED_AXES,)
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
    },
    ("Reshape", 14): (ForZeros("allowzero", input=1),),
    # No document says how version 10 samples; onnx's own test data and onnxruntime agree on this.
    ("Resize", 11): (
        Sampled(
            "mode",
            coordinates=(_COORDINATES, "asymmetric"),
            rounding=("nearest_mode", "floor", "ceil"),
            nearest="nearest",
            linear="linear",
        ),
    ),
    ("Resize", 13): (
        Words(_COORDINATES, up=_same_words(*_COORDINATES_11), down=_same_words(*_COORDINATES_11)),
        Exclusive(empty=2, other=3, optional=(1, 2)),
    ),
    ("Resize", 19): (
        Words(_COORDINATES, up=_same_words(*_COORDINATES_11), down=_same_words(*_COORDINATES_11)),
    ),
    ("RoiAlign", 16): (Added(_COORDINATES, "output_half_pixel"),),
    ("Scan", 9): (
        Barrier("the older version has a batch dimension and lengths of sequences, the newer one has not"),
    ),
    ("Scan", 11): (
        Barrier("a negative axis means nothing before", (IsNegative("scan_input_axes"),), up=False),
        Barrier("a negative axis means nothing before", (IsNegative("scan_output_axes"),), up=False),
    ),
    ("Scatter", 11): (Barrier("the operator is deprecated from there on"),),
    ("ScatterElements", 18): (_REDUCTIONS,),
    ("ScatterND", 18): (_REDUCTIONS,),
    ("Slice", 10): (
        Moved("axes", 3, Form.LIST, counts="starts", empty=Empty.KEPT),
        Moved("starts", 1, Form.LIST, empty=Empty.KEPT),
        Moved("ends", 2, Form.LIST, empty=Empty.KEPT),
    ),
    ("Slice", 11): (
        Barrier("a negative axis means nothing before", (MayBeNegative(3),), up=False),
    ),
    # OpenVINO 2026.4.1 does; it reads LogSoftmax and Hardmax of version 11 as they are meant.
    ("Softmax", 11): (Misread(default=1), _NEGATIVE_AXIS),
    ("Softmax", 13): _COERCED,
    ("Split", 11): (_NEGATIVE_AXIS,),
    ("Split", 13): (Moved("split", 1, Form.LIST),),
    ("Split", 18): (Counted("num_outputs", axis="axis"),),
    ("Squeeze", 11): (_NEGATIVE_AXES,),
    ("Squeeze", 13): (_AXES_INPUT,),
    ("TopK", 10): (Moved("k", 1, Form.ONE),),
    ("TopK", 11): (_NEGATIVE_AXIS,),
    ("Unsqueeze", 11): (_NEGATIVE_AXES,),
    ("Unsqueeze", 13): (_AXES_INPUT,),
    ("Upsample", 9): (Moved("scales", 1, Form.FLOATS),),
    ("Upsample", 10): (Renamed("Resize", only_enlarges=True),),
}  # fmt: skip


def facts_of(type: str, version: int) -> tuple[Fact, ...] | None:
    """Return what a version changed against the one before it; None if the two were not compared."""
    facts = CHANGES.get((type, version))
    if facts is not None:
        return facts
    return () if version in WIDENED.get(type, ()) else None
