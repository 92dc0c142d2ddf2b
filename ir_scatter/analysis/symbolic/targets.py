"""Proves that the indices of a scatter node are in range, and that its targets are distinct."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import NamedTuple

from ir_scatter.analysis.reachability import reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.case import Dims, type_range
from ir_scatter.analysis.symbolic.linear import ONE, Knowledge, Linear, Symbol, of_symbol, product
from ir_scatter.analysis.symbolic.numbers import CaseBounds, Cases, TensorNumbers
from ir_scatter.analysis.symbolic.rules.tuples import covered_by
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import is_checkable, quoted, show, simplified
from ir_scatter.core.model import ONNX, OPENVINO, Value
from ir_scatter.ops.spec import IndexRange, Layout


class ProofStatus(StrEnum):
    """The status of a claim about a scatter node, by the file and the user's conditions."""

    PROVEN = "proven"
    CONDITIONAL = "conditional"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class IndexProof:
    """The proof of a claim about the indices of a scatter node, such as that they are in range.

    Attributes:
        because: the reason in words.
        conditions: for a conditional claim, expressions that must be at least 0.
        texts: further conditions as text: "table distinct".
    """

    status: ProofStatus
    because: str = ""
    conditions: tuple[Linear, ...] = ()
    texts: tuple[str, ...] = field(default=())

    @property
    def is_proven(self) -> bool:
        return self.status is ProofStatus.PROVEN


@dataclass(frozen=True)
class TargetProofs:
    """The proofs about one scatter node: indices in range, targets distinct, indices never negative."""

    range: IndexProof
    distinct: IndexProof
    non_negative: IndexProof


def prove_node(walker: Walker, scatter: ScatterNode) -> TargetProofs:
    """Prove the claims about a node; for a node of a function, they hold in every call."""
    nodes = [scatter.node]
    if scatter.node.graph.scope:
        reachability = walker.facts.result_of(reachability_of)
        nodes = [] if reachability is None else reachability.copies(scatter.node)
    if not nodes:
        unread = IndexProof(ProofStatus.UNKNOWN, "no call of its function was found")
        return TargetProofs(unread, unread, unread)
    if nodes == [scatter.node] and scatter.facts is walker.facts:  # its facts are known already
        return prove_targets(walker, scatter)
    proofs = [prove_targets(walker, ScatterNode(node, scatter.lookup, walker.facts)) for node in nodes]
    return TargetProofs(
        _weakest([each.range for each in proofs]), _weakest([each.distinct for each in proofs]),
        _weakest([each.non_negative for each in proofs]),
    )  # fmt: skip


_WEAKNESS = (ProofStatus.PROVEN, ProofStatus.CONDITIONAL, ProofStatus.UNKNOWN, ProofStatus.REFUTED)


def _weakest(proofs: Sequence[IndexProof]) -> IndexProof:
    """Combine the proofs for several calls: the weakest status, with the conditions of all."""
    weakest = max(proofs, key=lambda proof: _WEAKNESS.index(proof.status))
    if weakest.status is not ProofStatus.CONDITIONAL:
        return weakest
    return IndexProof(
        weakest.status, weakest.because,
        tuple(dict.fromkeys(each for proof in proofs for each in proof.conditions)),
        tuple(dict.fromkeys(each for proof in proofs for each in proof.texts)),
    )  # fmt: skip


class _Limit:
    """The legal range of one coordinate, from `low` to `high`."""

    def __init__(self, low: Linear, high: Linear, size: Linear) -> None:
        self.low, self.high, self.size = low, high, size


def prove_targets(walker: Walker, scatter: ScatterNode) -> TargetProofs:
    """Prove the claims about the indices of a scatter node.

    `walker.knowledge` contains the user's conditions on inputs.
    """
    data, indices = scatter.data, scatter.indices
    if data is None or indices is None:
        missing = IndexProof(ProofStatus.UNKNOWN, "an input is missing")
        return TargetProofs(missing, missing, missing)
    numbers, shape, sizes = walker.numbers(indices.value), walker.dims(indices.value), walker.dims(data.value)
    limits, reason = _limits(walker, scatter, shape, sizes)
    knowledge = Knowledge(walker.knowledge)
    for size in shape or ():  # without elements there is no index to be out of range
        knowledge.add(size.plus(-1))
    columns = _columns(numbers, scatter, shape, limits)
    non_negative = _prove(walker, knowledge, [(cases, Linear(0), None) for cases in columns], numbers)
    if limits is None:
        in_range = IndexProof(ProofStatus.UNKNOWN, reason)
    elif not limits:
        in_range = IndexProof(ProofStatus.PROVEN, reason)
    else:
        pairs = zip(columns, limits, strict=True)
        in_range = _prove(
            walker, knowledge, [(cases, limit.low, limit.high) for cases, limit in pairs], numbers
        )
        if in_range.status is ProofStatus.UNKNOWN and _are_outside(walker, columns, limits, shape):
            in_range = IndexProof(ProofStatus.REFUTED, _ALL_OUTSIDE)
    in_range = _explained(walker, scatter, numbers, in_range, limits)
    outside = scatter.computed_outside
    if scatter.out_of_range is not None or (outside is not None and outside.occurrence.is_certain):
        in_range = IndexProof(ProofStatus.REFUTED, _ALL_OUTSIDE)
    elif outside is not None:
        in_range = IndexProof(ProofStatus.REFUTED, "indices are out of range unless there are none")
    if in_range.status is ProofStatus.REFUTED and scatter.reach.is_never:
        in_range = IndexProof(ProofStatus.PROVEN, "the node never runs")
    distinct = _distinct(walker, scatter, numbers, shape, in_range, non_negative)
    return TargetProofs(in_range, distinct, non_negative)


_ALL_OUTSIDE = "indices are out of range for every input"
_FARTHEST = 2**30
"""Larger numbers come from sizes or inputs that nothing limits."""


def _are_outside(walker: Walker, columns: Sequence[Cases], limits: "Sequence[_Limit]", shape: Dims) -> bool:
    """Return whether indices certainly exist, and some coordinate of all of them is out of range."""
    knowledge = walker.knowledge
    if shape is None or not all(knowledge.proves(size.plus(-1)) for size in shape):
        return False
    for cases, limit in zip(columns, limits, strict=True):
        if all(
            not case.requires
            and not case.may_wrap
            and (
                any(knowledge.proves(end.minus(limit.high).plus(-1)) for end in case.lows)
                or any(knowledge.proves(limit.low.minus(end).plus(-1)) for end in case.highs)
            )
            for case in cases
        ):
            return True
    return False


class Breach(NamedTuple):
    """How indices leave their range for inputs that satisfy the user's conditions.

    Attributes:
        text: "reach 31, expected 0 to 15", or "may reach ..."; "" if unknown.
        is_certain: whether some of these inputs surely break an index.
    """

    text: str
    is_certain: bool


def breach_of(walker: Walker, scatter: ScatterNode, names: Mapping[Symbol, str]) -> Breach:
    """Return how indices leave their range under the user's conditions.

    It is certain only if the example inputs can have equal sizes for dimensions of the same name, as in
    `names`.
    """
    data, indices = scatter.data, scatter.indices
    if data is None or indices is None:
        return Breach("", False)
    numbers, shape, sizes = walker.numbers(indices.value), walker.dims(indices.value), walker.dims(data.value)
    limits, _ = _limits(walker, scatter, shape, sizes)
    text, is_certain = "", False
    for cases, limit in zip(_columns(numbers, scatter, shape, limits), limits or (), strict=False):
        for case in cases:
            is_exact = len(cases) == 1 and case.is_exact and not case.requires
            is_certain |= is_exact and _has_example(walker, scatter, case, limit, shape, names)
            text = text or _reach(walker, case, limit)
    if text:
        text = f"{'reach' if is_certain else 'may reach'} {text}"
    return Breach(text, is_certain)


def _reach(walker: Walker, case: CaseBounds, limit: _Limit) -> str:
    """Return "31, expected 0 to 15"; "" for unknown sizes and for numbers without a limit."""
    if not limit.low.is_constant or not limit.high.is_constant:
        return ""
    low, high = limit.low.constant, limit.high.constant
    most = min((walker.knowledge.greatest(end) for end in case.highs), default=inf)
    least = max((walker.knowledge.least(end) for end in case.lows), default=-inf)
    end = most if most > high else least if least < low else None
    return "" if end is None or abs(end) >= _FARTHEST else f"{int(end)}, expected {low} to {high}"


def _has_example(
    walker: Walker,
    scatter: ScatterNode,
    case: CaseBounds,
    limit: _Limit,
    shape: Dims,
    names: Mapping[Symbol, str],
) -> bool:
    """Return whether some inputs make an exact bound leave its range, without overflow of the type.

    The inputs satisfy the user's conditions.
    """
    assert scatter.indices is not None
    low, high = type_range(walker.facts.element_type(scatter.indices.value))
    if shape is None or abs(low) == inf or not case.lows or not case.highs:
        return False
    filled = [Linear(0).minus(size) for size in shape]
    for end, within in (
        (limit.high.minus(case.highs[0]), case.highs[0].plus(-int(high) - 1)),
        (case.lows[0].minus(limit.low), Linear(int(low) - 1).minus(case.lows[0])),
    ):
        broken = [each for each in (end, within, *filled) if not each.is_constant or each.constant >= 0]
        if walker.knowledge.counterexample(broken, names) is not None:
            return True
    return False


def _limits(
    walker: Walker, scatter: ScatterNode, shape: Dims, sizes: Dims
) -> "tuple[list[_Limit] | None, str]":
    """Return the legal range of each coordinate and a reason; None without a known range."""
    layout, axis = scatter.spec.layout, scatter.axis
    if sizes is None:
        return None, "the rank of data is not known"
    wraps = scatter.spec.index_range is IndexRange.WRAPPING

    def limit(size: Linear) -> _Limit:
        return _Limit(size.times(-1) if wraps else Linear(0), size.plus(-1), size)

    if layout is Layout.TUPLES:
        if shape is None or not shape or not shape[-1].is_constant:
            return None, "the number of coordinates in an index tuple is not known"
        depth = shape[-1].constant
        if depth > len(sizes):
            return None, "an index tuple has more coordinates than data has dimensions"
        return [limit(size) for size in sizes[:depth]], ""
    if axis is None or axis >= len(sizes):
        return None, "the axis is not constant"
    if layout is Layout.SEQUENCE:
        updates = scatter.updates
        run = None if updates is None else walker.dims(updates.value)
        if scatter.attribute("mode") != "linear":
            return [], "positions are counted modulo the size of the cache"
        if run is None or len(run) != len(sizes):
            return None, "the length of updates is not known"
        return [_Limit(Linear(0), sizes[axis].minus(run[axis]), sizes[axis])], ""
    return [limit(sizes[axis])], ""


def _columns(
    numbers: TensorNumbers, scatter: ScatterNode, shape: Dims, limits: "Sequence[_Limit] | None"
) -> list[Cases]:
    """Return the bounds of each coordinate of index tuples; for other layouts those of all indices."""
    if scatter.spec.layout is not Layout.TUPLES or not limits or shape is None:
        return [numbers.cases]
    is_told_apart = numbers.columns is not None and numbers.column_axis == len(shape) - 1
    if is_told_apart and numbers.columns is not None and len(numbers.columns) == len(limits):
        return [*numbers.columns]
    return [numbers.cases] * len(limits)


def _prove(
    walker: Walker,
    knowledge: Knowledge,
    claims: "Iterable[tuple[Cases, Linear, Linear | None]]",
    numbers: TensorNumbers,
) -> IndexProof:
    """Prove that elements are between two ends; collect conditions for the parts that are not proven."""
    conditions: dict[Linear, None] = {}
    for cases, low, high in claims:
        for case in cases:
            required = [
                *[((), each) for each in case.requires],
                (tuple([end.minus(low) for end in case.lows]), None),
            ]
            if high is not None:
                required.append((tuple([high.minus(end) for end in case.highs]), None))
            for choices, single in required:
                options = choices if single is None else (single,)
                missing = _missing(walker, knowledge, options)
                if missing is None:
                    return IndexProof(ProofStatus.UNKNOWN, _where(walker, numbers, case, options))
                conditions |= dict.fromkeys(missing)
    if not conditions:
        return IndexProof(ProofStatus.PROVEN)
    return IndexProof(ProofStatus.CONDITIONAL, conditions=tuple(conditions))


def _missing(walker: Walker, knowledge: Knowledge, options: Sequence[Linear]) -> list[Linear] | None:
    """Return the condition under which one of several expressions is at least 0; [] if one is proven.

    None if users cannot check any such condition.
    """
    # a quotient that is rounded towards zero is compared by what it is computed from
    exact = [*options, *[simplified(option, walker) for option in options]]
    if any(knowledge.proves(option) for option in exact):
        return []
    checkable = [option for option in options if is_checkable(option, walker)]
    possible = [option for option in checkable if knowledge.greatest(option) >= 0]
    return possible[:1] or None


def _where(walker: Walker, numbers: TensorNumbers, case: CaseBounds, options: Sequence[Linear]) -> str:
    """Return, in words, the value or node whose numbers are unknown."""
    value = numbers.unknown
    if value is None:
        for option in options:
            for symbol in option.symbols():
                if symbol.value is not None and not is_checkable(of_symbol(symbol), walker):
                    value = symbol.value
    if value is None:
        return "the bounds of indices are not known"
    node = value.producer
    if node is None or value in walker.inputs:
        return f"{quoted(walker.name(value))} holds numbers that are not integers"
    domain = f", of {node.domain}" if node.domain not in {"", ONNX, OPENVINO} else ""
    return f"{quoted(value.name)} comes from {node.type} ({node.name}{domain})"


def _explained(
    walker: Walker,
    scatter: ScatterNode,
    numbers: TensorNumbers,
    proof: IndexProof,
    limits: "Sequence[_Limit] | None",
) -> IndexProof:
    """Return a proof with its reason in words: where indices come from, and which sizes limit them."""
    if proof.because or not limits:
        return proof
    sizes = " and ".join(dict.fromkeys(show(limit.size, walker) for limit in limits))
    axis = scatter.axis
    place = f"axis {axis} has {sizes}" if axis is not None else f"dimensions have {sizes}"
    origin = numbers.origin or "indices"
    return IndexProof(proof.status, f"{origin}; {place}", proof.conditions, proof.texts)


def _distinct(
    walker: Walker,
    scatter: ScatterNode,
    numbers: TensorNumbers,
    shape: Dims,
    in_range: IndexProof,
    non_negative: IndexProof,
) -> IndexProof:
    """Prove that no two indices of a node select the same target."""
    layout, axis = scatter.spec.layout, scatter.axis
    if scatter.repeats is not None:
        return IndexProof(ProofStatus.REFUTED, "constant indices repeat a target")
    if scatter.certainly_repeats:
        return IndexProof(ProofStatus.REFUTED, f"indices repeat a target: {scatter.certainly_repeats}")
    if layout is Layout.SEQUENCE:
        return IndexProof(ProofStatus.PROVEN, "each batch writes consecutive positions")
    if shape is None:
        return IndexProof(ProofStatus.UNKNOWN, "the rank of indices is not known")
    sizes = shape[:-1] if layout is Layout.TUPLES else shape
    if layout is Layout.ELEMENTS:
        if axis is None:
            return IndexProof(ProofStatus.UNKNOWN, "the axis is not constant")
        sizes = shape[axis : axis + 1]
    if product(sizes) == ONE:
        return IndexProof(ProofStatus.PROVEN, "there is one index")
    if not _is_distinct(walker, scatter, numbers, shape):
        return IndexProof(ProofStatus.UNKNOWN, _not_distinct(walker, numbers))
    inputs = [each for each in numbers.conditions if isinstance(each, str)]
    exact = _distinct_input(walker, scatter) if inputs else None
    texts = [exact] if exact is not None else sorted(inputs)
    needed = [each for each in numbers.conditions if isinstance(each, Linear)]
    for case in numbers.cases:
        needed += case.requires
    # an index and its negative twin select one target
    if scatter.wraps and not _all_negative(walker, numbers):
        if non_negative.status is ProofStatus.UNKNOWN:
            return IndexProof(ProofStatus.UNKNOWN, "indices may be negative, and select a target twice")
        needed += non_negative.conditions
    conditions = dict[Linear, None]()
    legal = Knowledge(walker.knowledge)  # two indices that are out of range select no target
    for condition in in_range.conditions:
        legal.add(condition)
    for condition in needed:
        if walker.knowledge.proves(condition):
            continue
        if legal.proves(condition):
            conditions |= dict.fromkeys(in_range.conditions)
        elif is_checkable(condition, walker):
            conditions[condition] = None
        else:
            return IndexProof(ProofStatus.UNKNOWN, "a computation of indices may overflow or repeat a number")
    status = ProofStatus.CONDITIONAL if conditions or texts else ProofStatus.PROVEN
    return IndexProof(status, numbers.origin or "indices", tuple(conditions), tuple(texts))


def _all_negative(walker: Walker, numbers: TensorNumbers) -> bool:
    return all(
        any(walker.knowledge.proves(high.times(-1).plus(-1)) for high in case.highs) for case in numbers.cases
    )


def _is_distinct(
    walker: Walker, scatter: ScatterNode, numbers: TensorNumbers, shape: Sequence[Linear]
) -> bool:
    layout, axis = scatter.spec.layout, scatter.axis
    if numbers.is_unique:
        # tuples of no coordinates are all equal, although no two elements are
        return layout is not Layout.TUPLES or walker.knowledge.proves(shape[-1].plus(-1))
    if layout is Layout.ELEMENTS:
        return axis in numbers.distinct
    if layout is Layout.TUPLES:
        last = len(shape) - 1
        if shape[-1] == ONE:
            return covered_by([numbers], (*shape[:-1], ONE), last) is not None
        return numbers.tuples_axis == last
    return covered_by([numbers], shape, None) is not None


_COPYING = {"Cast", "Convert", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten"}


def _distinct_input(walker: Walker, scatter: ScatterNode) -> str | None:
    """Return the condition that the input which holds the indices is distinct; None without such an input."""
    assert scatter.indices is not None
    value: Value | None = scatter.indices.value
    layout, axis = scatter.spec.layout, scatter.axis
    views = 0
    while value is not None and value not in walker.inputs:
        if value in walker.cast_inputs:
            value = walker.cast_inputs[value]
            break
        node = value.producer
        if node is None or node.type not in _COPYING or value.constant is not None:
            return None
        views += node.type not in {"Cast", "Convert", "Identity"}
        value = node.inputs[0].value
    if value is None:
        return None
    name = quoted(walker.name(value))
    if layout is Layout.SLICES:
        return f"{name} distinct"
    if views:
        return None
    return f"{name} distinct along axis {axis}" if layout is Layout.ELEMENTS else f"rows of {name} distinct"


def _not_distinct(walker: Walker, numbers: TensorNumbers) -> str:
    origin = numbers.origin or "the computation of indices"
    return f"{origin} may give a number twice"
