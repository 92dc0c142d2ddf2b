"""One call of `convert`, from the path of a model to the files that are written."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion
from ir_scatter.errors import UsageError
from ir_scatter.formats import IR
from ir_scatter.model import Model
from ir_scatter.validate import read


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
    """

    source: str
    output: str | None
    options: Mapping[str, Any]
    devices: Sequence[str] = ()
    is_dry: bool = False
    partial: bool = False
    in_place: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What came of it.

    Attributes:
        conversion: what was rewritten and refused.
        written: the file that was written, None if none was.
        remarks: what else there is to say.
        devices: on how many inputs both models gave the same there.
        failed_devices: runners that could not tell, and why.
    """

    conversion: Conversion
    written: str | None = None
    remarks: tuple[str, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    failed_devices: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_refused(self) -> bool:
        """Tell whether something that was meant is not converted."""
        return bool(self.conversion.refused)


def run_job(job: Job) -> Done:
    """Convert a model and write it.

    Raises:
        UsageError: an option does not exist, or a file is in the way.
        UnreadableModel: the model cannot be read.
        NotEditable: it is written in a way that cannot be edited in place.
        CannotWrite: nothing was written.
    """
    model = read(job.source)
    if job.output is not None and model.format != IR and job.output.lower().endswith(".xml"):
        from ir_scatter.convert.to_ir import run_to_ir

        return run_to_ir(job, model)
    _demand_format(job, model)
    demand_free(job, model)
    return finish(job, convert(model, **job.options))


def finish(job: Job, conversion: Conversion, remarks: tuple[str, ...] = ()) -> Done:
    """Verify a conversion on devices and write it."""
    devices: dict[str, int] = {}
    failed: dict[str, str] = {}
    if job.devices and conversion.is_whole | job.partial:
        from ir_scatter.convert.on_devices import verify_on

        conversion, devices, failed = verify_on(conversion, job.devices)
        remarks += tuple(f"{name}: {reason}" for name, reason in failed.items())
    is_wanted = job.output is not None and not job.is_dry and not failed
    if job.output is None or not is_wanted or not (conversion.is_whole or job.partial):
        return Done(conversion, None, remarks, devices, failed)
    conversion.write(job.output, overwrite=job.overwrite or job.in_place, partial=job.partial)
    return Done(conversion, job.output, remarks, devices, failed)


def _demand_format(job: Job, model: Model) -> None:
    if model.format == IR and job.output is not None and job.output.lower().endswith(".onnx"):
        raise UsageError("an IR cannot become an ONNX model, expected an output that ends in .xml")


def demand_free(job: Job, model: Model) -> None:
    """Demand that no file of the source is written over, and before any work that the output is free."""
    if job.output is None or job.in_place:
        return
    output = Path(job.output)
    is_ir = output.suffix.lower() == ".xml"
    written = [output, output.with_suffix(".bin")] if is_ir else [output]
    sources = (
        [Path(model.path), Path(model.path).with_suffix(".bin")] if model.format == IR else [Path(model.path)]
    )
    for path in written:
        if any(_is_same(path, source) for source in sources):
            raise UsageError(f"{path} is a file of the model itself, expected another one or --in-place")
        if os.path.lexists(path) and not job.overwrite and not job.is_dry:
            raise UsageError(f"{path} exists, expected a path that is free or --overwrite")


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False
