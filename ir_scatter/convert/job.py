"""One call of `convert`, from the path of a model to the files that are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.destination import demand_destination, is_ir_path
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Model
from ir_scatter.formats import IR
from ir_scatter.reading import read


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
    _demand_devices(job.devices)
    if job.source == "-":
        raise UsageError("standard input cannot be converted, expected the path of a model")
    finished = _finish_source(job)
    model = read(job.source)
    if job.output is not None and model.format != IR and is_ir_path(job.output):
        from ir_scatter.convert.to_ir import run_to_ir

        done = run_to_ir(job, model)
    else:
        demand_output(job, model, is_ir=model.format == IR)
        done = finish(job, convert(model, **job.options))
    return replace(done, remarks=finished + done.remarks)


def _finish_source(job: Job) -> tuple[str, ...]:
    """Replace those files of the source that a killed run did not get to, if anything is to be written."""
    from ir_scatter.core.replacement_journal import finish_reading

    return () if job.is_dry or job.output is None else finish_reading(Path(job.source))


def demand_output(job: Job, model: Model, *, is_ir: bool) -> None:
    """Demand that the output, if one is wanted, can be written; see `demand_destination`."""
    if job.output is not None and not job.in_place:
        demand_destination(model, job.output, is_ir=is_ir, overwrite=job.overwrite or job.is_dry)


def finish(
    job: Job, conversion: Conversion, remarks: tuple[str, ...] = (), before: str | None = None
) -> Done:
    """Verify a conversion on devices and write it.

    Args:
        job: what the caller wants.
        conversion: what there is to write.
        remarks: what else there is to say.
        before: the model that devices are to run before, if that is not the source.
    """
    from ir_scatter.convert.editable import with_files
    from ir_scatter.convert.writing import commit

    files = None
    if job.is_dry or job.with_diff or _is_wanted(job, conversion):
        conversion, files = with_files(conversion, Path(job.output or job.source))
    if job.partial and files is None:
        remarks += ("not even a part can be written",)
    diff = conversion.diff() if job.with_diff and files is not None else None
    devices: Mapping[str, int] = {}
    failed: Mapping[str, str] = {}
    is_same = conversion.is_empty and conversion.origin is None
    if job.devices and files is not None and _is_wanted(job, conversion) and not is_same:
        from ir_scatter.convert.on_devices import verify_on

        found = verify_on(conversion, job.devices, before)
        conversion, devices, failed = found.conversion, found.equal, found.failed
        remarks += found.remarks
    done = Done(conversion, None, remarks, devices, failed, diff)
    if job.output is None or job.is_dry or failed or files is None or not _is_wanted(job, conversion):
        return done
    finished = commit(files, Path(job.output), overwrite=job.overwrite or job.in_place)
    written = job.output if files.outputs else None
    return replace(done, written=written, remarks=remarks + files.remarks + finished)


def _is_wanted(job: Job, conversion: Conversion) -> bool:
    return conversion.is_whole or job.partial


def _demand_devices(names: Sequence[str]) -> None:
    """Demand that there are such runners, before any work is done."""
    if names:
        from ir_scatter import runners

        for name in names:
            runners.find(name)
