"""Checks whether a conversion would avoid the known defects that a comparison has found; for `compare`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ir_scatter.compare.phases import begin
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Lead
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.pipeline import convert
from ir_scatter.convert.risks import Origins, hidden_defects
from ir_scatter.core.errors import Error
from ir_scatter.formats import FORMATS
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.portability import meetings, portability_to
from ir_scatter.reading import read


def with_fixes(done: ComparedModels) -> ComparedModels:
    """Return comparisons in which each lead says whether `convert` avoids the defect.

    A lead is a possible cause of a difference between runners. Each conversion is tried.
    """
    if not any(compared.leads for compared in done.found):
        return done
    begin("trying conversions that avoid the defects")

    @cache
    def remaining(model: str, device: str) -> Mapping[str, set[str]] | None:
        return _remaining_defects(model, device)

    def with_fix(lead: Lead) -> Lead:
        left = remaining(lead.model, lead.device) if lead.codes else None
        if left is None:
            return lead
        is_fixed = all(scope in left and left[scope].isdisjoint(lead.codes) for scope in lead.nodes)
        return replace(lead, is_fixed=is_fixed)

    return replace(
        done,
        found=tuple(
            [replace(compared, leads=tuple(map(with_fix, compared.leads))) for compared in done.found]
        ),
    )


def _remaining_defects(path: str, device: str) -> Mapping[str, set[str]] | None:
    """Return the codes of defects that still affect each node after a conversion for a device, by scope.

    The written model is read again. None if the model cannot be converted.
    """
    try:
        conversion = convert(path, targets=(device,))
        if conversion.is_stuck:
            return {}
        model = conversion.model
        written = FORMATS[model.format].write(model, conversion.patches, conversion.move)
        result = read(path, written.content, format=model.format)
        changed = [*(patch.node.scope for patch in conversion.patches), *_of_functions(conversion)]
        left: dict[str, set[str]] = {conversion.inlined_from.get(scope, scope): set() for scope in changed}
        origins = Origins(conversion)
        portability = portability_to((device,))
        remaining = [(scatter, met) for scatter, _, met in meetings(result, portability)]
        for scatter, met in (*remaining, *hidden_defects(conversion, portability, ())):
            scope = origins.scope(scatter.node.scope)
            left.get(conversion.inlined_from.get(scope, scope), set()).add(met.defect.code)
    except (Error, OSError):
        return None
    return left


def _of_functions(conversion: Conversion) -> list[str]:
    """Return the scopes of all scatter nodes if functions were inlined: refused calls affect every node."""
    model = conversion.model
    nodes = model.definitions(scatter_types(model.domain)) if conversion.inlined else ()
    return [node.scope for node in nodes]
