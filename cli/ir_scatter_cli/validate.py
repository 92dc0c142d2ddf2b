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
from ir_scatter_cli.files import demand_apart, demand_free, demand_free_baseline, find_sources
from ir_scatter_cli.fleet import fleet_options, lost, used_fleet
from ir_scatter_cli.options import SettingsCommand, argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import report, say, spinner, write

if TYPE_CHECKING:
    from ir_scatter.settings import ProjectSettings


@sub_command(SettingsCommand)
@example("every defect of a model, with its place", "model.xml")
@example("of a folder, for code scanning", "models --format sarif -o findings.sarif")
@example(
    "one rule by its name, one group of rules less", "model.onnx --select index-out-of-range --ignore SCT5"
)
@example("with shapes that the file leaves open", "model.onnx --input-shape data=4,5")
@example("what two devices will refuse or get wrong", "model.xml --for CPU,GPU")
@example("only what is new from today on", "models --write-baseline known.json")
@example("thousands, on other machines", "models --scheduler tls://lab:8786")
@argument("PATH...", "paths")
@section("What is reported")
@option("--for DEVICE...", "Known defects of it too; repeatable.", "targets", offers="runners")
@option("--select CODES...", "Only these rules: names, or beginnings of codes.", offers="codes")
@option("--ignore CODES...", "None of these rules.", offers="codes")
@option("--min-severity", "Nothing below this.", choices=Severity, default="note")
@option("--baseline FILE", "Do not report what is known in FILE.")
@option("--write-baseline FILE", "Write what is found to FILE, as known.")
@option("--strict", "Warnings fail too.")
@section("What is looked at")
@option("--exclude GLOB...")
@option("--input-shape NAME=1,3,?...", "Propagate this shape of an input first; repeatable.")
@option("--stdin-format")
@option(
    "--max-index-elements N>=0",
    "Do not read constants with more elements.",
    default=Options().max_index_elements,
)
@option("-j, --jobs N", "Check so many files at a time.", default=1)
@section("Who does it")
@fleet_options(resume="Do not do again what an earlier run finished.")
@section("How it is written")
@formats("findings", "How to write the findings.")
@option("-o, --output FILE")
@option("--overwrite")
@option("--docs-url URL", "The site of the pages, for links in SARIF.")
@option("--statistics", "Count the findings by code.")
@option("-q, --quiet", "Findings only, no summary.")
@option("-v, --verbose")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Hold the scatter operators of models against their documents.

    PATH is a file (.xml or .onnx, told by its content), a folder, a glob, or - for standard input.
    Defaults come from [tool.ir-scatter] of the nearest pyproject.toml.
    """
    settings: ProjectSettings | None = context.obj
    wanted = Options(
        sum(given["select"], ()),
        sum(given["ignore"], ()),
        settings.node_ignores if settings else (),
        Severity(given["min_severity"]),
        given["max_index_elements"],
        dict(given["input_shape"]),
        given["stdin_format"],
        with_neighbourhoods=given["format"] == "html",
        targets=given["targets"],
    )
    if wanted.targets:
        from ir_scatter.portability import portability_to

        portability_to(wanted.targets)  # which says what is no device before anything is read
    paths, output, new = given["paths"], given["output"], given["write_baseline"]
    known = None
    if given["baseline"] and not new:
        try:
            known = read_baseline(given["baseline"])
        except UsageError as error:
            raise UsageError(f"{_where_from(context, 'baseline')}: {error}") from None
    sources = find_sources(paths, given["exclude"])
    demand_apart({"-o": output, "--write-baseline": new}, [source.path for source in sources])
    demand_apart({"-o": output}, (), [given["baseline"]])  # which may be brought up to date
    demand_free("-o", output, overwrite=given["overwrite"])
    demand_free_baseline(new, overwrite=given["overwrite"])
    with used_fleet(given) as fleet, spinner(fleet or "starting") as tell:
        numbers = count(1)

        def seen(_: FileResult) -> None:
            if tell is not None and fleet is None:  # which says itself how far it is
                tell(f"{next(numbers)} of {len(sources)} files")

        try:
            checked = check_files(sources, wanted, jobs=given["jobs"], executor=fleet, seen=seen)
        except BadFeed as error:
            raise UsageError(f"{_where_from(context, 'input_shape')}: {error}") from None
    for one in checked:
        if given["verbose"] and one.passed_over:
            say(f"{one.path}: passed over: {one.passed_over}")
    found = make_report(checked)
    _demand_inputs(checked, found, wanted, _where_from(context, "input_shape"))
    if new:
        write(baseline_text(found, new), new)
        known = read_baseline(new)
    if known is not None:
        found = known.new_in(found)
    switches = {name: given[name] for name in ("quiet", "statistics", "strict")}
    options = {"docs_url": given["docs_url"], **switches}
    report("findings", given["format"], found, output, is_new=not given["overwrite"], **options)
    if fleet is not None and fleet.gone:
        return lost(fleet, len(sources) - len(checked), "file")
    return _exit_code(found, checked, given["strict"])


def _where_from(context: click.Context, name: str) -> str:
    """Return what the user wrote to give an option its value: "--baseline", or the file and the key."""
    settings: ProjectSettings = context.obj
    if context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT_MAP:
        return settings.named(name)
    return "--" + name.replace("_", "-")


def _demand_inputs(checked: list[FileResult], found: Report, wanted: Options, option: str) -> None:
    inputs = {name for one in checked for name in one.inputs}
    for name in wanted.input_shapes:
        if name not in inputs and any(file.is_readable for file in found.files):
            guess, known = did_you_mean(name, inputs), ", ".join(sorted(inputs)) or "none"
            raise UsageError(f"{option}: no model has an input {name!r}{guess}, expected one of {known}")


def _exit_code(report: Report, checked: list[FileResult], strict: bool) -> int:
    for one in checked:
        if one.bug:
            say(f"{one.path}: this is a bug in ir-scatter: {one.bug}")
            click.echo("Please report it, with the file if you may.", err=True)
    if any(one.bug for one in checked):
        return exits.BUG
    if not all(file.is_readable for file in report.files):
        return exits.UNREADABLE
    failing = report.count(Severity.ERROR) + (report.count(Severity.WARNING) if strict else 0)
    return exits.FINDINGS if failing else exits.OK
