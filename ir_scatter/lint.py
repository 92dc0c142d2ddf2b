"""Many files in, one report out, without the findings that a team knows already."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter import formats
from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS
from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, Related, Severity
from ir_scatter.core.errors import BadFeed, UnreadableModel, UsageError
from ir_scatter.core.files import STANDARD_INPUT, STDIN_NAME, Source, is_excluded, read_regular
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Shape, show
from ir_scatter.core.shortage import cannot_run
from ir_scatter.core.suggestions import why_missing
from ir_scatter.formats.base import IR, ONNX_FORMAT, ReadOptions
from ir_scatter.jobs import Executor, Gone, Job, NotDone, register
from ir_scatter.jobs.local import local
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.reading import read
from ir_scatter.rules import by_name
from ir_scatter.rules.selection import code_prefixes
from ir_scatter.validate import Check, check_of, file_diagnostic

if TYPE_CHECKING:
    from ir_scatter.analysis.neighbourhood import Neighbourhood

Place: TypeAlias = tuple[int, int]
"""Line and column."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file, as the caller named it, and the text around what diagnostics are about (`place_of`).

    Its format is None if that could not be told; scatter nodes of a function are counted once. Inputs are
    the names of the model's, a bug is what went wrong in this library; if it is no model and was passed
    over, `passed_over` says why. Around nodes with findings stands what `neighbourhoods` has, if asked for.
    """

    path: str
    format: str | None
    is_readable: bool
    scatter_nodes: int
    diagnostics: tuple[Diagnostic, ...]
    excerpts: Mapping[Place, Excerpt] = field(default_factory=dict)
    inputs: frozenset[str] = frozenset()
    bug: str = ""
    passed_over: str = ""
    neighbourhoods: "Mapping[Location, Neighbourhood]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run found, by file in the order they were named."""

    files: tuple[FileResult, ...]

    def diagnostics(self) -> list[Diagnostic]:
        return [found for file in self.files for found in file.diagnostics]

    def count(self, severity: Severity) -> int:
        return sum(found.severity is severity for found in self.diagnostics())


class NodeIgnore(NamedTuple):
    """Prefixes of codes that do not count for some files (a glob) and nodes (one of scopes or names)."""

    file: str
    node: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What a run looks for: codes that begin with one that is selected, all if none is, but none ignored.

    Constants with more elements than `max_index_elements` are not looked at; the format of standard input
    is told by its content if it is None. With neighbourhoods a result has what is around the nodes it names.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    node_ignores: tuple[NodeIgnore, ...] = ()
    min_severity: Severity = Severity.NOTE
    max_index_elements: int = MAX_CONSTANT_ELEMENTS
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    stdin_format: str | None = None
    with_neighbourhoods: bool = False
    targets: tuple[str, ...] = ()
    """Devices and releases whose known defects are looked for, as users name them."""


def check_files(
    sources: Sequence[Source],
    options: Options,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    seen: Callable[[FileResult], object] | None = None,
) -> list[FileResult]:
    """Check files in the order given, in so many processes or by an executor; `seen` is called after each.

    Files that nobody is left to check are left out.
    """
    if any(source.path == STANDARD_INPUT for source in sources):
        jobs, executor = 1, None
    jobs, checked = min(jobs, len(sources)), list[FileResult]()
    if jobs > 1 and any(formats.format_of(source.path) == ONNX_FORMAT for source in sources):
        with suppress(Exception):  # the package may be broken: what reads a file says so
            import ir_scatter.formats.onnx.reader  # noqa: F401  # once, not in each process
    with local(jobs) if executor is None else nullcontext(executor) as used:
        futures = [used.submit(Job("validate", (source, options), source.path)) for source in sources]
        for source, future in zip(sources, futures, strict=True):
            try:
                checked.append(future.result())
            except Gone:
                continue
            except NotDone as error:
                found = _broken(source, str(error))
                checked.append(found if error.ended else replace(found, bug=""))
            if seen is not None:
                seen(checked[-1])
    return checked


@register("validate")
def check_file(source: Source, options: Options) -> FileResult:
    """Read and validate one file; whatever is wrong with it is in the result.

    Raises:
        BadFeed: a shape for an input has another rank than the model says.
    """
    name = STDIN_NAME if source.path == STANDARD_INPUT else source.path
    try:
        return _check(name, source, options)
    except UnreadableModel as error:
        if not source.is_named and not error.is_model:
            return FileResult(name, None, False, 0, (), passed_over=error.message)
        return unreadable(error, name)
    except BadFeed:
        raise
    except Exception as error:  # our own bug: the other files are still reported
        if os.environ.get("IR_SCATTER_DEBUG"):
            raise
        if reason := cannot_run(error):
            message = f"cannot be read: {reason}"
            return unreadable(UnreadableModel("unreadable-file", message, Location(name)), name)
        return _broken(source, f"{type(error).__name__}: {error}")


def _broken(source: Source, reason: str) -> FileResult:
    found = file_diagnostic("internal-error", f"could not be checked: {reason}", Location(source.path))
    return FileResult(source.path, None, False, 0, (found,), bug=reason)


def _check(name: str, source: Source, options: Options) -> FileResult:
    data = sys.stdin.buffer.read() if source.path == STANDARD_INPUT else None
    shapes, problems = options.input_shapes, []
    model = read(name, data, format=options.stdin_format, input_shapes=shapes)
    inputs = frozenset(name for names in model.inputs for name in names)
    own = {key: shape for key, shape in shapes.items() if key in inputs}
    if own:
        _demand_ranks(read(name, data, format=options.stdin_format), own)
    if own and model.format == IR and data is None:
        from ir_scatter.runners.openvino.runner import propagate

        propagated, problem = propagate(name, own)
        if problem:
            problems.append(file_diagnostic("shapes-not-propagated", problem, Location(name)))
        if propagated:
            model = formats.read(name, options=ReadOptions(input_shapes=shapes, shapes=propagated))
    check = check_of(
        model,
        select=options.select,
        ignore=options.ignore,
        max_index_elements=options.max_index_elements,
        shapes_given=bool(shapes),
    )
    found = check.diagnostics()
    if options.targets:
        found = with_defects(check, found, options.targets, options.select, options.ignore)
    kept = [
        diagnostic
        for diagnostic in (*problems, *found)
        if diagnostic.severity.rank <= options.min_severity.rank
        and not _is_ignored(diagnostic, options.node_ignores)
    ]
    result = file_result(model, kept)
    if not options.with_neighbourhoods:
        return result
    from ir_scatter.analysis.neighbourhood import neighbourhoods  # which only pictures need

    places = {one.location for one in kept if one.location.scope}
    return replace(result, neighbourhoods=neighbourhoods(model, places))


def with_defects(
    check: Check,
    found: Sequence[Diagnostic],
    targets: tuple[str, ...],
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> list[Diagnostic]:
    """Return what was found with what nodes meet on devices, in the order of the file."""
    from ir_scatter.portability import diagnose, portability_to  # which nobody else needs

    codes, ignored = code_prefixes(select) or ("",), code_prefixes(ignore)
    portability = portability_to(targets)
    with collector_paused():
        met = diagnose(check.model, portability, check.facts.max_elements, check=check)
    more = [one for one in met if one.code.startswith(codes) and not one.code.startswith(ignored)]
    runtimes = {target.runner.partition(":")[0] for target in portability.targets}
    refused = {(one.message, one.location) for one in check.model.defects if one.refused_by in runtimes}
    known = [
        replace(one, severity=Severity.ERROR) if (one.message, one.location) in refused else one
        for one in found
    ]
    return sorted([*known, *more], key=lambda one: one.location.line or 0)


def file_result(model: Model, found: Sequence[Diagnostic]) -> FileResult:
    """Return what was found in a model as one file of a report."""
    inputs = frozenset(name for names in model.inputs for name in names)
    count = sum(1 for _ in model.definitions(scatter_types(model.domain)))
    return FileResult(model.path, model.format, True, count, tuple(found), excerpts(model, found), inputs)


def unreadable(error: UnreadableModel, path: str) -> FileResult:
    """Return why a file was not read as one file of a report."""
    found = file_diagnostic(error.defect, error.message, error.location)
    found = replace(found, span=error.span, help=error.help or found.help)
    return FileResult(path, error.format, False, 0, (found,), error.excerpts)


def excerpts(model: Model, found: Iterable[Diagnostic]) -> dict[Place, Excerpt]:
    """Return what a model's file has where diagnostics and what they refer to begin, if it has lines."""
    if model.format != IR:
        return {}
    places = set[Place | None]()
    for one in found:
        places.add(place_of(one))
        places.update(place_of(related) for related in one.related if related.location.path == model.path)
    return {place: model.source.excerpt(*place) for place in places if place is not None}


def place_of(found: Diagnostic | Related) -> Place | None:
    """Return line and column of what is wrong, or of the node; None in a format without lines."""
    if found.span is not None:
        return found.span[:2]
    line = found.location.line
    return None if line is None else (line, found.location.column or 1)


def _demand_ranks(model: Model, shapes: Mapping[str, Shape]) -> None:
    """Demand that shapes have the ranks that the model says; its dimensions may be changed."""
    from ir_scatter.formats import dataflow_of

    for input in dataflow_of(model).inputs:
        for name in input.names:
            shape = shapes.get(name)
            if shape is not None and input.shape is not None and len(shape) != len(input.shape):
                known, given = f"rank {len(input.shape)}", f"rank {len(shape)}"
                raise BadFeed(
                    f"{model.path}: {name} has shape {show(input.shape)} of {known}, "
                    f"which {show(shape)} of {given} does not fit"
                )


def _is_ignored(found: Diagnostic, ignores: Iterable[NodeIgnore]) -> bool:
    names = [found.location.scope, found.node.name if found.node else ""]
    return any(
        found.code.startswith(entry.codes)
        and is_excluded(found.location.path, [entry.file])
        and any(name == entry.node or fnmatch(name, entry.node) for name in names)
        for entry in ignores
    )


def make_report(files: Iterable[FileResult]) -> Report:
    return Report(tuple(file for file in files if not file.passed_over))


_SCHEMA = 1
_Key = tuple[str, str, str, str]


class Baseline:
    """Findings that a team knows, by code, path, scope and node, not by line; each excuses one new one."""

    def __init__(self, path: str, known: Mapping[_Key, int] | None = None) -> None:
        self.folder = Path(path).resolve().parent  # paths in the file are relative to it
        self._known = Counter(known or {})

    def new_in(self, report: Report) -> Report:
        """Return the report without what is known; files that cannot be read keep all."""
        left, files = Counter(self._known), []
        for file in report.files:
            new = []
            for found in file.diagnostics:
                key = self.key(found)
                if file.is_readable and left[key] > 0:
                    left[key] -= 1
                else:
                    new.append(found)
            files.append(replace(file, diagnostics=tuple(new)))
        return Report(tuple(files))

    def key(self, found: Diagnostic) -> _Key:
        path = os.path.relpath(found.location.path, self.folder).replace(os.sep, "/")
        return found.code, path, found.location.scope, found.node.name if found.node else ""


def read_baseline(path: str) -> Baseline:
    """Read a baseline file.

    Raises:
        UsageError: it cannot be read or is no baseline.
    """
    known: Counter[_Key] = Counter()
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
        if document["schema"] != _SCHEMA or document["schema"] is True:
            raise UsageError(f"{path}: the baseline's schema is not {_SCHEMA}")
        for entry in document["findings"]:
            named = by_name().get(entry["code"])  # who writes one by hand may know the name
            key = named.code if named else entry["code"], entry["path"], entry["scope"], entry["node"]
            count = entry.get("count", 1)
            is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
            if not is_count or not all(isinstance(part, str) for part in key):
                raise ValueError
            known[key] += count
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = why_missing(path) if is_missing else (error.strerror or "").lower()
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{path}: is no baseline of ir-scatter") from None
    return Baseline(path, known)


def baseline_text(report: Report, path: str) -> str:
    """Return the text of a baseline file for `path` that excuses everything in a report."""
    key = Baseline(path).key
    readable = [file for file in report.files if file.is_readable]
    counts = Counter(key(found) for file in readable for found in file.diagnostics)
    findings = [
        {"code": code, "path": file, "scope": scope, "node": node, "count": count}
        for (code, file, scope, node), count in sorted(counts.items())
    ]
    return json.dumps({"schema": _SCHEMA, "findings": findings}, indent=2, ensure_ascii=True) + "\n"
