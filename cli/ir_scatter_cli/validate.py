"""`ir-scatter validate`."""

from itertools import count
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.lint import (
    FileResult,
    Options,
    Report,
    baseline_text,
    check_files,
    make_report,
    read_baseline,
)
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, find_sources
from ir_scatter_cli.fleet import FLEET, fleet_options, lost, used_fleet
from ir_scatter_cli.options import (
    SettingsCommand,
    choice_option,
    codes_option,
    exclude_option,
    file_option,
    flatten,
    format_option,
    input_shape_option,
    models_argument,
    number_option,
    output_option,
    stdin_format_option,
    where_from,
    words_option,
)
from ir_scatter_cli.output import report, spinner, write

if TYPE_CHECKING:
    from ir_scatter.settings import Settings

_EXAMPLES = {
    "every defect of a model, with its place": "ir-scatter validate model.xml",
    "of a folder, for code scanning": "ir-scatter validate models --format sarif -o findings.sarif",
    "one rule by its name, one group of rules less": "ir-scatter validate model.onnx "
    "--select index-out-of-range --ignore SCT5",
    "with shapes that the file leaves open": "ir-scatter validate model.onnx --input-shape data=4,5",
    "what two devices will refuse or get wrong": "ir-scatter validate model.xml --for CPU,GPU",
    "only what is new from today on": "ir-scatter validate models --write-baseline known.json",
    "thousands, on other machines": "ir-scatter validate models --scheduler tls://lab:8786",
}
_SECTIONS = {
    "What is reported": "--for --select --ignore --min-severity --baseline --write-baseline --strict",
    "What is looked at": "--exclude --input-shape --stdin-format --max-index-elements --jobs",
    "Who does it": f"{FLEET} --resume",
    "How it is written": "--format --output --docs-url --statistics --quiet --verbose",
}


@click.command("validate", cls=SettingsCommand, examples=_EXAMPLES, sections=_SECTIONS)
@models_argument("paths", "PATH...", several=True)
@format_option("findings", "How to write the findings.")
@output_option
@codes_option("--select", "Only these rules: names, or beginnings of codes.")
@codes_option("--ignore", "None of these rules.")
@exclude_option
@choice_option("--min-severity", [one.value for one in Severity], "Nothing below this.", Severity.NOTE.value)
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@words_option(
    "--for", "targets", kind="runners", metavar="DEVICE", help="Known defects of it too; repeatable."
)
@click.option("--docs-url", metavar="URL", help="The site of the pages, for links in SARIF.")
@click.option("--statistics", is_flag=True, help="Count the findings by code.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only, no summary.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was passed over.")
@file_option("--baseline", metavar="FILE", help="Do not report what is known in FILE.")
@file_option("--write-baseline", metavar="FILE", help="Write what is found to FILE, as known.")
@input_shape_option("Propagate this shape of an input first; repeatable.")
@stdin_format_option
@number_option(
    "--max-index-elements",
    default=Options().max_index_elements,
    least=0,
    help="Do not read constants with more elements.",
)
@number_option("-j", "--jobs", default=1, help="Check so many files at a time.")
@fleet_options(resume="Do not do again what an earlier run finished.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Hold the scatter operators of models against their documents.

    PATH is a file (.xml or .onnx, told by its content), a folder, a glob, or - for standard input.
    Defaults come from [tool.ir-scatter] of the nearest pyproject.toml.
    """
    settings: Settings | None = context.obj
    options = Options(
        flatten(given["select"]),
        flatten(given["ignore"]),
        settings.node_ignores if settings else (),
        Severity(given["min_severity"]),
        given["max_index_elements"],
        dict(given["input_shape"]),
        given["stdin_format"],
        with_neighbourhoods=given["format"] == "html",
        targets=given["targets"],
    )
    if options.targets:
        from ir_scatter.portability import portability_to

        portability_to(options.targets)  # which says what is no device before anything is read
    paths, output, new = given["paths"], given["output"], given["write_baseline"]
    known = None
    if given["baseline"] and not new:
        try:
            known = read_baseline(given["baseline"])
        except UsageError as error:
            raise UsageError(f"{where_from(context, 'baseline')}: {error}") from None
    sources = find_sources(paths, given["exclude"])
    demand_apart({"-o": output, "--write-baseline": new}, [source.path for source in sources])
    demand_apart({"-o": output}, (), [given["baseline"]])  # which may be brought up to date
    with used_fleet(given) as fleet, spinner() as tell:
        numbers = count(1)
        seen = None if tell is None else lambda _: tell(f"{next(numbers)} of {len(sources)} files")
        if tell is not None and fleet is not None:
            tell(fleet)
            seen = None
        try:
            checked = check_files(sources, options, jobs=given["jobs"], engine=fleet, seen=seen)
        except BadFeed as error:
            raise UsageError(f"{where_from(context, 'input_shape')}: {error}") from None
    for one in checked:
        if given["verbose"] and one.passed_over:
            click.echo(f"ir-scatter: {one.path}: passed over: {one.passed_over}", err=True)
    found = make_report(checked)
    _demand_inputs(checked, found, options, where_from(context, "input_shape"))
    if new:
        write(baseline_text(found, new), new)
        known = read_baseline(new)
    if known is not None:
        found = known.new_in(found)
    switches = {name: given[name] for name in ("quiet", "statistics", "strict")}
    report("findings", given["format"], found, output, docs_url=given["docs_url"], **switches)
    if fleet is not None and fleet.gone:
        return lost(fleet, len(sources) - len(checked), "file")
    return _exit_code(found, checked, given["strict"])


def _demand_inputs(checked: list[FileResult], found: Report, options: Options, option: str) -> None:
    inputs = {name for one in checked for name in one.inputs}
    for name in options.input_shapes:
        if name not in inputs and any(file.is_readable for file in found.files):
            guess, known = did_you_mean(name, inputs), ", ".join(sorted(inputs)) or "none"
            raise UsageError(f"{option}: no model has an input {name!r}{guess}, expected one of {known}")


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
