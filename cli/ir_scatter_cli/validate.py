"""`ir-scatter validate`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.core.files import STANDARD_INPUT
from ir_scatter.core.parameters import Invocation, Parameter
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import counted
from ir_scatter.lint import FileResult, Options, Report, baseline_of, check_files, make_report, read_baseline
from ir_scatter.report import phrases
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, demand_free_baseline, find_sources
from ir_scatter_cli.fleet import fleet_options, open_fleet, report_lost
from ir_scatter_cli.givens import read_texts
from ir_scatter_cli.options import SettingsCommand, argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import say, spinner, style, write

if TYPE_CHECKING:
    from ir_scatter.settings import ProjectSettings


@sub_command(SettingsCommand)
@example("every finding in a model, with its location", "model.xml")
@example("a folder, for code scanning", "models --format sarif -o findings.sarif")
@example("only one rule, or all but a group", "model.onnx --select index-out-of-range --ignore SCT5")
@example("with shapes that are dynamic in the file", "model.onnx --input-shape data=4,5")
@example("also what two devices refuse or compute incorrectly", "model.xml --for CPU,GPU")
@example("accept today's findings, report new ones (--baseline)", "models --write-baseline known.json")
@example("many files, on other machines", "models --scheduler tls://lab:8786")
@argument("PATH...", "paths")
@section("What is reported")
@option(
    "--for DEVICE...", "Also report known defects of this device; repeatable.", "targets", offers="runners"
)
@option("--select CODES...", "Check only these rules: names or code prefixes.", offers="codes")
@option("--ignore CODES...", "Skip these rules.", offers="codes")
@option("--min-severity", "Lowest severity to report.", choices=Severity, default="note")
@option("--baseline FILE", "Do not report findings listed in FILE.")
@option("--write-baseline FILE", "Write all findings to FILE as a baseline.")
@option("--prune-baseline", "Remove from the file of --baseline what is gone.")
@option("--strict", "Fail on warnings, too.")
@section("What is checked")
@option("--exclude GLOB...")
@option("--input-shape NAME=1,3,?...", "Check with this shape of an input; repeatable.")
@option("--given TEXT...")
@option("--stdin-format")
@option(
    "--max-index-elements N>=0",
    "Do not read constants with more elements.",
    default=Options().max_index_elements,
)
@option("-j, --jobs N", "Number of files to check at a time.", default=1)
@section("Machines")
@fleet_options(resume="Skip files that an earlier run finished.")
@section("Output")
@formats("findings", "Format of the findings.")
@option("-o, --output FILE")
@option("--overwrite")
@option("--docs-url URL", "Site of the rule pages, for links in SARIF and HTML.")
@option("--statistics", "Count the findings by code.")
@option("-q, --quiet", "Print findings only, no summary.")
@option("-v, --verbose", "List skipped files; count nodes whose indices are proven to be in range.")
@click.pass_context
def command(context: click.Context, /, **params: Any) -> int:
    """Check the scatter operators of models against their specifications.

    PATH is a .xml or .onnx file (recognised by its content), a folder, a glob, or - for standard input.
    Defaults of options come from [tool.ir-scatter] in the nearest pyproject.toml.
    """
    settings: ProjectSettings | None = context.obj
    options = Options(
        sum(params["select"], ()),
        sum(params["ignore"], ()),
        settings.node_ignores if settings else (),
        Severity(params["min_severity"]),
        params["max_index_elements"],
        dict(params["input_shape"]),
        params["stdin_format"],
        with_neighbourhoods=params["format"] == "html",
        targets=params["targets"],
        counts_proofs=params["verbose"],
        given=tuple(read_texts(params["given"])),
    )
    if options.targets:
        from ir_scatter.portability import portability_to

        portability_to(options.targets)  # raises for unknown devices before any file is read
        import ir_scatter.convert.fixes  # noqa: F401  # registers the job
    job = "validate-for" if options.targets else "validate"
    if params["prune_baseline"] and not params["baseline"]:
        raise UsageError("--prune-baseline goes with --baseline FILE")
    paths, output, new_baseline = params["paths"], params["output"], params["write_baseline"]
    baseline = None
    if params["baseline"] and not new_baseline:
        try:
            baseline = read_baseline(params["baseline"])
        except UsageError as error:
            raise UsageError(f"{_origin_of(context, 'baseline')}: {error}") from None
    sources = find_sources(paths, params["exclude"])
    demand_apart({"-o": output, "--write-baseline": new_baseline}, [source.path for source in sources])
    demand_apart({"-o": output}, (), [params["baseline"]])  # only --write-baseline may replace a baseline
    demand_free("-o", output, overwrite=params["overwrite"])
    is_new_baseline = demand_free_baseline(new_baseline, overwrite=params["overwrite"])
    is_quiet, finished, interrupted = params["quiet"], list[FileResult](), False
    with (
        open_fleet(params) as fleet,
        spinner(fleet or "starting", quiet=is_quiet, may_fork=params["jobs"] > 1) as update,
    ):

        def on_result(result: FileResult) -> None:
            finished.append(result)
            if fleet is None:  # a fleet reports its own progress
                update(f"{len(finished)} of {counted(len(sources), 'file')}")

        try:
            checked = check_files(
                sources, options, jobs=params["jobs"], executor=fleet, seen=on_result, job=job
            )
        except KeyboardInterrupt:
            checked, interrupted = finished, True
        except BadFeed as error:
            raise UsageError(f"{_origin_of(context, 'input_shape')}: {error}") from None
    for result in checked:
        if params["verbose"] and result.passed_over:
            say(f"{result.path}: skipped: {result.passed_over}")
    lint_report = make_report(checked)
    _demand_inputs(checked, lint_report, options, _origin_of(context, "input_shape"))
    is_partial = interrupted or (fleet is not None and bool(fleet.gone))
    if new_baseline and is_partial:
        say(f"{new_baseline} is not written, as not all files were checked")
    elif new_baseline:
        baseline = baseline_of(lint_report, new_baseline)
        write(baseline.text(), new_baseline, is_new=is_new_baseline)
        if not is_quiet:
            say(f"{counted(len(baseline), 'finding')} written to {new_baseline}")
    if baseline is not None:
        all_findings, lint_report = lint_report, baseline.new_in(lint_report, options)
        if params["prune_baseline"] and not is_partial:
            pruned = baseline.without_gone(all_findings, options)
            if len(pruned) < len(baseline):
                write(pruned.text(), params["baseline"])
            if not is_quiet:
                gone = counted(len(baseline) - len(pruned), "finding")
                say(f"{gone} removed from {params['baseline']}, {len(pruned)} left")
    text = render(
        "findings",
        params["format"],
        lint_report,
        docs_url=params["docs_url"],
        quiet=params["quiet"],
        statistics=params["statistics"],
        strict=params["strict"],
        hint="" if options.targets else _hint_for_devices(paths),
        **style(output),
    )
    write(text, output, is_new=not params["overwrite"])
    if params["format"] == "concise" and lint_report.files and not is_quiet:
        say(phrases.summary(lint_report))
    if interrupted:
        say(f"interrupted: {len(finished)} of {counted(len(sources), 'file')} were checked")
        return exits.INTERRUPTED
    if fleet is not None and fleet.gone:
        return report_lost(fleet, len(sources) - len(checked), "file")
    if not sources and not params["exclude"]:  # the path is mistyped, or the folder is the wrong one
        return exits.UNREADABLE
    code = _exit_code(lint_report, checked, params["strict"])
    if code == exits.UNREADABLE and not is_quiet:
        unreadable = [file.path for file in lint_report.files if not file.is_readable]
        others = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        say(f"exit code {code}, as a file cannot be read: {unreadable[0]}{others}")
    return code


def _hint_for_devices(paths: Sequence[str]) -> str:
    """Return what to call for known defects of a device, which a run without a device does not report."""
    device = {"targets": "GPU"}
    is_short = len(paths) == 1 and paths[0] != STANDARD_INPUT
    call = (
        str(Invocation("validate", device, tuple(paths)))
        if is_short
        else f"add {Parameter('targets', 'GPU')}"
    )
    return f"for known defects of a device, such as GPU: {call}"


def _origin_of(context: click.Context, name: str) -> str:
    """Return where an option got its value: "--baseline", or the settings file and key."""
    settings: ProjectSettings = context.obj
    if context.get_parameter_source(name) is click.core.ParameterSource.DEFAULT_MAP:
        return settings.named(name)
    return "--" + name.replace("_", "-")


def _demand_inputs(checked: list[FileResult], report: Report, options: Options, option: str) -> None:
    inputs = {name for result in checked for name in result.inputs}
    for name in options.input_shapes:
        if name not in inputs and any(file.is_readable for file in report.files):
            guess, names = did_you_mean(name, inputs), ", ".join(sorted(inputs)) or "none"
            raise UsageError(f"{option}: no model has an input {name!r}{guess}, expected one of {names}")


def _exit_code(report: Report, checked: list[FileResult], strict: bool) -> int:
    for result in checked:
        if result.bug:
            say(f"{result.path}: this is a bug in ir-scatter: {result.bug}")
            click.echo("Please report it, with the file if you may.", err=True)
    if any(result.bug for result in checked):
        return exits.BUG
    if not all(file.is_readable for file in report.files):
        return exits.UNREADABLE
    failing = report.count(Severity.ERROR) + (report.count(Severity.WARNING) if strict else 0)
    return exits.FINDINGS if failing else exits.OK
