"""Finds a new form of a node that avoids the known defects of some devices.

A form is an equivalent set of new nodes; a row is one version of an operator (`ops.spec`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ir_scatter import runners
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.diagnostics import Diagnostic, NodeRef, Severity
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.model import Model, Node
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import listed
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.general_operators import empty_inputs, misread_inputs, missing_kernels
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
"""Refusals of a guard (nodes that make indices legal) that apply whatever operator the node becomes."""


def avoid_defects(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec | None],
    opset: int | None,
    guard: Guard | None = None,
) -> tuple[OpSpec, Rewritten | Refusal | None]:
    """Return the smallest form of a node that avoids all known defects, and the form's operator version.

    No defect affects the form for certain, nor, depending on inputs, one that cannot affect the original
    node.

    Args:
        rewriter: the rewriter of the model.
        portability: the known defects of the devices.
        scatters: the node, once for each signature of the function that it is in.
        rows: the operator versions to try, None for the node's own; with a single row a refusal tells why it
            fails.
        opset: the opset of the new nodes in ONNX.
        guard: the guard to add to its indices.

    Returns:
        The row; and the new form, a refusal, or None if the node needs no change.
    """
    source, reasons = scatters[0].spec, list[str]()
    candidates: list[tuple[int, OpSpec, Rewritten]] = []
    in_the_way = dict.fromkeys(code for scatter in scatters for code in portability.surely_met(scatter))
    is_kept = any(by_code()[code].stays for code in in_the_way)
    misread = [
        f"{target} misreads {name}"
        for target in portability.targets
        for name in misread_inputs(scatters, runners.original(target.runner))
    ]
    misread += [
        f"{target} does not reshape {name}"
        for target in portability.targets
        for name in empty_inputs(scatters, runners.original(target.runner))
    ]
    reasons += misread
    for form, row in () if is_kept or misread else _attempts(source, rows):
        if form is not None and candidates:
            break  # the node itself, or a plain rewrite, avoids all defects
        if len(rows) > 1 and row is not None and not leads_to(source.key, row.key, opset):
            continue
        rewritten = rewriter.rewrite(scatters, row, opset, guard, is_anew=len(rows) > 1, form=form)
        row = row or source
        if not isinstance(rewritten, Rewritten):
            is_only = len(rows) == 1 and form is None
            if is_only or (isinstance(rewritten, Refusal) and rewritten.code in _OF_INDICES):
                return row, rewritten
            reasons += [] if rewritten is None else [rewritten.message]
            continue
        missing = [
            f"{target} has no kernel for {name}"
            for target in portability.targets
            for name in missing_kernels(rewritten.fragment, runners.original(target.runner))
        ]
        if missing:
            reasons += missing
            continue
        news = rewriter.news(rewritten)
        codes = dict.fromkeys(code for new in news for code in portability.surely_met(new))
        new = _maybe(portability, news) - _maybe(portability, scatters)
        if guard is Guard.WRAP:  # all constant indices are legal and non-negative
            new = {code for code in new if not by_code()[code].breaks}
        codes |= dict.fromkeys(sorted(new))
        in_the_way |= codes
        if not codes:
            candidates.append((len(rewritten.fragment.news), row, rewritten))
    if candidates:
        _, row, rewritten = min(candidates, key=lambda scatter: scatter[0])
        return row, rewritten
    message = (
        f"every known rewrite is affected by {listed([*in_the_way])} on a device of {Parameter('targets')}"
    )
    row = (rows[0] if len(rows) == 1 else None) or source
    return row, Refusal(Reason.KNOWN_DEFECTS, "; ".join((message, *reasons[:1])))


def _attempts(
    source: OpSpec, rows: Sequence[OpSpec | None]
) -> Iterator[tuple[Rewrite | None, OpSpec | None]]:
    """Yield (form, row) pairs to try: each row from the unchanged node, then from each other form."""
    for form in (None, *forms_of(source.key)):
        yield from ((form, row) for row in rows)


def improve_at_no_cost(
    rewriter: Rewriter,
    portability: Portability,
    scatters: Sequence[ScatterNode],
    rows: Sequence[OpSpec],
    opset: int | None,
) -> tuple[OpSpec, Rewritten] | None:
    """Return a new form that fewer defects can affect than the original node; None if there is none."""
    source, best = scatters[0].spec, _maybe(portability, scatters)
    result: tuple[OpSpec, Rewritten] | None = None
    for row in rows if best else ():
        if not leads_to(source.key, row.key, opset):
            continue
        rewritten = rewriter.rewrite(scatters, row, opset, is_anew=True)
        if not isinstance(rewritten, Rewritten) or len(rewritten.fragment.news) != 1 or rewritten.assumptions:
            continue
        news = rewriter.news(rewritten)
        remaining = _maybe(portability, news)
        if remaining < best and not any(map(portability.surely_met, news)):
            best, result = remaining, (row, rewritten)
    return result


def _maybe(portability: Portability, scatters: Sequence[ScatterNode]) -> set[str]:
    return set[str]().union(*map(portability.maybe_met, scatters))


def possible_defects(
    model: Model, portability: Portability, settled: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Return warnings of defects that depend on runtime values, except for nodes in the scopes `settled`."""
    diagnostics = diagnose(model, portability, is_meant=lambda scope: scope not in settled)
    return tuple([diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.WARNING])


def shares_memory(conversion: Conversion, portability: Portability) -> tuple[Diagnostic, ...]:
    """Return warnings of new nodes that update memory in place that other nodes read, on one of the devices.

    Sharing depends on the loops around a node and on the other readers of its data, so the converted model
    is written and read again, but only if a new node is in a loop or the model has state.
    """
    model = conversion.model
    places = {new.node.scope: new.node for new in conversion.converted if new.fragment is not None}
    in_loops = any(node.graph.scope for node in places.values())
    may_be = in_loops or any(has_state(node) for node in model.graph.walk() if places)
    codes = {defect.code for defect in all_defects() if defect.taps_hide}
    if not may_be or (conversion.move is not None and conversion.move.obstacles):
        return ()
    try:
        written = FORMATS[model.format].write(model, conversion.patches, conversion.move)
        result = read(model.path, written.content, format=model.format)
    except (NotEditable, UnreadableModel):  # reported when the model is written
        return ()
    warnings = list[Diagnostic]()
    for diagnostic in diagnose(result, portability):
        scope = next((name for name in places if diagnostic.location.scope.startswith(name)), None)
        if diagnostic.code in codes and scope is not None:
            warnings.append(replace(diagnostic, severity=Severity.WARNING, location=places[scope].location))
    return tuple(warnings)


def has_state(node: Node) -> bool:
    op = find(node.domain, node.type)
    return op is not None and bool(op.state)


def not_guarded(
    portability: Portability, scatters: Sequence[ScatterNode], settled: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Return at most one warning that runtime indices may be out of range.

    Nodes about which a defect already reports this are left out, unless their scope is in `settled`.
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
    ways = f"{clamp} limits them, {drop} leaves their updates out, {wrap} counts negative ones from the end"
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
