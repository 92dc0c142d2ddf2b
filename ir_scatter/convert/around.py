"""Forms of a node that no known defect of some devices meets."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ir_scatter import runners
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.diagnostics import Diagnostic, NodeRef, Severity
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.model import Model, Node
from ir_scatter.core.words import listed
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.general_operators import misread_inputs, missing_kernels
from ir_scatter.formats import FORMATS
from ir_scatter.ops.general import find
from ir_scatter.ops.spec import OpSpec
from ir_scatter.portability import Portability, and_others, diagnose
from ir_scatter.reading import read
from ir_scatter.rewrites import leads_to
from ir_scatter.rewrites.base import Rewrite
from ir_scatter.rewrites.forms import forms_of
from ir_scatter.rewrites.guard import Guard, counts_from_end
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rules.index_values import index_out_of_range

_OF_INDICES = frozenset({Reason.NOTHING_IN_RANGE, Reason.ILLEGAL_INDICES})
"""Why indices cannot be guarded, whatever the node becomes."""


def around(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec | None],
    opset: int | None,
    guard: Guard | None = None,
) -> tuple[OpSpec, Rewritten | Refusal | None]:
    """Return the row and the form with the fewest nodes that no known defect certainly meets.

    Nor may it meet one that the node as it is does not.

    Args:
        rewriter: that of the model.
        portability: what is known of the devices.
        scatters: the node, once for each signature of the function that it is in.
        rows: what it may become, None for what it is; of one alone it is said why not.
        opset: of the new nodes in ONNX.
        guard: what becomes of its indices, too.
    """
    own, reasons = scatters[0].spec, list[str]()
    found: list[tuple[int, OpSpec, Rewritten]] = []
    in_the_way = dict.fromkeys(code for one in scatters for code in portability.surely_met(one))
    is_kept = any(by_code()[code].stays for code in in_the_way)
    misread = [
        f"{target} misreads {name}"
        for target in portability.targets
        for name in misread_inputs(scatters, runners.original(target.runner))
    ]
    reasons += misread
    for form, row in () if is_kept or misread else _attempts(own, rows):
        if form is not None and found:
            break  # the node as it is, or a plain route, avoids them all
        if len(rows) > 1 and row is not None and not leads_to(own.key, row.key, opset):
            continue
        made = rewriter.rewrite(scatters, row, opset, guard, is_anew=len(rows) > 1, form=form)
        row = row or own
        if not isinstance(made, Rewritten):
            is_only = len(rows) == 1 and form is None
            if is_only or (isinstance(made, Refusal) and made.code in _OF_INDICES):
                return row, made
            reasons += [] if made is None else [made.message]
            continue
        missing = [
            f"{target} has no kernel for {name}"
            for target in portability.targets
            for name in missing_kernels(made.fragment, runners.original(target.runner))
        ]
        if missing:
            reasons += missing
            continue
        news = rewriter.news(made)
        met = dict.fromkeys(code for new in news for code in portability.surely_met(new))
        new = _maybe(portability, news) - _maybe(portability, scatters)
        if guard is Guard.WRAP:  # no index is negative, and none illegal
            new = {code for code in new if not by_code()[code].breaks}
        met |= dict.fromkeys(sorted(new))
        in_the_way |= met
        if not met:
            found.append((len(made.fragment.news), row, made))
    if found:
        _, row, made = min(found, key=lambda one: one[0])
        return row, made
    message = f"every form that is known meets {listed([*in_the_way])} on a device of --for"
    row = (rows[0] if len(rows) == 1 else None) or own
    return row, Refusal(Reason.KNOWN_DEFECTS, "; ".join((message, *reasons[:1])))


def _attempts(own: OpSpec, rows: Sequence[OpSpec | None]) -> Iterator[tuple[Rewrite | None, OpSpec | None]]:
    """Yield what to try: each row as it is, and then each row from each form of the node's own row."""
    for form in (None, *forms_of(own.key)):
        yield from ((form, row) for row in rows)


def at_no_cost(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec],
    opset: int | None,
) -> tuple[OpSpec, Rewritten] | None:
    """Return a row and a form of one node that meets fewer of the defects that a node may meet."""
    own, best = scatters[0].spec, _maybe(portability, scatters)
    found: tuple[OpSpec, Rewritten] | None = None
    for row in rows if best else ():
        if not leads_to(own.key, row.key, opset):
            continue
        made = rewriter.rewrite(scatters, row, opset, is_anew=True)
        if not isinstance(made, Rewritten) or len(made.fragment.news) != 1 or made.assumptions:
            continue
        news = rewriter.news(made)
        left = _maybe(portability, news)
        if left < best and not any(map(portability.surely_met, news)):
            best, found = left, (row, made)
    return found


def _maybe(portability: Portability, scatters: Sequence[ScatterNode]) -> set[str]:
    return set[str]().union(*map(portability.maybe_met, scatters))


def may_be_met(model: Model, portability: Portability, settled: Collection[str]) -> tuple[Diagnostic, ...]:
    """Return the defects that hang on what only a run tells, at nodes that are not settled by scope."""
    found = diagnose(model, portability, is_meant=lambda scope: scope not in settled)
    return tuple([one for one in found if one.severity is Severity.WARNING])


def shares_memory(conversion: Conversion, portability: Portability) -> tuple[Diagnostic, ...]:
    """Return warnings of new nodes that update memory which others share, on a device of --for.

    What shares memory depends on the loops around a node and on what else reads its data, which only the
    whole result tells: it is made and read, if a new node may have such a place.
    """
    model = conversion.model
    places = {one.node.scope: one.node for one in conversion.converted if one.fragment is not None}
    in_loops = any(node.graph.scope for node in places.values())
    may_be = in_loops or any(has_state(node) for node in model.graph.walk() if places)
    codes = {one.code for one in all_defects() if one.taps_hide}
    if not may_be or (conversion.move is not None and conversion.move.obstacles):
        return ()
    try:
        written = FORMATS[model.format].write(model, conversion.patches, conversion.move)
        result = read(model.path, written.content, format=model.format)
    except (NotEditable, UnreadableModel):  # said when the model is written
        return ()
    found = list[Diagnostic]()
    for one in diagnose(result, portability):
        scope = next((name for name in places if one.location.scope.startswith(name)), None)
        if one.code in codes and scope is not None:
            found.append(replace(one, severity=Severity.WARNING, location=places[scope].location))
    return tuple(found)


def has_state(node: Node) -> bool:
    op = find(node.domain, node.type)
    return op is not None and bool(op.state)


def not_guarded(
    portability: Portability, scatters: Sequence[ScatterNode], settled: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Return the one warning that indices of nodes may be out of range when they run.

    None is due to nodes of which a defect says so already, unless they are settled by scope.
    """
    silent = [one for one in scatters if one.node.scope in settled or not _is_told(portability, one)]
    if not silent:
        return ()
    scatter, *others = silent
    node, indices, code = scatter.node, scatter.indices, Reason.UNGUARDED
    assert indices is not None
    low = "-size" if counts_from_end(scatter.spec) else "0"
    message = f"{indices.port.name} may be out of range when the model runs, expected {low} to size - 1"
    return (
        Diagnostic(
            code,
            code.rule,
            Severity.WARNING,
            and_others(message, len(others)),
            node.location,
            NodeRef(node.name, scatter.lookup.type, scatter.spec.key.version),
            indices.port.name,
            indices.index,
            help="--guard clamp limits them, --guard drop leaves their updates out, --guard wrap counts "
            "negative ones from the end",
        ),
    )


def _is_told(portability: Portability, scatter: ScatterNode) -> bool:
    return any(index_out_of_range.name in met.defect.breaks for met in portability.met(scatter))
