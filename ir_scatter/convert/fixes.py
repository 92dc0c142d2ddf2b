"""Finds out whether a conversion for a device avoids known defects: each conversion is tried."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ir_scatter.compare.phases import begin
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Lead
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.pipeline import convert
from ir_scatter.convert.risks import Origins, hidden_defects
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.errors import Error
from ir_scatter.core.files import STANDARD_INPUT, Source
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.defects import by_code
from ir_scatter.formats import FORMATS
from ir_scatter.jobs import register
from ir_scatter.lint import FileResult, Options, check_file
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.portability import meetings, portability_to
from ir_scatter.reading import read_written


def with_fixes(done: ComparedModels) -> ComparedModels:
    """Return comparisons in which each lead says whether `convert` avoids the defect.

    A lead is a possible cause of a difference between runners. Each conversion is tried.
    """
    if not any(compared.leads for compared in done.found):
        return done
    begin("trying conversions that avoid the defects")

    @cache
    def remaining(model: str, device: str) -> Mapping[str, set[str]] | None:
        return _remaining_defects(model, (device,))

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


@register("validate-for")
def check_file_for(source: Source, options: Options) -> FileResult:
    """Read and validate one file; findings about known defects say which conversion avoids them."""
    result = check_file(source, options)
    if source.path == STANDARD_INPUT or not result.is_readable:
        return result
    return replace(result, diagnostics=with_conversions(source.path, result.diagnostics, options.targets))


def with_conversions(
    model: Model | str, diagnostics: Sequence[Diagnostic], targets: tuple[str, ...]
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of a model whose `fixed_by` says which conversion avoids a known defect.

    Args:
        model: the model, or its path.
        diagnostics: as `validate` returns them for the same devices.
        targets: devices and releases, in the user's spelling.
    """
    open_ones = [each for each in diagnostics if _may_be_avoided(each)]
    left = _remaining_defects(model, targets, verify=0) if open_ones else None
    if left is None:
        return tuple(diagnostics)
    arguments = (Parameter("targets", [*targets]),)

    def with_conversion(diagnostic: Diagnostic) -> Diagnostic:
        codes = left.get(diagnostic.location.scope)
        is_avoided = diagnostic in open_ones and codes is not None and diagnostic.code not in codes
        return replace(diagnostic, fixed_by=arguments) if is_avoided else diagnostic

    return tuple(map(with_conversion, diagnostics))


def _may_be_avoided(diagnostic: Diagnostic) -> bool:
    """Return whether another form of the node may avoid what a diagnostic reports."""
    return (
        diagnostic.code in by_code()
        and diagnostic.fixed_by is None
        and diagnostic.severity is not Severity.NOTE
    )


def _remaining_defects(
    model: Model | str, devices: tuple[str, ...], **options: Any
) -> Mapping[str, set[str]] | None:
    """Return which defects each converted node of a model still meets: {scope: codes}.

    The written model is read again. None if the model cannot be converted.
    """
    try:
        conversion = convert(model, targets=devices, **options)
        if conversion.is_stuck:
            return {}
        source = conversion.model
        written = FORMATS[source.format].write(source, conversion.patches, conversion.move)
        result = read_written(source, written.content, written.appended)
        changed = [*(patch.node.scope for patch in conversion.patches), *_of_functions(conversion)]
        left: dict[str, set[str]] = {conversion.inlined_from.get(scope, scope): set() for scope in changed}
        origins = Origins(conversion)
        portability = portability_to(devices)
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
