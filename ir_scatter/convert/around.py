"""Finds a form of a node that avoids the known defects of some devices.

A form is an equivalent set of new nodes; a row is one version of an operator (`ops.spec`). A defect affects a
node if some legal input triggers it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from math import prod
from typing import NamedTuple

from ir_scatter import runners
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.rewriter import ON_STORED, Rewriter, Rewritten
from ir_scatter.core.diagnostics import Diagnostic, NodeRef, Severity
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted_bytes, listed
from ir_scatter.defects import by_code
from ir_scatter.defects.general_operators import ADDS_IN_F32, empty_inputs, misread_inputs, missing_kernels
from ir_scatter.ops.general import find
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import OpSpec
from ir_scatter.portability import Portability, and_others
from ir_scatter.rewrites import leads_to
from ir_scatter.rewrites.forms import (
    AXIS_FOUND,
    CAST_TO_F32,
    COPIED,
    LEFT_OUT,
    MEAN,
    U32_AS_I32,
    NodeForm,
    alternative_forms,
)
from ir_scatter.rewrites.guard import Guard, counts_from_end
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rules.index_values import index_out_of_range

_AVOIDED_BY: Mapping[str, frozenset[str]] = {
    COPIED: frozenset({"DEV112", "DEV116"}),
    LEFT_OUT: frozenset({"DEV134", "DEV135", "DEV305", "DEV307"}),
    AXIS_FOUND: frozenset({"DEV301"}),
    CAST_TO_F32: frozenset({"DEV113"}),
    U32_AS_I32: frozenset({"DEV120"}),
}
"""Defects that a form avoids although they lie in the inputs of a node, in its surroundings, or its sizes."""

_ONLY_CURES = frozenset({COPIED, LEFT_OUT, AXIS_FOUND})
"""Forms that are tried only for the defects of `_AVOIDED_BY`."""

_WIDE = 32
"""Minimum bits of integers whose mean contains a sum that a device may round."""

_MOVES_NOTHING = frozenset({"Reshape", "Unsqueeze", "Squeeze", "ShapeOf"})
"""General operators that move no elements."""

_GUARD_REFUSALS = frozenset({Reason.NOTHING_IN_RANGE, Reason.ILLEGAL_INDICES})
"""Refusals of a guard that hold for any operator. A guard consists of nodes that make indices legal."""


def avoid_defects(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec | None],
    opset: int | None,
    guard: Guard | None = None,
) -> tuple[OpSpec, Rewritten | Refusal | None]:
    """Return the smallest form of a node that avoids all known defects, and the form's operator version.

    No defect affects the form for all inputs. A defect that affects it for some inputs must affect the
    original node too.

    Args:
        rewriter: the rewriter of the model.
        portability: the known defects of the devices.
        scatters: the node, once for each signature of its function.
        rows: the operator versions to try; None for the node's own. With a single row a refusal has the
            reason of its failure.
        opset: the opset of the new nodes in ONNX.
        guard: the guard to add to its indices.

    Returns:
        The row; and the new form, a refusal, or None if the node needs no change.
    """
    source, reasons = scatters[0].spec, list[str]()
    candidates: list[_Form] = []
    in_the_way = dict.fromkeys(code for scatter in scatters for code in portability.surely_met(scatter))
    met = frozenset(in_the_way)
    kept = frozenset(code for code in met if by_code()[code].stays)
    misread = _misread_messages(portability, scatters)
    reasons += misread
    old = _possible_defects(portability.with_devices(), scatters)
    stuck = {code for code in _possible_defects(portability, scatters) if by_code()[code].stays}
    for form, row in _attempts(source, rows):
        cured = defects_avoided_by(form)
        is_idle = _is_only_cure(form) and not cured & met
        if not kept <= cured or is_idle or (misread and not _reads_data_only(form)):
            continue
        if form is not None and any(not candidate.remaining for candidate in candidates):
            break  # the node itself, or a plain rewrite, avoids all defects
        if len(rows) > 1 and row is not None and not leads_to(source.key, row.key, opset):
            continue
        rewritten = rewriter.rewrite(scatters, row, opset, guard, is_anew=len(rows) > 1, form=form)
        row = row or source
        if not isinstance(rewritten, Rewritten):
            is_only = len(rows) == 1 and form is None
            if is_only or (isinstance(rewritten, Refusal) and rewritten.code in _GUARD_REFUSALS):
                return row, rewritten
            reasons += [] if rewritten is None or rewritten.code is Reason.NO_FORM else [rewritten.message]
            continue
        missing = _missing_kernel_messages(portability, rewritten)
        if missing:
            reasons += missing
            continue
        certain, possible = _defects_of_form(rewriter, portability, rewritten)
        new = possible - old
        if guard is Guard.WRAP:  # all constant indices are legal and non-negative
            new = {code for code in new if not by_code()[code].breaks}
        codes = dict.fromkeys([*certain, *sorted(new)])
        in_the_way |= codes
        if not codes:
            remaining = possible | (stuck - cured)
            candidates.append(_Form(row, rewritten, remaining, form is not None and form.moves_data))
    if candidates:
        best = min(candidates, key=_Form.rank)
        return best.row, best.rewritten
    final = [by_code()[code].remains for code in in_the_way if by_code()[code].remains]
    if final:
        return (rows[0] if len(rows) == 1 else None) or source, Refusal(Reason.KNOWN_DEFECTS, final[0])
    devices = f"on a device of {Parameter('targets')}"
    message = f"every known rewrite is affected by {listed([*in_the_way])} {devices}"
    if not in_the_way:  # an operator that every rewrite needs does not work there
        message = f"no known rewrite can be used {devices}"
    row = (rows[0] if len(rows) == 1 else None) or source
    return row, Refusal(Reason.KNOWN_DEFECTS, "; ".join((message, *reasons[:1])))


class _Form(NamedTuple):
    """A form of a node, and the defects that may still affect it for some inputs."""

    row: OpSpec
    rewritten: Rewritten
    remaining: Set[str]
    moves_data: bool

    def rank(self) -> tuple[int, bool, int, int]:
        """Return a sort key: fewest defects first, then lowest cost, then newest version."""
        size = len(self.rewritten.fragment.news)
        return len(self.remaining), self.moves_data, size, -self.row.key.version


def defects_avoided_by(form: NodeForm | None) -> frozenset[str]:
    """Return the defects of a node's inputs or surroundings that a form avoids."""
    return defects_avoided_by_rewrites([] if form is None else [rewrite.name for rewrite in form.rewrites])


def defects_avoided_by_rewrites(names: Iterable[str]) -> frozenset[str]:
    """Return the defects of a node's inputs or surroundings that some of the rewrites avoid."""
    return frozenset().union(*(_AVOIDED_BY.get(name, frozenset()) for name in names))


def _is_only_cure(form: NodeForm | None) -> bool:
    return form is not None and form.name in _ONLY_CURES


def _attempts(
    source: OpSpec, rows: Sequence[OpSpec | None]
) -> Iterator[tuple[NodeForm | None, OpSpec | None]]:
    """Yield the (form, row) pairs to try: each row for the unchanged node, then for each other form."""
    for form in (None, *alternative_forms(source.key)):
        yield from ((form, row) for row in rows)


def _misread_messages(portability: Portability, scatters: Sequence[ScatterNode]) -> list[str]:
    """Return the inputs of a node that devices misread, or refuse in general operators, as sentences."""
    messages = list[str]()
    for target in portability.targets:
        runner = runners.original(target.runner)
        messages += [f"{target} misreads {name}" for name in misread_inputs(scatters, runner)]
        messages += [f"{target} does not reshape {name}" for name in empty_inputs(scatters, runner)]
    return messages


def _reads_data_only(form: NodeForm | None) -> bool:
    return form is not None and form.name == LEFT_OUT


def _missing_kernel_messages(portability: Portability, rewritten: Rewritten) -> list[str]:
    messages = list[str]()
    is_wide_mean = any(rewrite.name == MEAN for rewrite in rewritten.way) and any(
        new.output.element_type is not None and new.output.element_type.bits >= _WIDE
        for new in rewritten.fragment.news[-1:]
    )
    for target in portability.with_devices().targets:
        runner = runners.original(target.runner)
        names = missing_kernels(rewritten.fragment, runner)
        messages += [f"{target} has no kernel for {name}" for name in names]
        if is_wide_mean and runner in ADDS_IN_F32:
            messages.append(f"{target} adds a product of i32 in f32")
    return messages


def _defects_of_form(
    rewriter: Rewriter, portability: Portability, rewritten: Rewritten
) -> tuple[Sequence[str], Set[str]]:
    """Return the codes of defects that affect a form for all inputs, and for some inputs. Cached by form."""
    if rewritten not in rewriter.defects_of:
        news, devices = rewriter.news(rewritten), portability.with_devices()
        certain = dict.fromkeys(code for new in news for code in devices.surely_met(new))
        rewriter.defects_of[rewritten] = [*certain], _possible_defects(devices, news)
    return rewriter.defects_of[rewritten]


class Price(NamedTuple):
    """The bytes that a form moves in each run beyond those of its scatter node.

    `is_least` means that unknown dimensions may add more.
    """

    size: int
    is_least: bool

    def __str__(self) -> str:
        return f"{'at least ' if self.is_least else ''}{counted_bytes(self.size)} more in each run"


class ReducedRisks(NamedTuple):
    """The result of searching for a form with fewer defects than the node.

    Attributes:
        row: the operator version of the form.
        rewritten: the form; None if every such form costs too much.
        price: additional bytes per run of a form that moves all of data once more; None for other forms.
        refusal: the reason why no form can avoid a defect that nearly all inputs trigger; else None.
    """

    row: OpSpec
    rewritten: Rewritten | None
    price: Price | None = None
    refusal: Refusal | None = None


def reduce_risks(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec],
    opset: int | None,
    *,
    at_any_cost: bool = False,
) -> ReducedRisks | None:
    """Return a form with fewer possible defects than the node; None if there is none.

    The form has no defects that the node lacks. Forms that move all of data once more are allowed with
    `at_any_cost`, or if they avoid a defect that nearly all inputs trigger.
    """
    source, old = scatters[0].spec, _possible_defects(portability, scatters)
    likely = set[str]().union(*map(portability.nearly_met, scatters)) & old
    is_rare = all(by_code()[code].per_model is Severity.NOTE for code in old - likely)
    if is_rare and not likely:
        return None
    is_misread = bool(_misread_messages(portability, scatters))
    kept = frozenset(code for code in old if by_code()[code].stays)
    more = _possible_defects(portability.with_devices(), scatters) - old
    candidates = list[_Form]()
    for form, row in _attempts(source, (None, *rows)):
        moves_data = form is not None and form.moves_data
        cured = defects_avoided_by(form)
        is_idle = _is_only_cure(form) and not cured & old
        if is_idle or (is_misread and not _reads_data_only(form)):
            continue
        if (form is None and row is None) or (
            moves_data and any(not candidate.remaining for candidate in candidates)
        ):
            continue
        if row is not None and not leads_to(source.key, row.key, opset):
            continue
        rewritten = rewriter.rewrite(scatters, row, opset, is_anew=True, form=form)
        if not isinstance(rewritten, Rewritten) or set(rewritten.assumptions) - {ON_STORED}:
            continue
        if _missing_kernel_messages(portability, rewritten):
            continue
        certain, possible = _defects_of_form(rewriter, portability, rewritten)
        remaining = (possible - more) | (kept - cured)
        if not certain and remaining < old:
            candidates.append(_Form(row or source, rewritten, remaining, moves_data))
    allowed = [
        candidate
        for candidate in candidates
        if not candidate.moves_data or at_any_cost or not likely <= candidate.remaining
    ]
    if allowed:
        best = min(allowed, key=_Form.rank)
        return ReducedRisks(best.row, best.rewritten, price_of(best.rewritten) if best.moves_data else None)
    if candidates:
        best = min(candidates, key=_Form.rank)
        return ReducedRisks(best.row, None, price_of(best.rewritten))
    final = [by_code()[code].remains for code in sorted(likely & kept) if by_code()[code].remains]
    if final:
        return ReducedRisks(source, None, refusal=Refusal(Reason.KNOWN_DEFECTS, final[0]))
    return None


def _possible_defects(portability: Portability, scatters: Sequence[ScatterNode]) -> set[str]:
    return set[str]().union(*map(portability.maybe_met, scatters))


def price_of(rewritten: Rewritten) -> Price:
    """Return the size of all outputs of new nodes, except for views and the last scatter node.

    Unknown dimensions count as 1.
    """
    count, is_least, news = 0, False, rewritten.fragment.news
    scatters = [new for new in news if find_scatter(new.domain, new.type, new.opset) is not None]
    for new in news:
        op = find(new.domain, new.type)
        if (op is not None and op.type in _MOVES_NOTHING) or new in scatters[-1:]:
            continue
        shape, type = new.output.shape, new.output.element_type
        sizes = [dim if isinstance(dim, int) else 1 for dim in shape or ()]
        is_least = is_least or shape is None or sizes != [*shape]
        count += -(-prod(sizes) * (8 if type is None else type.bits) // 8)
    return Price(count, is_least)


def unguarded_warnings(
    portability: Portability, scatters: Sequence[ScatterNode], settled: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Return at most one warning that runtime indices may be out of range.

    It counts nodes without another diagnostic about that, and nodes whose scope is in `settled`.
    """
    silent = [
        scatter
        for scatter in scatters
        if scatter.node.scope in settled or not _is_reported(portability, scatter)
    ]
    if not silent:
        return ()
    scatter, *rest = silent
    node, indices, code = scatter.node, scatter.indices, Reason.UNGUARDED
    assert indices is not None
    low = "-size" if counts_from_end(scatter.spec) else "0"
    clamp, drop, wrap = (Parameter("guard", guard.value) for guard in (Guard.CLAMP, Guard.DROP, Guard.WRAP))
    ways = f"{clamp} limits them, {drop} drops their updates, {wrap} counts negative ones from the end"
    message = f"{indices.port.name} may be out of range when the model runs, expected {low} to size - 1"
    return (
        Diagnostic(
            code,
            code.rule,
            Severity.WARNING,
            and_others(message, len(rest)),
            node.location,
            NodeRef(node.name, scatter.lookup.type, scatter.spec.key.version),
            indices.port.name,
            indices.index,
            help=ways,
        ),
    )


def _is_reported(portability: Portability, scatter: ScatterNode) -> bool:
    return any(index_out_of_range.name in meeting.defect.breaks for meeting in portability.met(scatter))
