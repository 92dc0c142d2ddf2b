"""Finds the known defects that still affect nodes of a converted model."""

from collections.abc import Iterator, Mapping

from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.convert.conversion import Conversion, Risk
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.model import Graph, Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.formats import FORMATS
from ir_scatter.portability import Met, Portability, diagnose
from ir_scatter.reading import read_written
from ir_scatter.rules import all_rules
from ir_scatter.validate import Check


def risks_of(conversion: Conversion, portability: Portability, prices: Mapping[str, str]) -> tuple[Risk, ...]:
    """Return the defects that affect nodes of the new model, for all legal inputs or for some.

    Some depend on the loops around a node and on the other readers of its data, so the model is written and
    read again. Results that the specification leaves open, and illegal inputs, are no risks.

    Args:
        conversion: the conversion.
        portability: the known defects of the devices.
        prices: what a form costs that avoids a defect of a node, by the node's scope.
    """
    model = _written(conversion)
    origins = {new.node.scope: new.node.name for new in conversion.converted if new.fragment is not None}
    risks = dict[tuple[str, str, str], Risk]()
    for scatter, met in _met(model, portability):
        if not met.is_risk:
            continue
        scope = scatter.node.scope
        origin = next((old for old in origins if scope == old or scope.startswith(f"{old}/")), scope)
        name = origins.get(origin, scatter.node.name)
        advice = "; ".join(filter(None, (met.defect.remains, met.defect.advice())))
        if origin in prices:
            advice = f"{Parameter('at_any_cost')} avoids it, at {prices[origin]}; or {advice}"
        for target, _ in met.on_targets:
            key = origin, met.defect.code, target.runner
            first = risks.get(key)
            if first is None or (first.when and not met.meeting.when):
                risks[key] = Risk(name, origin, met.defect.code, target.runner, met.meeting.when, advice)
    return tuple(risks.values())


def _written(conversion: Conversion) -> Model:
    """Return the new model as a program would read it; the old one if it cannot be written."""
    model = conversion.model
    is_stuck = conversion.move is not None and bool(conversion.move.obstacles)
    if conversion.is_empty or is_stuck:
        return model
    try:
        written = FORMATS[model.format].write(model, conversion.patches, conversion.move)
        return read_written(model, written.content, written.appended)
    except (NotEditable, UnreadableModel):  # reported when the model is written
        return model


def _met(model: Model, portability: Portability) -> Iterator[tuple[ScatterNode, Met]]:
    check = Check(model, [rule for rule in all_rules() if rule.is_legality])
    graphs: list[Graph] = [model.graph]
    for function in model.functions:
        graphs += function.instances or [function.definition]
    for graph in graphs:
        for scatter in scatter_nodes(graph, check.facts):
            if scatter.lookup.spec is not None:
                for met in portability.met(scatter, check.broken_rules(scatter, graph)):
                    yield scatter, met


def accepted_illegal(
    model: Model, portability: Portability, settled: frozenset[str]
) -> tuple[Diagnostic, ...]:
    """Return warnings of defects that only illegal inputs meet, except for nodes in the scopes `settled`."""
    legal = {met.defect.code for _, met in _met(model, portability) if met.is_of_legal_inputs}
    diagnostics = diagnose(model, portability, is_meant=lambda scope: scope not in settled)
    return tuple(
        [
            diagnostic
            for diagnostic in diagnostics
            if diagnostic.severity is Severity.WARNING and diagnostic.code not in legal
        ]
    )
