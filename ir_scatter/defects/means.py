"""Defects with means of integers, which a runtime rounds or sums incorrectly."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.spec import Reduction

_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.ATTRIBUTES, Fact.TYPES})
_SIGNED = ("i4", "i8", "i16", "i32", "i64")
_INTEGERS = (*_SIGNED, "u4", "u8", "u16", "u32", "u64")


def _mean(name: str, type: str, data: list[int], indices: list[int], updates: list[int]) -> Probe:
    attributes = {"reduction": "mean"}
    return Probe(name, "ScatterElementsUpdate-12", data, indices, updates, 0, type, attributes=attributes)


@Defect(
    "DEV105",
    "mean-of-negative-integers",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=tuple(_mean(type, type, [-3, 0], [0], [-2]) for type in ("i16", "i32", "i64")),
    near=(_mean("positive", "i32", [3, 0], [0], [2]),),
    avoid="compute the mean in f32 and round it down",
    reads=_READS,
)
def mean_of_negative_integers(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's plugins round the mean of integers towards zero; the specification rounds down."""
    if scatter.reduction is not Reduction.MEAN:
        return None
    signed = element_type_is(scatter, *_SIGNED)
    return meets(
        "the mean is of integers", [signed, Ternary(None, "a sum is negative and not divisible by the count")]
    )


@Defect(
    "DEV107",
    "mean-of-large-integers",
    ("openvino:CPU", "openvino:GPU", "openvino:fold"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        _mean("i32", "i32", [2**31 - 1], [0, 0], [2**31 - 1, 3]),
        _mean("u16", "u16", [60000], [0], [50000]),
    ),
    near=(_mean("small", "i32", [3, 0], [0], [1]),),
    avoid="compute the mean in f32 or i64",
    reads=_READS,
)
def mean_of_large_integers(scatter: ScatterNode) -> Meeting | None:
    """The mean of integers is wrong if their sum overflows the type, even if the mean fits."""
    if scatter.reduction is not Reduction.MEAN:
        return None
    whole = element_type_is(scatter, *_INTEGERS)
    return meets("the mean is of integers", [whole, Ternary(None, "a sum overflows the type")])
