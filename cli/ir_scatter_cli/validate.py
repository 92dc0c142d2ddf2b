"""`ir-scatter validate`."""

from typing import Any

import click

from ir_scatter.core.diagnostics import Severity
from ir_scatter.lint import (
    FileResult,
    NodeIgnore,
    Options,
    Report,
    baseline_text,
    check_files,
    make_report,
    read_baseline,
)
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, find_sources
from ir_scatter_cli.options import (
    Codes,
    SettingsCommand,
    choice_option,
    exclude_option,
    flatten,
    format_option,
    input_shape_option,
    number_option,
    output_option,
)
from ir_scatter_cli.output import progress, report, write

_STDIN_FORMATS = {"ir": "openvino-ir", "onnx": "onnx"}


@click.command("validate", cls=SettingsCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@format_option("findings", "How to write the findings.")
@output_option
@click.option("--select", multiple=True, type=Codes(), help="Only codes that begin with these.")
@click.option("--ignore", multiple=True, type=Codes(), help="No codes that begin with these.")
@exclude_option
@choice_option("--min-severity", [one.value for one in Severity], "Nothing below this.", Severity.NOTE.value)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--statistics", is_flag=True, help="Count the findings by code.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only, no summary.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was passed over.")
@click.option("--baseline", metavar="FILE", help="Do not report what is known in FILE.")
@click.option("--write-baseline", metavar="FILE", help="Write what is found to FILE, as known.")
@input_shape_option("Propagate this shape of an input first; repeatable.")
@choice_option("--stdin-format", _STDIN_FORMATS, "What - is.")
@number_option(
    "--max-index-elements",
    default=Options().max_index_elements,
    least=0,
    metavar=None,
    help="Do not read constants with more elements.",
)
@number_option("-j", "--jobs", default=1, help="Check so many files at a time.")
@click.pass_obj
def command(node_ignores: tuple[NodeIgnore, ...] | None, /, **given: Any) -> int:
    """Hold the scatter operators of models against their documents.

    PATH is a file (.xml or .onnx, told by its content), a folder, a glob, or - for standard input.
    Defaults come from [tool.ir-scatter] of the nearest pyproject.toml.
    """
    options = Options(
        flatten(given["select"]),
        flatten(given["ignore"]),
        node_ignores or (),
        Severity(given["min_severity"]),
        given["max_index_elements"],
        dict(given["input_shape"]),
        _STDIN_FORMATS.get(given["stdin_format"] or ""),
    )
    paths, output, new = given["paths"], given["output"], given["write_baseline"]
    known = read_baseline(given["baseline"]) if given["baseline"] and not new else None
    if paths.count("-") and len(paths) > 1:
        raise click.UsageError("- cannot be mixed with other paths")
    sources = find_sources(paths, given["exclude"])
    demand_apart({"-o": output, "--write-baseline": new}, [source.path for source in sources])
    demand_apart({"-o": output}, (), [given["baseline"]])  # which may be brought up to date
    with progress(len(sources), is_wanted=not given["quiet"]) as seen:
        checked = check_files(sources, options, jobs=given["jobs"], seen=seen)
    for one in checked:
        if given["verbose"] and one.passed_over:
            click.echo(f"ir-scatter: {one.path}: passed over: {one.passed_over}", err=True)
    found = make_report(checked)
    _demand_inputs(checked, found, options)
    if new:
        write(baseline_text(found, new), new)
        known = read_baseline(new)
    if known is not None:
        found = known.new_in(found)
    switches = {name: given[name] for name in ("quiet", "statistics", "strict")}
    report("findings", given["format"], found, output, **switches)
    return _exit_code(found, checked, given["strict"])


def _demand_inputs(checked: list[FileResult], found: Report, options: Options) -> None:
    inputs = {name for one in checked for name in one.inputs}
    for name in options.input_shapes:
        if name not in inputs and any(file.is_readable for file in found.files):
            known = ", ".join(sorted(inputs)) or "none"
            raise click.UsageError(f"--input-shape: no model has an input {name!r}, expected one of {known}")


def _exit_code(report: Report, checked: list[FileResult], strict: bool) -> int:
    for one in checked:
        if one.bug:
            click.echo(
                f"ir-scatter: {one.path}: this is a bug in ir-scatter: {one.bug}\n"
                "Please report it, with the file if you may.",
                err=True,
            )
    if any(one.bug for one in checked):
        return exits.BUG
    if not all(file.is_readable for file in report.files):
        return exits.UNREADABLE
    failing = report.count(Severity.ERROR) + (report.count(Severity.WARNING) if strict else 0)
    return exits.FINDINGS if failing else exits.OK
