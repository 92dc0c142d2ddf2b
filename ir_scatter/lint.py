"""Validates many files for one report, and leaves out findings that a baseline file accepts."""

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
from ir_scatter.analysis.symbolic import count_declared, count_proofs
from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, Related, Severity
from ir_scatter.core.errors import BadFeed, BadGiven, UnreadableModel, UsageError
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
"""A place in a file: line and column."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result for one file.

    Attributes:
        path: the path as the caller wrote it.
        format: None if it could not be recognised.
        scatter_nodes: number of scatter nodes; a node in a function counts once.
        excerpts: the text around the places of diagnostics; see `place_of`.
        inputs: the names of the model's inputs.
        bug: the message of an unexpected error in this library; "" if there was none.
        passed_over: why the file was skipped, if it is not a model; "" otherwise.
        neighbourhoods: the graph around nodes with findings, if the options request it.
        proofs: number of scatter nodes by the state of the proof that their indices are in range, such as
            "conditional"; if the options request it.
        proofs_by_names: nodes in range only if dimensions of one name have one size; counted with targets.
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
    proofs: Mapping[str, int] = field(default_factory=dict)
    proofs_by_names: int = 0
    by_target: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """(scope of a node, code of a known defect) by device and release, if several are compared."""


class KnownFindings(NamedTuple):
    """What a baseline says of a run.

    Attributes:
        accepted: findings that it accepts, which the report leaves out.
        gone: findings that it accepts, and that the checked files no longer have.
    """

    accepted: int
    gone: int


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one run, in the order in which files were named.

    Attributes:
        files: their results.
        known: what the baseline says; None without one.
    """

    files: tuple[FileResult, ...]
    known: KnownFindings | None = None

    def diagnostics(self) -> list[Diagnostic]:
        return [diagnostic for file in self.files for diagnostic in file.diagnostics]

    def count(self, severity: Severity) -> int:
        return sum(diagnostic.severity is severity for diagnostic in self.diagnostics())


class NodeIgnore(NamedTuple):
    """Prefixes of codes to ignore for some files (a glob) and nodes (a glob for scopes or names)."""

    file: str
    node: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """Which checks a run makes.

    Attributes:
        select: prefixes of the codes to check; empty for all.
        ignore: prefixes of the codes to skip.
        max_index_elements: constants with more elements are not read.
        stdin_format: the format of standard input; None to recognise it by its content.
        given: conditions that inputs satisfy: "position in 0..15".
        with_neighbourhoods: whether results include the graph around nodes with findings.
        counts_proofs: whether results count the nodes whose indices are proven to be in range; they always do
            with `given` or `targets`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    node_ignores: tuple[NodeIgnore, ...] = ()
    min_severity: Severity = Severity.NOTE
    max_index_elements: int = MAX_CONSTANT_ELEMENTS
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    stdin_format: str | None = None
    with_neighbourhoods: bool = False
    counts_proofs: bool = False
    targets: tuple[str, ...] = ()
    """Devices and releases whose known defects are reported, as the user writes them: "GPU@2025.4"."""
    given: tuple[str, ...] = ()

    def may_report(self, code: str) -> bool:
        """Return whether a run with these options could report a finding with this code."""
        from ir_scatter.defects import by_code
        from ir_scatter.portability import concerns, portability_to

        is_selected = code.startswith(code_prefixes(self.select) or ("",))
        if self.min_severity is not Severity.NOTE or not is_selected:
            return False
        if code.startswith(code_prefixes(self.ignore)):
            return False
        if (defect := by_code().get(code)) is not None:
            return bool(self.targets) and any(
                concerns(target, defect) for target in portability_to(self.targets).targets
            )
        return bool(self.targets) or code != by_name()["untested-device"].code


def check_files(
    sources: Sequence[Source],
    options: Options,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    seen: Callable[[FileResult], object] | None = None,
    job: str = "validate",
) -> list[FileResult]:
    """Check files in several processes or by an executor; return results in the order of the files.

    Args:
        sources: the files.
        options: what to check.
        jobs: number of processes.
        executor: replaces these processes, for example by a fleet.
        seen: called with each result.
        job: the registered function that checks a file, with the arguments of `check_file`.

    Returns:
        One result per file, except for files that were lost with the connection to their worker.
    """
    if any(source.path == STANDARD_INPUT for source in sources):
        jobs, executor = 1, None
    jobs, checked = min(jobs, len(sources)), list[FileResult]()
    if jobs > 1 and any(formats.format_of(source.path) == ONNX_FORMAT for source in sources):
        with suppress(Exception):  # if a package is broken, the result of each file will say so
            import ir_scatter.formats.onnx.reader  # noqa: F401  # once, not in each process
    with local(jobs) if executor is None else nullcontext(executor) as pool:
        futures = [pool.submit(Job(job, (source, options), source.path)) for source in sources]
        for source, future in zip(sources, futures, strict=True):
            try:
                checked.append(future.result())
            except Gone:
                continue
            except NotDone as error:
                result = _broken(source, str(error))
                checked.append(result if error.ended else replace(result, bug=""))
            if seen is not None:
                seen(checked[-1])
    return checked


@register("validate")
def check_file(source: Source, options: Options) -> FileResult:
    """Read and validate one file; errors of reading are findings in the result too.

    Raises:
        BadFeed: the shape that the caller sets for an input has another rank than in the model.
    """
    name = STDIN_NAME if source.path == STANDARD_INPUT else source.path
    try:
        return _check(name, source, options)
    except UnreadableModel as error:
        if not source.is_named and not error.is_model:
            return FileResult(name, None, False, 0, (), passed_over=error.message)
        return unreadable(error, name)
    except (BadFeed, BadGiven):
        raise
    except Exception as error:  # a bug in this library: the other files are still reported
        if os.environ.get("IR_SCATTER_DEBUG"):
            raise
        if reason := cannot_run(error):
            message = f"cannot be read: {reason}"
            return unreadable(UnreadableModel("unreadable-file", message, Location(name)), name)
        return _broken(source, f"{type(error).__name__}: {error}")


def _broken(source: Source, reason: str) -> FileResult:
    diagnostic = file_diagnostic("internal-error", f"could not be checked: {reason}", Location(source.path))
    return FileResult(source.path, None, False, 0, (diagnostic,), bug=reason)


def _check(name: str, source: Source, options: Options) -> FileResult:
    data = sys.stdin.buffer.read() if source.path == STANDARD_INPUT else None
    shapes, problems = options.input_shapes, []
    model = read(name, data, format=options.stdin_format, input_shapes=shapes)
    inputs = frozenset(name for names in model.inputs for name in names)
    input_shapes = {key: shape for key, shape in shapes.items() if key in inputs}
    if input_shapes:
        _demand_ranks(read(name, data, format=options.stdin_format), input_shapes)
    if input_shapes and model.format == IR and data is None:
        from ir_scatter.runners.openvino.runner import propagate

        propagated, problem = propagate(name, input_shapes)
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
        given=options.given,
    )
    diagnostics = check.diagnostics()
    if options.targets:
        diagnostics = with_defects(check, diagnostics, options.targets, options.select, options.ignore)
    reported = [
        diagnostic
        for diagnostic in (*problems, *diagnostics)
        if diagnostic.severity.rank <= options.min_severity.rank
        and not _is_ignored(diagnostic, options.node_ignores)
    ]
    result = file_result(model, reported)
    if options.counts_proofs or options.given or options.targets:
        result = replace(result, proofs=count_proofs(model, check.facts))
    if options.targets:
        result = replace(result, proofs_by_names=count_declared(model, check.facts))
    if len(options.targets) > 1:
        from ir_scatter.portability import nodes_by_target, portability_to

        codes, ignored = code_prefixes(options.select) or ("",), code_prefixes(options.ignore)
        result = replace(
            result,
            by_target=nodes_by_target(
                check,
                portability_to(options.targets).targets,
                lambda code: code.startswith(codes) and not code.startswith(ignored),
            ),
        )
    if not options.with_neighbourhoods:
        return result
    from ir_scatter.analysis.neighbourhood import neighbourhoods  # imported here, as only pictures need it

    places = {diagnostic.location for diagnostic in reported if diagnostic.location.scope}
    return replace(result, neighbourhoods=neighbourhoods(model, places))


def with_defects(
    check: Check,
    diagnostics: Sequence[Diagnostic],
    targets: tuple[str, ...],
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> list[Diagnostic]:
    """Return the diagnostics and those of known defects on devices, in the order of the file.

    An error in the file that one runtime refuses and others tolerate is an error if a target has that
    runtime.
    """
    from ir_scatter.portability import diagnose, portability_to  # imported here, as only --for needs it

    codes, ignored = code_prefixes(select) or ("",), code_prefixes(ignore)
    portability = portability_to(targets)
    with collector_paused():
        of_devices = diagnose(check.model, portability, check.facts.max_elements, check=check)
    more = [
        diagnostic
        for diagnostic in of_devices
        if diagnostic.code.startswith(codes) and not diagnostic.code.startswith(ignored)
    ]
    runtimes = {target.runner.partition(":")[0] for target in portability.targets}
    refused = {
        (defect.message, defect.location) for defect in check.model.defects if defect.refused_by in runtimes
    }
    of_file = [
        replace(diagnostic, severity=Severity.ERROR)
        if (diagnostic.message, diagnostic.location) in refused
        else diagnostic
        for diagnostic in diagnostics
    ]
    return sorted([*of_file, *more], key=lambda diagnostic: diagnostic.location.line or 0)


def file_result(model: Model, diagnostics: Sequence[Diagnostic]) -> FileResult:
    """Return a `FileResult` for a model that was read, with these diagnostics."""
    inputs = frozenset(name for names in model.inputs for name in names)
    count = sum(1 for _ in model.definitions(scatter_types(model.domain)))
    return FileResult(
        model.path, model.format, True, count, tuple(diagnostics), excerpts(model, diagnostics), inputs
    )


def unreadable(error: UnreadableModel, path: str) -> FileResult:
    """Return a `FileResult` for a file that cannot be read, with the error as a finding."""
    diagnostic = file_diagnostic(error.defect, error.message, error.location)
    diagnostic = replace(diagnostic, span=error.span, help=error.help or diagnostic.help)
    return FileResult(path, error.format, False, 0, (diagnostic,), error.excerpts)


def excerpts(model: Model, diagnostics: Iterable[Diagnostic]) -> dict[Place, Excerpt]:
    """Return the text at the places of diagnostics and related places; empty for a format without lines."""
    if model.format != IR:
        return {}
    places = set[Place | None]()
    for diagnostic in diagnostics:
        places.add(place_of(diagnostic))
        places.update(
            place_of(related) for related in diagnostic.related if related.location.path == model.path
        )
    return {place: model.source.excerpt(*place) for place in places if place is not None}


def place_of(diagnostic: Diagnostic | Related) -> Place | None:
    """Return line and column of the faulty part, or of the node; None for a format without lines."""
    if diagnostic.span is not None:
        return diagnostic.span[:2]
    line = diagnostic.location.line
    return None if line is None else (line, diagnostic.location.column or 1)


def _demand_ranks(model: Model, shapes: Mapping[str, Shape]) -> None:
    """Raise BadFeed if a shape has another rank than the model's input; dimensions may differ."""
    from ir_scatter.formats import dataflow_of

    for input in dataflow_of(model).inputs:
        for name in input.names:
            shape = shapes.get(name)
            if shape is not None and input.shape is not None and len(shape) != len(input.shape):
                stored = f"{show(input.shape)} of rank {len(input.shape)}"
                raise BadFeed(
                    f"{model.path}: {name} has shape {stored}, "
                    f"which {show(shape)} of rank {len(shape)} does not fit"
                )


def _is_ignored(diagnostic: Diagnostic, ignores: Iterable[NodeIgnore]) -> bool:
    names = [diagnostic.location.scope, diagnostic.node.name if diagnostic.node else ""]
    return any(
        diagnostic.code.startswith(entry.codes)
        and is_excluded(diagnostic.location.path, [entry.file])
        and any(name == entry.node or fnmatch(name, entry.node) for name in names)
        for entry in ignores
    )


def make_report(files: Iterable[FileResult]) -> Report:
    return Report(tuple(file for file in files if not file.passed_over))


_SCHEMA = 1
_Key = tuple[str, str, str, str]


class Baseline:
    """Findings that the user accepts, identified by code, path, scope and node, but not by line.

    Each entry accepts one finding.
    """

    def __init__(self, path: str, accepted: Mapping[_Key, int] | None = None) -> None:
        self.folder = Path(path).resolve().parent  # paths in the baseline file are relative to its folder
        self._accepted = Counter(accepted or {})

    def new_in(self, report: Report, options: Options | None = None) -> Report:
        """Return the report without accepted findings; unreadable files keep all findings.

        Args:
            report: of all findings.
            options: those of the run, as findings that it does not look for are not gone.
        """
        remaining, files = Counter(self._accepted), []
        for file in report.files:
            new = []
            for diagnostic in file.diagnostics:
                key = self.key(diagnostic)
                if file.is_readable and remaining[key] > 0:
                    remaining[key] -= 1
                else:
                    new.append(diagnostic)
            files.append(replace(file, diagnostics=tuple(new)))
        accepted = self._accepted.total() - remaining.total()
        gone = self._gone(remaining, report, options or Options())
        return Report(tuple(files), KnownFindings(accepted, gone.total()))

    def without_gone(self, report: Report, options: Options) -> "Baseline":
        """Return a baseline without the findings that are gone; `report` is of all findings."""
        found = Counter(self.key(each) for file in report.files for each in file.diagnostics)
        gone = self._gone(self._accepted - found, report, options)
        return Baseline(str(self.folder / "baseline"), self._accepted - gone)

    def _gone(self, remaining: "Counter[_Key]", report: Report, options: Options) -> "Counter[_Key]":
        """Return accepted findings that the run looked for in vain, or whose file no longer exists."""
        read_paths = {self._path(file.path) for file in report.files if file.is_readable}
        named_paths = {self._path(file.path) for file in report.files}
        return Counter(
            {
                key: count
                for key, count in remaining.items()
                if count > 0
                and options.may_report(key[0])
                and (
                    key[1] in read_paths
                    or (key[1] not in named_paths and not os.path.lexists(self.folder / key[1]))
                )
            }
        )

    def key(self, diagnostic: Diagnostic) -> _Key:
        name = diagnostic.node.name if diagnostic.node else ""
        return diagnostic.code, self._path(diagnostic.location.path), diagnostic.location.scope, name

    def _path(self, path: str) -> str:
        return os.path.relpath(path, self.folder).replace(os.sep, "/")

    def text(self) -> str:
        """Return the text of its file."""
        findings = [
            {"code": code, "path": path, "scope": scope, "node": node, "count": count}
            for (code, path, scope, node), count in sorted(self._accepted.items())
            if count
        ]
        return json.dumps({"schema": _SCHEMA, "findings": findings}, indent=2, ensure_ascii=True) + "\n"

    def __len__(self) -> int:
        """Return the number of accepted findings."""
        return self._accepted.total()


def read_baseline(path: str) -> Baseline:
    """Read a baseline file.

    Raises:
        UsageError: it cannot be read or is not a baseline.
    """
    accepted: Counter[_Key] = Counter()
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
        if document["schema"] != _SCHEMA or document["schema"] is True:
            raise UsageError(f"{path}: the baseline's schema is not {_SCHEMA}")
        for entry in document["findings"]:
            # a baseline written by hand may contain the rule's name instead of its code
            rule = by_name().get(entry["code"])
            key = rule.code if rule else entry["code"], entry["path"], entry["scope"], entry["node"]
            count = entry.get("count", 1)
            is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
            if not is_count or not all(isinstance(part, str) for part in key):
                raise ValueError
            accepted[key] += count
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = why_missing(path) if is_missing else (error.strerror or "").lower()
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{path}: is not a baseline of ir-scatter") from None
    return Baseline(path, accepted)


def baseline_of(report: Report, path: str) -> Baseline:
    """Return a baseline at `path` that accepts every finding of a report."""
    key = Baseline(path).key
    readable = [file for file in report.files if file.is_readable]
    return Baseline(path, Counter(key(diagnostic) for file in readable for diagnostic in file.diagnostics))
