"""Defects: operators that a release of a runtime does not support."""

from typing import cast

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.model import OPENVINO
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.names import OperatorName
from ir_scatter.ops.spec import Layout, OpSpec

_SHAPES = {Layout.TUPLES: ((1, 1), (1, 2)), Layout.SEQUENCE: ((3,), (3, 1)), Layout.SLICES: ((1,), (1, 2))}
"""Shapes of indices and updates, by layout of the operator, for data of shape [3, 2]."""
_ONLY = frozenset({Fact.OPERATOR, Fact.INPUTS})


def _simplest_probe(spec: OpSpec) -> Probe:
    """Return the simplest probe (test input) for an operator version."""
    indices, updates = _SHAPES.get(spec.layout, ((1, 2), (1, 2)))
    axis = None if spec.axis is None else int(bool(spec.axis.excluded))
    name = cast(OperatorName, str(spec.key))
    return Probe(name, name, (3, 2), indices, updates, axis)


_ROWS = [spec for spec in SPECS.values() if not spec.is_removed]
_PROBES = tuple(map(_simplest_probe, _ROWS))


def _unknown(scatter: ScatterNode) -> Meeting | None:
    """The release has no such operator, or its frontend has no conversion for it.

    There is one probe for each operator version.
    """
    return Meeting(f"not every release supports {scatter.spec.key}", probes=(str(scatter.spec.key),))


def _unknown_in_onnx(scatter: ScatterNode) -> Meeting | None:
    """The release has no such operator.

    There is one probe for each version of an ONNX operator; onnxruntime reads no other format.
    """
    return None if scatter.node.domain == OPENVINO else _unknown(scatter)


operator_unknown = Defect(
    "DEV100", "operator-unknown", ("openvino:CPU", "openvino:GPU", "openvino:fold"), Symptom.REFUSED, _PROBES,
    avoid="convert it to an operator that the release supports", reads=_ONLY, strikes=Stage.READ,
)(_unknown)  # fmt: skip

operator_unknown_in_onnx = Defect(
    "DEV400", "onnx-operator-unknown", ("onnxruntime",), Symptom.REFUSED,
    tuple(probe for probe, spec in zip(_PROBES, _ROWS, strict=True) if spec.key.domain != OPENVINO),
    avoid="convert it to an operator that the release supports", reads=_ONLY, strikes=Stage.LOAD,
)(_unknown_in_onnx)  # fmt: skip
