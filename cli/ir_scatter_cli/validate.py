"""`ir-scatter validate`."""

from collections.abc import Sequence

import click

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import Source, find_files
from ir_scatter.core.shapes import Shape
from ir_scatter.lint import (
    Baseline,
    Checked,
    NodeIgnore,
    Options,
    Report,
    baseline_text,
    check_files,
    make_report,
    read_baseline,
    without_known,
)
from ir_scatter.report.formats import FORMATS, render
from ir_scatter_cli import exits
from ir_scatter_cli.destinations import demand_apart
from ir_scatter_cli.options import Codes, InputShape, SettingsCommand, flatten, use_color, write
from ir_scatter_cli.progress import progress

_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}


@click.command("validate", cls=SettingsCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="How to write the findings.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--select", multiple=True, type=Codes(), help="Only codes that begin with these.")
@click.option("--ignore", multiple=True, type=Codes(), help="No codes that begin with these.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out paths that match.")
@click.option(
    "--min-severity",
    type=click.Choice([severity.value for severity in Severity]),
    default=Severity.NOTE.value,
    show_default=True,
    help="Nothing below this.",
)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--statistics", is_flag=True, help="Count the findings by code.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only, no summary.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was passed over.")
@click.option("--baseline", metavar="FILE", help="Do not report what is known in FILE.")
@click.option("--write-baseline", metavar="FILE", help="Write what is found to FILE, as known.")
@click.option(
    "--input-shape",
    multiple=True,
    type=InputShape(),
    help="Propagate this shape of an input first; repeatable.",
)
@click.option("--stdin-format", type=click.Choice(list(_STDIN_FORMATS)), help="What - is.")
@click.option(
    "--max-index-elements",
    type=click.IntRange(min=0),
    default=Options().max_index_elements,
    show_default=True,
    help="Do not read constants with more elements.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Check so many files at a time.",
)
@click.pass_obj
def command(
    node_ignores: tuple[NodeIgnore, ...] | None,
    paths: tuple[str, ...],
    format: str,
    output: str | None,
    select: tuple[tuple[str, ...], ...],
    ignore: tuple[tuple[str, ...], ...],
    exclude: tuple[str, ...],
    min_severity: str,
    strict: bool,
    statistics: bool,
    quiet: bool,
    verbose: bool,
    baseline: str | None,
    write_baseline: str | None,
    input_shape: tuple[tuple[str, Shape], ...],
    stdin_format: str | None,
    max_index_elements: int,
    jobs: int,
) -> int:
    """Hold the scatter operators of models against their documents.

    PATH is a file (.xml or .onnx, told by its content), a folder, a glob, or - for standard input.
    Defaults come from [tool.ir-scatter] of the nearest pyproject.toml.
    """
    options = Options(
        flatten(select),
        flatten(ignore),
        node_ignores or (),
        Severity(min_severity),
        max_index_elements,
        dict(input_shape),
        _STDIN_FORMATS.get(stdin_format or ""),
    )
    known = None if write_baseline else _known(baseline)
    checked = _check(_find(paths, exclude), options, jobs, quiet=quiet, verbose=verbose)
    report = _report(checked, format, known, write_baseline)
    switches = {"color": use_color(output is not None), "quiet": quiet, "statistics": statistics}
    write(render(report, format, strict=strict, **switches), output)
    return _exit_code(report, checked, strict)


def _report(
    checked: list[Checked],
    format: str,
    known: Baseline | None,
    write_baseline: str | None,
) -> Report:
    """Write the baseline if one is to be written, and leave out what it or another one knows."""
    report = make_report(checked, with_versions=FORMATS[format].shows_versions)
    if write_baseline:
        write(baseline_text(report, write_baseline), write_baseline)
        known = _known(write_baseline)
    return report if known is None else without_known(report, known.excuses)


def _known(path: str | None) -> Baseline | None:
    try:
        return read_baseline(path) if path else None
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def _find(paths: tuple[str, ...], exclude: tuple[str, ...]) -> tuple[Source, ...]:
    """Find the files that are meant, and demand that nothing is written over them."""
    if paths.count("-") and len(paths) > 1:
        raise click.UsageError("- cannot be mixed with other paths")
    found = find_files(paths, exclude)
    for folder in found.empty_folders:
        click.echo(f"ir-scatter: {folder}: no .xml or .onnx file in this folder", err=True)
    given, models = click.get_current_context().params, [source.path for source in found.sources]
    demand_apart({"-o": given["output"], "--write-baseline": given["write_baseline"]}, models)
    demand_apart({"-o": given["output"]}, (), [given["baseline"]])  # which may be brought up to date
    return found.sources


def _check(
    sources: Sequence[Source],
    options: Options,
    jobs: int,
    *,
    quiet: bool,
    verbose: bool,
) -> list[Checked]:
    """Check the files, and say on standard error what was passed over."""
    with progress(len(sources), is_wanted=not quiet) as seen:
        checked = check_files(sources, options, jobs=jobs, seen=seen)
    for one in checked:
        if verbose and one.remark:
            click.echo(f"ir-scatter: {one.remark}", err=True)
    _demand_inputs(checked, options)
    return checked


def _demand_inputs(checked: list[Checked], options: Options) -> None:
    inputs = {name for one in checked for name in one.inputs}
    is_readable = any(one.result is not None and one.result.is_readable for one in checked)
    for name in options.input_shapes:
        if is_readable and name not in inputs:
            known = ", ".join(sorted(inputs)) or "none"
            raise click.UsageError(f"--input-shape: no model has an input {name!r}, expected one of {known}")


def _exit_code(report: Report, checked: list[Checked], strict: bool) -> int:
    for one in checked:
        if one.bug and one.result is not None:
            click.echo(
                f"ir-scatter: {one.result.path}: this is a bug in ir-scatter: {one.bug}\n"
                "Please report it, with the file if you may.",
                err=True,
            )
    if any(one.bug for one in checked):
        return exits.BUG
    if not all(file.is_readable for file in report.files):
        return exits.UNREADABLE
    failing = report.count(Severity.ERROR) + (report.count(Severity.WARNING) if strict else 0)
    return exits.FINDINGS if failing else exits.OK
