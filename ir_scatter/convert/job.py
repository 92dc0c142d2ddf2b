"""One call of `convert`, from the path of a model to the files that are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ir_scatter import runners
from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion, Converted, Refused
from ir_scatter.convert.output import Files, commit, demand_destination, is_ir_path
from ir_scatter.core.atomic_write import finish_reading
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import NotEditable, UsageError
from ir_scatter.formats.base import IR
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason

_TRIALS = 64
"""How often parts of a conversion are tried: a file with more bad nodes than that finds is refused."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the caller wants.

    Attributes:
        source: the model.
        output: the new one; None if none is to be written.
        options: the keyword arguments of `convert`.
        devices: runners on which both models are to give the same outputs.
        is_dry: whether nothing is to be written.
        partial: whether to write although a node is refused.
        in_place: whether the source may be written over.
        overwrite: whether files that exist may be.
        with_diff: whether the changes are wanted as text.
    """

    source: str
    output: str | None
    options: Mapping[str, Any]
    devices: Sequence[str] = ()
    is_dry: bool = False
    partial: bool = False
    in_place: bool = False
    overwrite: bool = False
    with_diff: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What came of it.

    Attributes:
        conversion: what was rewritten and refused.
        written: the file that was written, None if none was.
        remarks: what else there is to say.
        devices: on how many inputs both models gave the same there.
        failed_devices: runners that could not tell, and why.
        diff: the changes as text, if they were asked for.
    """

    conversion: Conversion
    written: str | None = None
    remarks: tuple[str, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    failed_devices: Mapping[str, str] = field(default_factory=dict)
    diff: str | None = None

    @property
    def is_refused(self) -> bool:
        """Tell whether something that was meant is not converted."""
        return bool(self.conversion.refused)


def run_job(job: Job) -> Done:
    """Convert a model and write it.

    Raises:
        UsageError: an option does not exist, or a file is in the way.
        UnreadableModel: the model cannot be read.
        CannotWrite: nothing was written.
    """
    for name in job.devices:
        runners.find(name)
    if job.source == "-":
        raise UsageError("standard input cannot be converted, expected the path of a model")
    is_read_only = job.is_dry or job.output is None
    finished = () if is_read_only else finish_reading(Path(job.source))  # what a killed run did not get to
    model = read(job.source)
    becomes_ir = job.output is not None and model.format != IR and is_ir_path(job.output)
    if becomes_ir and job.options.get("opset") is not None:
        raise UsageError("--opset is for ONNX models, and the output is an IR")
    if job.output is not None and not job.in_place:
        is_ir = becomes_ir or model.format == IR
        demand_destination(model, job.output, is_ir=is_ir, overwrite=job.overwrite or job.is_dry)
    if not becomes_ir:
        done = _finish(job, convert(model, **job.options))
    else:
        from ir_scatter.convert.to_ir import exported

        with exported(model, job.options, partial=job.partial) as found:
            if found.is_exported:
                done = _finish(job, found.conversion, found.remarks, found.before)
            else:
                done = Done(found.conversion)
    return replace(done, remarks=finished + done.remarks)


def _finish(
    job: Job, conversion: Conversion, remarks: tuple[str, ...] = (), before: str | None = None
) -> Done:
    """Verify a conversion on devices and write it.

    Args:
        job: what the caller wants.
        conversion: what there is to write.
        remarks: what else there is to say.
        before: the model that devices are to run before, if that is not the source.
    """
    files, diff, devices, failed = None, None, dict[str, int](), dict[str, str]()
    if job.is_dry or job.with_diff or _is_wanted(job, conversion):
        conversion, files = _with_files(conversion, Path(job.output or job.source))
    if files is None:
        if job.partial:
            remarks += ("not even a part can be written",)
        return Done(conversion, None, remarks)
    if job.with_diff:
        diff = conversion.diff()
    is_same = conversion.is_empty and conversion.origin is None
    if job.devices and _is_wanted(job, conversion) and not is_same:
        from ir_scatter.convert.on_devices import verify_on

        found = verify_on(conversion, job.devices, before)
        conversion, devices, failed = found.conversion, dict(found.equal), dict(found.failed)
        remarks += found.remarks
    written = None
    if job.output is not None and not job.is_dry and not failed and _is_wanted(job, conversion):
        finished = commit(files, Path(job.output), overwrite=job.overwrite or job.in_place)
        written = job.output if files.outputs else None
        remarks += files.remarks + finished
    return Done(conversion, written, remarks, devices, failed, diff)


def _is_wanted(job: Job, conversion: Conversion) -> bool:
    return conversion.is_whole or job.partial


def _with_files(conversion: Conversion, path: Path) -> tuple[Conversion, Files | None]:
    """Return what is to be written, without the nodes that cannot be edited in place: they are refused.

    Returns:
        The conversion, with refusals more where nodes or the file cannot be edited, and the files;
        None if not even a part can be written.
    """
    if conversion.is_stuck:
        return conversion, None
    try:
        return conversion, conversion.files(path)
    except NotEditable as error:
        whole = Refused(Reason.NOT_EDITABLE, str(error), "", Location(conversion.model.path))
    nodes = [one for one in conversion.converted if one.fragment is not None]
    bad = _bad_nodes(conversion, nodes) if conversion.move is None else {}
    rest = [one for one in nodes if one not in bad]
    if not bad or not rest or _problem(conversion, rest):
        return replace(conversion, refused=(*conversion.refused, whole)), None
    scopes = {one.location.scope for one in bad}
    partly = replace(
        conversion,
        converted=tuple(one for one in conversion.converted if one not in bad),
        verified=tuple(one for one in conversion.verified if one.location.scope not in scopes),
        refused=(*conversion.refused, *(_not_editable(one, problem) for one, problem in bad.items())),
    )
    return partly, partly.files(path)


def _bad_nodes(conversion: Conversion, nodes: Sequence[Converted]) -> dict[Converted, str]:
    """Return the nodes that cannot be edited, and why; none if there are more than are looked for."""
    bad: dict[Converted, str] = {}
    parts = [nodes]
    for _ in range(_TRIALS):
        if not parts:
            return bad
        part = parts.pop()
        problem = _problem(conversion, part)
        if problem and len(part) == 1:
            bad[part[0]] = problem
        elif problem:
            middle = len(part) // 2
            parts += [part[middle:], part[:middle]]
    return {}


def _problem(conversion: Conversion, nodes: Sequence[Converted]) -> str:
    """Return why nodes cannot be edited, "" if they can."""
    try:
        replace(conversion, converted=tuple(nodes)).files(Path(conversion.model.path))
    except NotEditable as error:
        return str(error)
    return ""


def _not_editable(one: Converted, problem: str) -> Refused:
    return Refused(
        Reason.NOT_EDITABLE, problem, one.name, one.location, one.source, one.target, one.node.type
    )
