"""Defects with several updates of one element."""

from dataclasses import replace

from ir_scatter.analysis.conditions import Condition, ProofState, judge
from ir_scatter.analysis.reachability import reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.model import ONNX, Value
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.general import find
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import Layout, Reduction, Role

_RUNS, _FEW, _MANY, _LONG = 600, 60, 4096, 131_072
"""Runs of a probe (test input); runs of a similar case that must pass; many updates; updates enough that a
thread is still busy when the next one starts."""

_MOST_FOLLOWED = 1000
"""Maximum values upstream of data that are searched for a difference of booleans."""

_IDEMPOTENT = frozenset({Reduction.NONE, Reduction.MIN, Reduction.MAX})
"""Reductions for which two equal updates, even of two threads at once, have the effect of one."""


def _targets(scatter: ScatterNode) -> Ternary:
    """Return whether several updates have the same target; unknown for runtime indices."""
    proof = judge(Condition.UNIQUE, scatter)
    if proof.verdict is ProofState.UNKNOWN:
        return Ternary(None, "two updates hit the same element")
    return Ternary(proof.verdict is ProofState.VIOLATED)


@Defect(
    "DEV109",
    "difference-of-booleans",
    ("openvino:CPU",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe(
            "twice", "ScatterNDUpdate-15", [True, False], [[0], [0], [1], [1]], [True] * 4, None, "boolean",
            attributes={"reduction": "sub"},
        ),
    ),
    near=(
        Probe(
            "once", "ScatterNDUpdate-15", [True, False], [[0], [1]], [True, True], None, "boolean",
            attributes={"reduction": "sub"},
        ),
    ),
    avoid="subtract in i32 and take the remainder modulo 2",
)  # fmt: skip
def difference_of_booleans(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin subtracts booleans as numbers: false - true - true gives -2, stored as true.

    The specification requires XOR, which gives false; constant folding computes that. A single subtraction is
    enough if data itself is such a difference: of an upstream node, or of an earlier iteration of a loop.
    """
    if scatter.reduction is not Reduction.SUB:
        return None
    is_boolean = element_type_is(scatter, "boolean")
    repeats = Ternary(True) if _is_difference(scatter) else _targets(scatter)
    meeting = meets("booleans are subtracted", [is_boolean, repeats, Ternary(None, "more than one is true")])
    return meeting and meeting._replace(is_likely=repeats.truth is True)


def _is_difference(scatter: ScatterNode) -> bool:
    """Return whether data contains differences of booleans, from upstream or from an earlier iteration."""
    reachability = scatter.facts.result_of(reachability_of)
    pending, seen = [scatter.data.value] if scatter.data is not None else [], set[Value]()
    while pending and len(seen) < _MOST_FOLLOWED:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.producer
        if node is None or value.is_input:
            pending += (reachability and reachability.inflows(value)) or []
            continue
        lookup = find_scatter(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            upstream = ScatterNode(node, lookup, scatter.facts)
            if upstream.reduction is Reduction.SUB:
                return True
            pending += [operand.value for operand in (upstream.data, upstream.updates) if operand is not None]
            continue
        op = find(node.domain, node.type)
        moved = () if op is None else op.moved_inputs(len(node.inputs))
        values = [node.inputs[place].value for place in moved if place < len(node.inputs)]
        pending += [source for source in values if source is not None]
    return False


@Defect(
    "DEV111",
    "order-of-updates",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.NONDETERMINISTIC,
    strikes=Stage.RUN,
    probes=(
        Probe("slices", "ScatterUpdate-3", (8,), (_LONG,), (_LONG,), 0, times=_RUNS),
        Probe("tuples", "ScatterNDUpdate-15", (8,), (_LONG, 1), (_LONG,), None, times=_RUNS),
        Probe("elements", "ScatterElementsUpdate-12", (8,), (_MANY,), (_MANY,), 0, times=_RUNS),
    ),
    near=(
        Probe("unique", "ScatterUpdate-3", (8,), [*range(8)], (8,), 0, times=_FEW),
        Probe("equal", "ScatterUpdate-3", (8,), (_LONG,), [7] * _LONG, 0, times=_FEW),
    ),
    avoid="make indices unique, or set the reduction you intend",
    per_model=Severity.NOTE,
)
def order_of_updates(scatter: ScatterNode) -> Meeting | None:
    """Several threads write updates of the same element; which one is written last differs from run to run.

    The specification does not define the order of updates. It shows with many updates: on OpenVINO's CPU
    plugin for ScatterUpdate and ScatterNDUpdate, on the GPU plugin for ScatterUpdate and
    ScatterElementsUpdate. If all updates of an element are equal, the order does not matter.
    """
    if scatter.reduction is not Reduction.NONE or scatter.spec.layout is Layout.SEQUENCE:
        return None
    if scatter.has_equal_updates:
        return None
    several = Ternary(None, "threads share the work")
    meeting = meets("the order of updates is unspecified", [_targets(scatter), several], Role.INDICES)
    return meeting and meeting._replace(probes=(scatter.spec.layout.value,), is_unspecified=True)


_TUPLES = Probe("tuples", "ScatterND-18", (8, 64), (_MANY, 1), (_MANY, 64), None, "i32", times=_RUNS)
_EQUAL = [[7] * 64] * _MANY
_ELEMENTS = Probe("elements", "ScatterElements-18", (8, 64), (_MANY, 64), (_MANY, 64), 0, "i32", times=_FEW)


@Defect(
    "DEV405",
    "race-of-tuples",
    ("onnxruntime",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=tuple(
        [
            replace(_TUPLES, name=word, attributes={"reduction": word})
            for word in ("none", "add", "mul", "max")
        ]
    ),
    near=(
        replace(_ELEMENTS, attributes={"reduction": "add"}),
        *[
            replace(_TUPLES, name=f"{word}-equal", updates=_EQUAL, attributes={"reduction": word}, times=_FEW)
            for word in ("none", "max")
        ],
    ),
    avoid="convert it to ScatterElements, or run it with one thread",
    per_model=Severity.WARNING,
)
def race_of_tuples(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime writes and reduces the updates of ScatterND on several threads without a lock.

    If two updates hit the same element, a reduction loses some of them. Without a reduction the result
    differs from run to run, but the specification does not define the order of updates anyway.
    ScatterElements is computed by one thread. Equal updates can only be lost if they are added or multiplied.
    """
    if scatter.node.domain != ONNX or scatter.spec.layout is not Layout.TUPLES or scatter.reduction is None:
        return None
    if scatter.reduction in _IDEMPOTENT and scatter.has_equal_updates:
        return None
    several = Ternary(None, "threads share the work")
    is_plain = scatter.reduction is Reduction.NONE
    reason = "the order of updates is unspecified" if is_plain else "ScatterND reduces updates"
    meeting = meets(reason, [_targets(scatter), several], Role.INDICES)
    return meeting and meeting._replace(is_unspecified=is_plain)
