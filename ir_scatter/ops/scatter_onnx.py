"""ONNX's scatter operators: rows from the operator schemas of the specification."""

from dataclasses import replace

from ir_scatter.core.element_types import onnx_types
from ir_scatter.core.model import ONNX, OpKey
from ir_scatter.ops.spec import (
    Attribute,
    AxisSource,
    IndexRange,
    IndicesLimit,
    Kind,
    Layout,
    OpSpec,
    Port,
    Reduction,
    Role,
)

LATEST_OPSET = 28
"""The newest opset that this table was compared with; a newer opset gets the newest row."""

_DOCUMENTS = "https://onnx.ai/onnx/operators/onnx__"
_FIFTEEN = onnx_types(
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float",
    "double", "string", "bool", "complex64", "complex128",
)  # fmt: skip
_SIXTEEN = _FIFTEEN | onnx_types("bfloat16")
_TWENTY_FOUR = _SIXTEEN | onnx_types(
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",
    "float4e2m1", "float8e8m0",
)  # fmt: skip
_INT64 = onnx_types("int64")

_DEPRECATED = "SCT401"

_AXIS = Attribute("axis", Kind.INT, 0, meaning="the axis that indices refer to")
_ADD_MUL, _MAX_MIN = ("none", "add", "mul"), ("max", "min")
_NO_ARITHMETIC = frozenset({"string"})
_NO_ORDER = _NO_ARITHMETIC | onnx_types("complex64", "complex128")
_EXCLUDES = {
    Reduction.SUM: _NO_ARITHMETIC,
    Reduction.PROD: _NO_ARITHMETIC,
    Reduction.MAX: _NO_ORDER,
    Reduction.MIN: _NO_ORDER,
}
_REDUCTION_16 = Attribute(
    "reduction",
    Kind.WORD,
    "none",
    choices=_ADD_MUL,
    undocumented=frozenset(_MAX_MIN),
    meaning="how an update is combined with the old value",
)
_REDUCTION_18 = _REDUCTION_16._replace(choices=_ADD_MUL + _MAX_MIN, undocumented=frozenset())


def _opsets(first: int, last: int = LATEST_OPSET) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


def _ports(data_types: frozenset[str], indices: Port) -> tuple[Port, ...]:
    return (
        Port("data", Role.DATA, data_types, min_rank=1),
        indices,
        Port("updates", Role.UPDATES, data_types),
    )


SCATTER_9 = OpSpec(
    key=OpKey(ONNX, "Scatter", 9),
    summary="Writes each element of updates to the position on the axis that its index selects.",
    url=_DOCUMENTS + "Scatter.html",
    ports=_ports(_FIFTEEN, Port("indices", Role.INDICES, onnx_types("int32", "int64"))),
    layout=Layout.ELEMENTS,
    updates_formula="indices",
    opsets=_opsets(9, 10),
    index_range=IndexRange.WRAPPING,
    attributes=(_AXIS,),
    axis=AxisSource("axis"),
    indices_limit=IndicesLimit.OFF_AXIS,
    tolerated=frozenset({_DEPRECATED}),
    deprecated_by=OpKey(ONNX, "ScatterElements", 11),
    errata=("The text of version 9 states no bounds for indices; runtimes accept [-s, s-1].",),
)
SCATTER_11 = replace(
    SCATTER_9,
    key=OpKey(ONNX, "Scatter", 11),
    opsets=_opsets(11),
    tolerated=frozenset(),
    is_removed=True,
    errata=(),
)


def _versions(first: OpSpec, reducing: str) -> tuple[OpSpec, ...]:
    """Return all versions of an operator: 13 adds bfloat16, 16 adds reductions, and 18 adds max and min.

    `reducing` is the summary of the versions with reductions.
    """
    type, attributes = first.key.type, first.attributes
    bfloat16 = replace(
        first, key=OpKey(ONNX, type, 13), opsets=_opsets(13, 15), ports=_ports(_SIXTEEN, first.ports[1])
    )
    reduces = replace(
        bfloat16,
        key=OpKey(ONNX, type, 16),
        summary=reducing,
        opsets=_opsets(16, 17),
        attributes=(*attributes, _REDUCTION_16),
        reduction_excludes=_EXCLUDES,
    )
    newest = replace(
        reduces, key=OpKey(ONNX, type, 18), opsets=_opsets(18), attributes=(*attributes, _REDUCTION_18)
    )
    return first, bfloat16, reduces, newest


SCATTERS = (SCATTER_9, SCATTER_11)
SCATTER_ELEMENTS = _versions(
    replace(
        SCATTER_9,
        key=OpKey(ONNX, "ScatterElements", 11),
        url=_DOCUMENTS + "ScatterElements.html",
        opsets=_opsets(11, 12),
        tolerated=frozenset(),
        deprecated_by=None,
        errata=(),
    ),
    "Writes or reduces each element of updates into the position that its index selects.",
)
SCATTER_ND = _versions(
    OpSpec(
        key=OpKey(ONNX, "ScatterND", 11),
        summary="Writes slices of updates over the slices of data that tuples of coordinates select.",
        url=_DOCUMENTS + "ScatterND.html",
        ports=_ports(_FIFTEEN, Port("indices", Role.INDICES, _INT64, min_rank=1)),
        layout=Layout.TUPLES,
        updates_formula="indices[:-1] + data[k:], k = indices[-1]",
        opsets=_opsets(11, 12),
        index_range=IndexRange.WRAPPING,
        errata=("The formula data.shape[k:r-1] in the text of later versions means data.shape[k:].",),
    ),
    "Writes or reduces slices of updates into the slices that tuples of coordinates select.",
)

TENSOR_SCATTER_24 = OpSpec(
    key=OpKey(ONNX, "TensorScatter", 24),
    summary="Writes a run of new positions into a cache, per batch from its write index on.",
    url=_DOCUMENTS + "TensorScatter.html",
    ports=(
        Port("past_cache", Role.DATA, _TWENTY_FOUR, min_rank=2),
        Port("update", Role.UPDATES, _TWENTY_FOUR),
        Port("write_indices", Role.INDICES, _INT64, is_optional=True),
    ),
    output="present_cache",
    layout=Layout.SEQUENCE,
    updates_formula="past_cache with at most past_cache[axis] on axis",
    opsets=_opsets(24),
    index_range=IndexRange.NON_NEGATIVE,
    attributes=(
        Attribute("axis", Kind.INT, -2, meaning="the sequence dimension; not 0, the batch"),
        Attribute(
            "mode",
            Kind.WORD,
            "linear",
            choices=("linear", "circular"),
            meaning="whether positions past the end wrap to the beginning",
        ),
    ),
    axis=AxisSource("axis", excluded=frozenset({0})),
    errata=("In circular mode the position is taken modulo past_cache[axis]: any index is legal.",),
)

TENSOR_SCATTER = (TENSOR_SCATTER_24,)

ROWS = (*SCATTERS, *SCATTER_ELEMENTS, *SCATTER_ND, *TENSOR_SCATTER)
