"""A call of `convert`, from the path of a model to the written files."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ir_scatter import runners
from ir_scatter.convert.conversion import Conversion, ConversionRun, Converted, Refused
from ir_scatter.convert.output import Files, commit, demand_destination, is_ir_path
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.atomic_write import finish_reading
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import NotEditable, UsageError
from ir_scatter.core.files import STANDARD_INPUT
from ir_scatter.core.parameters import Parameter
from ir_scatter.formats.base import IR
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason

_TRIALS = 64
"""Limit of uneditable nodes that are found by repeated writing and refused; beyond, the file is refused."""


@dataclass(frozen=True, slots=True)
class ConversionJob:
    """The user's request; `options` are the keyword arguments of `convert`."""

    source: str
    output: str | None
    options: Mapping[str, Any]
    devices: Sequence[str] = ()
    is_dry: bool = False
    partial: bool = False
    in_place: bool = False
    overwrite: bool = False
    with_diff: bool = False


def run_job(job: ConversionJob) -> ConversionRun:
    """Convert a model, verify it on devices, and write it."""
    for name in job.devices:
        runners.find(name)
    if job.source == STANDARD_INPUT:
        raise UsageError("standard input cannot be converted, expected the path of a model")
    is_read_only = job.is_dry or job.output is None
    remarks = () if is_read_only else finish_reading(Path(job.source))  # complete the renames of a killed run
    model = read(job.source)
    becomes_ir = job.output is not None and model.format != IR and is_ir_path(job.output)
    if becomes_ir and job.options.get("opset") is not None:
        raise UsageError(f"{Parameter('opset')} is for ONNX models, and the output is an IR")
    if job.output is not None and not job.in_place:
        is_ir = becomes_ir or model.format == IR
        demand_destination(model, job.output, is_ir=is_ir, overwrite=job.overwrite or job.is_dry)
    with ExitStack() as opened:
        if not becomes_ir:
            return _finished(job, ConversionRun(convert(model, **job.options), remarks=remarks))
        from ir_scatter.convert.to_ir import exported

        done, before = opened.enter_context(exported(model, job.options, partial=job.partial))
        done = replace(done, remarks=remarks + done.remarks)
        return done if done.conversion.model.format != IR else _finished(job, done, before)


def _finished(job: ConversionJob, done: ConversionRun, before: str | None = None) -> ConversionRun:
    """Verify a conversion on devices and write it.

    `before` is the path of the model to compare with; None for the source.
    """
    warnings = [
        f"{warning.location.scope}: {warning.code} {warning.message}; {warning.help}"
        for warning in done.conversion.warnings
    ]
    remarks = (*done.remarks, *done.conversion.inlining(), *warnings, *done.conversion.costs)
    done, files = replace(done, remarks=remarks), None
    if job.is_dry or job.with_diff or job.partial or done.conversion.is_whole:
        conversion, files = _with_files(done.conversion, Path(job.output or job.source))
        done = replace(done, conversion=conversion)
    if files is None:
        more = ("no part of the model can be written",) if job.partial else ()
        return replace(done, remarks=done.remarks + more)
    if job.with_diff:
        done = replace(done, diff=conversion.diff())
    is_same = conversion.is_empty and conversion.origin is None
    if job.devices and (job.partial or conversion.is_whole) and not is_same:
        from ir_scatter.convert.on_devices import verify_on

        done = verify_on(done, job.devices, before)
    is_wanted = (job.partial or done.conversion.is_whole) and not done.failed_devices
    if job.output is None or job.is_dry or not is_wanted:
        return done
    finished = commit(files, Path(job.output), overwrite=job.overwrite or job.in_place)
    written = job.output if files.outputs else None
    return replace(done, written=written, remarks=done.remarks + files.remarks + finished)


def _with_files(conversion: Conversion, path: Path) -> tuple[Conversion, Files | None]:
    """Return the conversion and its files; nodes that cannot be edited safely become refusals.

    The files are None if nothing can be written.
    """
    whole, bad, rest = list[Refused](), dict[Converted, Refused](), conversion
    for _ in range(_TRIALS):
        if rest.is_stuck or (whole and (rest.move is not None or not rest.patches)):
            break
        try:
            return rest, rest.files(path)
        except NotEditable as error:
            code, why, nodes = Reason.NOT_EDITABLE, str(error), error.nodes
        whole = whole or [Refused(code, why, "", Location(conversion.model.path))]
        for converted in rest.converted:
            if converted.node in nodes:
                bad[converted] = Refused(
                    code,
                    why,
                    converted.name,
                    converted.location,
                    converted.source,
                    converted.target,
                    converted.node.type,
                )
        if not nodes:
            break
        scopes = {converted.location.scope for converted in bad}
        rest = replace(
            conversion,
            converted=tuple(converted for converted in conversion.converted if converted not in bad),
            verified=tuple(
                converted for converted in conversion.verified if converted.location.scope not in scopes
            ),
            refused=(
                *conversion.refused,
                *(bad[converted] for converted in conversion.converted if converted in bad),
            ),
        )
    return replace(conversion, refused=(*conversion.refused, *whole)), None
