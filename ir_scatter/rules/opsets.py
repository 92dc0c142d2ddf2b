"""Rules about opsets and the operators they contain."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Part, Severity, Side
from ir_scatter.ops.lookup import opset_number
from ir_scatter.rules.base import Finding, Findings, Rule, to_opset

_TYPE, _OPSET = Part(Side.NODE, name="type"), Part(Side.NODE, name="opset")


@Rule("SCT401", "deprecated-operator", reads={Fact.OPERATOR}, is_legality=False)
def deprecated_operator(scatter: ScatterNode) -> Findings:
    """The operator is deprecated.

    Why: runtimes stop supporting deprecated operators; they refuse Scatter from opset 11 on.
    Applies to: ONNX Scatter: a warning at opset 9 and 10, where it is legal; an error from 11 on.
    Runtimes: onnx.checker and onnxruntime refuse it at opset 11 and above; OpenVINO accepts it at any
    opset.
    Example: Scatter in a model of opset 13.
    Fix: replace it with ScatterElements, which computes the same; `ir-scatter convert` does it.
    """
    successor = scatter.spec.deprecated_by
    if successor is None:
        return
    key = scatter.spec.key
    if scatter.spec.is_removed:
        message = f"{key.type} is deprecated at opset {scatter.node.opset}, expected {successor.type}"
    else:
        message = (
            f"legal here, deprecated at opset {successor.version}: {key.type}, use {successor.type} there"
        )
    yield Finding(
        message, part=_TYPE, help=f"replace it with {successor.type}, which computes the same", fixed_by=()
    )


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES})


@Rule("SCT402", "not-in-opset", reads=_READS, is_legality=False, needs_row=False)
def not_in_opset(scatter: ScatterNode) -> Findings:
    """The opset does not contain the operator.

    Why: the runtime does not find the operator and refuses the model.
    Applies to: every operator. opset4, not opset3, added ScatterNDUpdate; opset17 contains only newly
    added operators.
    Runtimes: OpenVINO: "Opset opset3 doesn't contain the operation with type: ScatterNDUpdate".
    onnxruntime: "is not a registered function/op".
    Example: <layer type="ScatterNDUpdate" version="opset3">.
    Fix: write an opset that contains the operator.
    """
    if scatter.lookup.spec is None and scatter.lookup.is_known_opset:
        opset = scatter.node.opset if isinstance(scatter.node.opset, str) else f"opset {scatter.node.opset}"
        message = f"{scatter.lookup.type} is not in {opset}, expected {scatter.lookup.show_opsets()}"
        yield Finding(message, part=_OPSET, help=to_opset(_suggested_opset(scatter)))


def _suggested_opset(scatter: ScatterNode) -> str | int:
    """Return the opset to suggest: the nearest one with the operator and the attributes of the node."""
    family = scatter.lookup.family
    complete = [spec for spec in family if all(map(spec.attribute, scatter.node.attributes))]
    opsets = [opset for spec in complete or family for opset in spec.opsets]
    written, last = opset_number(scatter.node), int(str(opsets[-1]).removeprefix("opset"))
    return opsets[-1] if written is not None and written > last else opsets[0]


@Rule("SCT403", "unknown-opset", reads=_READS, is_legality=False, needs_row=False)
def unknown_opset(scatter: ScatterNode) -> Findings:
    """Unknown opset of a scatter operator.

    Why: the runtime cannot look up the operator and refuses the model.
    Applies to: the version attribute of scatter layers in an IR (other layers may have any version, such as
    "extension") and the imported opset of ONNX models.
    Runtimes: OpenVINO: "Cannot create ScatterUpdate layer from unsupported opset".
    Example: <layer type="ScatterUpdate" version="extension">.
    Fix: write the opset, "opset3" to "opset16" in an IR.
    """
    if scatter.lookup.spec is None and not scatter.lookup.is_known_opset:
        opset = scatter.node.opset
        actual = "missing" if opset is None else f"{opset!r}"
        message = f"the opset of {scatter.lookup.type} is {actual}, expected {scatter.lookup.show_opsets()}"
        help = to_opset(_suggested_opset(scatter))
        if opset is None and not isinstance(_suggested_opset(scatter), str):
            help = f"import {scatter.lookup.show_opsets()} of the default domain"
        yield Finding(message, part=_OPSET, help=help)


@Rule("SCT404", "newer-than-known", Severity.NOTE, reads={Fact.OPERATOR}, is_legality=False)
def newer_than_known(scatter: ScatterNode) -> Findings:
    """The opset is newer than the newest one that ir-scatter supports.

    Why: the operator may have a new version there, with different rules. The node was checked as the newest
    known version, so its other findings may be wrong.
    Applies to: ONNX models that import opset 29 or above. In an IR an opset above opset17 is
    an unknown-opset (SCT403), because OpenVINO refuses it.
    Runtimes: onnxruntime 1.32.0 refuses opset 29, which is under development: "Current official support
    for domain ai.onnx is till opset 28".
    Example: ScatterElements in a model of opset 29.
    Fix: check the model with a newer ir-scatter, or export it with opset 28 or below.
    """
    latest = scatter.lookup.checked_up_to
    if latest is not None and not scatter.spec.is_removed:
        message = (
            f"opset {scatter.node.opset}: {scatter.lookup.type} may have changed; checked up to {latest}"
        )
        yield Finding(message, part=_OPSET)
