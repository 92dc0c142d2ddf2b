"""Finds the known defects that still affect nodes of a converted model."""

from collections.abc import Iterator, Mapping, Sequence

from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.convert.around import defects_avoided_by_rewrites
from ir_scatter.convert.conversion import Conversion, Risk
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.model import Graph, Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.formats import FORMATS
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.portability import Met, Portability, diagnose
from ir_scatter.reading import read_written
from ir_scatter.rules import all_rules
from ir_scatter.validate import Check


def risks_of(
    conversion: Conversion, portability: Portability, prices: Mapping[str, str], given: Sequence[str] = ()
) -> tuple[Risk, ...]:
    """Return the defects that affect nodes of the new model, for some or all legal inputs.

    Some defects depend on surrounding loops and on other readers of data, so the model is written and read
    again. Unspecified results and illegal inputs are not risks.

    Args:
        conversion: the conversion.
        portability: the known defects of the devices.
        prices: the cost of a form that would avoid a defect, by scope of the node.
        given: promises about the model's inputs.
    """
    model = _written(conversion)
    origins = Origins(conversion)
    risks = dict[tuple[str, str, str], Risk]()
    for scatter, met in (*hidden_defects(conversion, portability, given), *_met(model, portability, given)):
        if not met.is_risk:
            continue
        origin = origins.scope(scatter.node.scope)
        name = origins.names.get(origin, scatter.node.name)
        advice = "; ".join(filter(None, (met.defect.remains, met.defect.advice())))
        if origin in prices:
            advice = f"{Parameter('at_any_cost')} avoids it, at {prices[origin]}; or {advice}"
        for target, _ in met.on_targets:
            key = origin, met.defect.code, target.runner
            first = risks.get(key)
            if first is None or (first.when and not met.meeting.when):
                risks[key] = Risk(name, origin, met.defect.code, target.runner, met.meeting.when, advice)
    return tuple(risks.values())


class Origins:
    """Finds the node of the old model that a node of the new model comes from.

    New nodes are named after the one that they replace: "body/scatter" becomes "body/scatter/updated".

    Attributes:
        names: the names of the nodes that were replaced, by their scope.
    """

    def __init__(self, conversion: Conversion) -> None:
        model = conversion.model
        self.names = {
            new.node.scope: new.node.name for new in conversion.converted if new.fragment is not None
        }
        self._old = {node.scope for node in model.definitions(scatter_types(model.domain))}

    def scope(self, scope: str) -> str:
        """Return the scope of the node in the old model; that of a node that stays is the same."""
        end = len(scope)
        while end > 0:
            if scope[:end] in self.names:
                return scope[:end]
            if scope[:end] in self._old:
                break
            end = scope.rfind("/", 0, end)
        return scope


def _written(conversion: Conversion) -> Model:
    """Return the new model as read from its file; the old model if it cannot be written."""
    model = conversion.model
    is_stuck = conversion.move is not None and bool(conversion.move.obstacles)
    if conversion.is_empty or is_stuck:
        return model
    try:
        written = FORMATS[model.format].write(model, conversion.patches, conversion.move)
        return read_written(model, written.content, written.appended)
    except (NotEditable, UnreadableModel):  # reported when the model is written
        return model


def hidden_defects(
    conversion: Conversion, portability: Portability, given: Sequence[str]
) -> Iterator[tuple[ScatterNode, Met]]:
    """Yield the defects of a replaced node's inputs, which its general operators meet as well."""
    replaced = {new.node.scope: new for new in conversion.converted if new.fragment is not None}
    for scatter, met in _met(conversion.model, portability, given, frozenset(replaced)):
        cured = defects_avoided_by_rewrites(replaced[scatter.node.scope].rewrites)
        if met.defect.stays and met.meeting.when and met.defect.code not in cured:
            yield scatter, met


def _met(
    model: Model, portability: Portability, given: Sequence[str], scopes: frozenset[str] | None = None
) -> Iterator[tuple[ScatterNode, Met]]:
    """Yield the defects of each scatter node of a model, or of those in some scopes."""
    if scopes is not None and not scopes:
        return
    check = _check(model, given)
    graphs: list[Graph] = [model.graph]
    for function in model.functions:
        graphs += function.instances or [function.definition]
    for graph in graphs:
        for scatter in scatter_nodes(graph, check.facts):
            if scatter.lookup.spec is not None and (scopes is None or scatter.node.scope in scopes):
                for met in portability.met(scatter, check.broken_rules(scatter, graph)):
                    yield scatter, met


def _check(model: Model, given: Sequence[str]) -> Check:
    return Check(model, [rule for rule in all_rules() if rule.is_legality], given=given)


def accepted_illegal(
    model: Model, portability: Portability, settled: frozenset[str], given: Sequence[str] = ()
) -> tuple[Diagnostic, ...]:
    """Return warnings about defects that only illegal inputs trigger.

    Nodes in the scopes `settled` are omitted.
    """
    legal = {met.defect.code for _, met in _met(model, portability, given) if met.is_of_legal_inputs}
    check = _check(model, given)
    diagnostics = diagnose(model, portability, is_meant=lambda scope: scope not in settled, check=check)
    return tuple(
        [
            diagnostic
            for diagnostic in diagnostics
            if diagnostic.severity is Severity.WARNING and diagnostic.code not in legal
        ]
    )
