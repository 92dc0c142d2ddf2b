"""OpenVINO's scatter operators: rows from the operation specifications."""

from dataclasses import replace

from ir_scatter.core.element_types import INTEGERS, NUMERIC, OPENVINO_TYPES
from ir_scatter.core.model import OPENVINO, OpKey
from ir_scatter.ops.spec import (
    NEGATIVE_INDEX,
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

OPSET_WORDS = tuple(f"opset{number}" for number in range(1, 18))
"""The opset names that OpenVINO's reader accepts; opset17 contains newly added operators only."""

_DOCUMENTS = (
    "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs/movement/"
)
_NUMERIC = NUMERIC & OPENVINO_TYPES
_INTEGERS = INTEGERS & OPENVINO_TYPES
_DATA = Port("data", Role.DATA, _NUMERIC, min_rank=1)
_INDICES = Port("indices", Role.INDICES, _INTEGERS)
_UPDATES = Port("updates", Role.UPDATES, _NUMERIC)
_AXIS = Port("axis", Role.AXIS, _INTEGERS)
_ANY_DATA = _DATA._replace(element_types=OPENVINO_TYPES)
_ANY_UPDATES = _UPDATES._replace(element_types=OPENVINO_TYPES)
_TUPLES = Port("indices", Role.INDICES, frozenset({"i32", "i64"}), min_rank=1)

_BOOLEAN_DATA = "SCT214"
_LONG_ON_AXIS = "SCT211"

_NO_ARITHMETIC = frozenset({"string"})
_ARITHMETIC = (Reduction.SUM, Reduction.SUB, Reduction.PROD, Reduction.MIN, Reduction.MAX)


def _words(first: int, last: int) -> tuple[str, ...]:
    return OPSET_WORDS[first - 1 : last]


def _reduction(*words: str) -> Attribute:
    meaning = "how an update is combined with the old value"
    return Attribute("reduction", Kind.WORD, "none", choices=words, meaning=meaning)


SCATTER_UPDATE_3 = OpSpec(
    key=OpKey(OPENVINO, "ScatterUpdate", 3),
    summary="Writes slices of updates over the slices of data that indices select on the axis.",
    url=_DOCUMENTS + "scatter-update-3.html",
    ports=(_DATA, _INDICES, _UPDATES, _AXIS),
    layout=Layout.SLICES,
    updates_formula="data[:axis] + indices + data[axis+1:]",
    opsets=_words(3, 16),
    index_range=IndexRange.NON_NEGATIVE,
    axis=AxisSource(),
    tolerated=frozenset({_BOOLEAN_DATA}),
    drops_attributes=True,
)

SCATTER_ELEMENTS_UPDATE_3 = OpSpec(
    key=OpKey(OPENVINO, "ScatterElementsUpdate", 3),
    summary="Writes each element of updates to the position on the axis that its index selects.",
    url=_DOCUMENTS + "scatter-elements-update-3.html",
    ports=(_DATA, _INDICES, _UPDATES, _AXIS),
    layout=Layout.ELEMENTS,
    updates_formula="indices",
    opsets=_words(3, 11),
    index_range=IndexRange.NON_NEGATIVE,
    axis=AxisSource(),
    indices_limit=IndicesLimit.EVERYWHERE,
    tolerated=frozenset({_BOOLEAN_DATA, NEGATIVE_INDEX, _LONG_ON_AXIS}),
    drops_attributes=True,
)

SCATTER_ELEMENTS_UPDATE_12 = replace(
    SCATTER_ELEMENTS_UPDATE_3,
    key=OpKey(OPENVINO, "ScatterElementsUpdate", 12),
    summary="Writes or reduces each element of updates into the position that its index selects.",
    url=_DOCUMENTS + "scatter-elements-update-12.html",
    ports=(_ANY_DATA, _INDICES, _ANY_UPDATES, _AXIS),
    opsets=_words(12, 16),
    index_range=IndexRange.WRAPPING,
    indices_limit=IndicesLimit.OFF_AXIS,
    attributes=(
        _reduction("none", "sum", "prod", "min", "max", "mean"),
        Attribute(
            "use_init_val", Kind.BOOLEAN, True, meaning="whether the old value takes part in the reduction"
        ),
    ),
    reduction_excludes={
        Reduction.MEAN: frozenset({"boolean"}) | _NO_ARITHMETIC,
        **dict.fromkeys(_ARITHMETIC, _NO_ARITHMETIC),
    },
    tolerated=frozenset(),
    errata=("On boolean data sum is OR and prod is AND; mean is refused.",),
)

SCATTER_ND_UPDATE_3 = OpSpec(
    key=OpKey(OPENVINO, "ScatterNDUpdate", 3),
    summary="Writes slices of updates over the slices of data that tuples of coordinates select.",
    url=_DOCUMENTS + "scatter-nd-update-3.html",
    ports=(_DATA, _TUPLES, _UPDATES),
    layout=Layout.TUPLES,
    updates_formula="indices[:-1] + data[k:], k = indices[-1]",
    opsets=_words(4, 14),
    index_range=IndexRange.NON_NEGATIVE,
    scalar_updates=True,
    tolerated=frozenset({_BOOLEAN_DATA}),
    drops_attributes=True,
    errata=("The opset that introduced it is opset4: opset3 does not contain it.",),
)

SCATTER_ND_UPDATE_15 = replace(
    SCATTER_ND_UPDATE_3,
    key=OpKey(OPENVINO, "ScatterNDUpdate", 15),
    summary="Writes or reduces slices of updates into the slices that tuples of coordinates select.",
    url=_DOCUMENTS + "scatter-nd-update-15.html",
    ports=(
        _DATA._replace(element_types=_NUMERIC | {"boolean"}),
        _TUPLES,
        _UPDATES._replace(element_types=_NUMERIC | {"boolean"}),
    ),
    opsets=_words(15, 16),
    index_range=IndexRange.WRAPPING,
    attributes=(_reduction("none", "sum", "sub", "prod", "min", "max"),),
    tolerated=frozenset(),
    errata=(
        "On boolean data sum is OR, sub is XOR and prod is AND.",
        "XML examples 1 to 4 print indices of shape [5] for data [4] (k = 5 > 1); it must be [5, 1].",
        "Example 1 should end [50, 40, 20, 4], example 4 [500, 2400, 60, 4].",
        "The first text example writes index 4 twice: 14, not 4.",
        "The examples of the specification spell the type ScatterNdUpdate.",
    ),
)

SCATTER_UPDATE = (SCATTER_UPDATE_3,)
SCATTER_ELEMENTS_UPDATE = (SCATTER_ELEMENTS_UPDATE_3, SCATTER_ELEMENTS_UPDATE_12)
SCATTER_ND_UPDATE = (SCATTER_ND_UPDATE_3, SCATTER_ND_UPDATE_15)

ROWS = (*SCATTER_UPDATE, *SCATTER_ELEMENTS_UPDATE, *SCATTER_ND_UPDATE)
