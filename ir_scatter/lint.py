"""Many files in, one report out."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from ir_scatter import formats
from ir_scatter.analysis.facts import MAX_CONSTANT_ELEMENTS
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import STANDARD_INPUT, Source, is_excluded
from ir_scatter.core.model import Model
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.report.report import STDIN_NAME, FileResult, Report
from ir_scatter.validate import count_scatter_nodes, file_diagnostic, read_data, unreadable, validate

if TYPE_CHECKING:
    from ir_scatter.core.shapes import Shape

_LINE_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class NodeIgnore:
    """Codes that do not count for some nodes of some files.

    Attributes:
        file: a glob of paths.
        node: a glob of scopes or names of nodes.
        codes: prefixes of codes.
    """

    file: str
    node: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What a run looks for.

    Attributes:
        select: only codes that begin with one of these; empty for all.
        ignore: no codes that begin with one of these.
        node_ignores: what to ignore for some nodes.
        min_severity: nothing below it.
        max_index_elements: constants with more elements are not looked at.
        input_shapes: shapes of inputs, by name.
        stdin_format: the format of standard input; by its content if None.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    node_ignores: tuple[NodeIgnore, ...] = ()
    min_severity: Severity = Severity.NOTE
    max_index_elements: int = MAX_CONSTANT_ELEMENTS
    input_shapes: "Mapping[str, Shape]" = field(default_factory=dict)
    stdin_format: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """One source, looked at.

    Attributes:
        result: None if the file was passed over, being no model.
        remark: why it was passed over.
        bug: what went wrong in this library, "" if nothing did.
        inputs: the names of the model's inputs.
    """

    result: FileResult | None
    remark: str = ""
    bug: str = ""
    inputs: frozenset[str] = frozenset()


def check_files(
    sources: Sequence[Source],
    options: Options,
    *,
    jobs: int = 1,
    seen: Callable[[Checked], None] | None = None,
) -> list[Checked]:
    """Check many files, in parallel if asked, in the order given.

    Args:
        sources: the files.
        options: what to look for.
        jobs: how many processes.
        seen: called after each file, for a progress bar.
    """
    checked = []
    for one in _run(sources, options, min(jobs, len(sources))):
        checked.append(one)
        if seen is not None:
            seen(one)
    return checked


def _run(sources: Sequence[Source], options: Options, jobs: int) -> Iterator[Checked]:
    if jobs < 2 or any(source.path == STANDARD_INPUT for source in sources):
        for source in sources:
            yield check_file(source, options)
        return
    from ir_scatter.core.parallel import in_processes

    if any(formats.format_of(source.path) == ONNX_FORMAT for source in sources):
        with suppress(Exception):  # the package may be broken: what reads a file says so
            import ir_scatter.formats.onnx.reader  # noqa: F401  # once, not in each process
    for source, checked in in_processes(check_file, sources, options, jobs):
        yield checked or _broken(source, "the process that read the file ended")


def check_file(source: Source, options: Options) -> Checked:
    """Read and validate one file; whatever is wrong with it is in the result."""
    name = STDIN_NAME if source.path == STANDARD_INPUT else source.path
    try:
        return _check(name, source, options)
    except UnreadableModel as error:
        if not source.is_named and not error.is_model:
            return Checked(None, f"{name}: passed over: {error.message}")
        found = unreadable(error)
        return Checked(FileResult(name, error.format, False, 0, (found,), error.lines))
    except Exception as error:  # our own bug: the other files are still reported
        if os.environ.get("IR_SCATTER_DEBUG"):
            raise
        return _broken(source, f"{type(error).__name__}: {error}")


def _broken(source: Source, reason: str) -> Checked:
    found = file_diagnostic("internal-error", f"could not be checked: {reason}", source.path)
    return Checked(FileResult(source.path, None, False, 0, (found,)), bug=reason)


def _check(name: str, source: Source, options: Options) -> Checked:
    data = sys.stdin.buffer.read() if source.path == STANDARD_INPUT else None
    shapes = options.input_shapes
    model, problems = read_with_shapes(name, data, options.stdin_format, shapes)
    found = validate(
        model,
        select=options.select,
        ignore=options.ignore,
        max_index_elements=options.max_index_elements,
        shapes_given=bool(shapes),
    )
    kept = [
        diagnostic
        for diagnostic in (*problems, *found)
        if diagnostic.severity.rank <= options.min_severity.rank
        and not _is_ignored(diagnostic, options.node_ignores)
    ]
    inputs = frozenset(name for names in model.inputs for name in names)
    result = FileResult(
        name, model.format, True, count_scatter_nodes(model), tuple(kept), _lines(model, kept)
    )
    return Checked(result, inputs=inputs)


def read_with_shapes(
    name: str, data: bytes | None, format: str | None, shapes: "Mapping[str, Shape]"
) -> tuple[Model, list[Diagnostic]]:
    """Read a model with the shapes of some inputs given, and say if they cannot be propagated."""
    model = read_data(name, data, format=format, input_shapes=shapes)
    own = {key: shape for key, shape in shapes.items() if any(key in names for names in model.inputs)}
    if not own or model.format != IR or data is not None:
        return model, []
    from ir_scatter.runners.openvino.questions import propagate

    propagated, problem = propagate(name, own)
    problems = [file_diagnostic("shapes-not-propagated", problem, name)] if problem else []
    if propagated:
        model = formats.read(name, input_shapes=shapes, shapes=propagated)
    return model, problems


def _is_ignored(found: Diagnostic, ignores: Iterable[NodeIgnore]) -> bool:
    for entry in ignores:
        if not found.code.startswith(entry.codes) or not is_excluded(found.location.path, [entry.file]):
            continue
        names = [found.location.scope, found.node.name if found.node else ""]
        if any(name == entry.node or fnmatch(name, entry.node) for name in names):
            return True
    return False


def _lines(model: Model, found: Iterable[Diagnostic]) -> dict[int, str]:
    """Return the lines of the file that the findings stand on."""
    line = getattr(model.source, "line", None)
    if line is None:
        return {}
    places = [diagnostic.location for diagnostic in found]
    return {
        place.line: line(place.line)[:_LINE_LIMIT]
        for place in places
        if isinstance(place, Location) and place.line
    }


def make_report(checked: Iterable[Checked]) -> Report:
    return Report(tuple(one.result for one in checked if one.result is not None))


def without_known(report: Report, known: Callable[[Diagnostic], bool]) -> Report:
    """Return the report without the findings that are known already."""
    return replace(
        report,
        files=tuple(
            replace(
                file,
                diagnostics=tuple(
                    found for found in file.diagnostics if not file.is_readable or not known(found)
                ),
            )
            for file in report.files
        ),
    )
