"""`ir-scatter fuzz`."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.report.characters import visible, without_commands
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.fleet import directory_of, fleet_options, open_fleet
from ir_scatter_cli.options import Seconds, example, formats, option, section, sub_command
from ir_scatter_cli.output import is_animated, say, spinner, style, write

if TYPE_CHECKING:
    from ir_scatter.runners import Directory

_VALUES = ("any", "plain", "edge")


@sub_command()
@example("all operators, for a minute", "--on CPU")
@example(
    "half an hour, with a bug report for each finding", "--on CPU --on onnxruntime --seconds 1800 -o findings"
)
@example("is illegal input refused?", "--illegal --on CPU")
@example("continue an earlier run", "--on CPU -o findings --resume")
@example("on a device of another machine", "--on lab/openvino:GPU --scheduler tls://lab:8786")
@example("which findings does a new release still have?", "--replay findings")
@section("Runners")
@option("--on RUNNER...", "Test this runner; repeatable.", offers="runners")
@fleet_options()
@section("Cases")
@option("--operator NAME...", "Only this operator; repeatable.", "operators", offers="operators")
@option("--values", "Ordinary numbers, or at the limits of their type.", choices=_VALUES, default="any")
@option("--illegal", "Break one rule in each case, which should be refused.")
@option("--new-only", "Leave out findings that known defects explain.")
@option("--seed N>=0", "Seed of the generated cases.", default=0)
@section("Limits")
@option("--seconds N", "Total time.  [default: 60, or no limit with --cases]", type=Seconds(0.1, 1e8))
@option("--cases N", "Number of cases.")
@section("What is written")
@option("-o, --output DIR", "Write a folder for each finding.")
@option("--overwrite", "Replace an index.html there that fuzz did not write.")
@option("--resume", "Continue with the findings in that folder.")
@option("--replay DIR", "Only run the models of the findings in a folder again.")
@option("--run-scripts", "With --replay, run each repro.py; only if you trust the folder.")
@formats("fuzz", "Format of the report.", leave_out="html")
@option("-q, --quiet")
def command(**params: Any) -> int:
    """Search for runtime bugs automatically, and shrink each one to a small one-node model.

    Random cases are generated from the specification of each scatter operator, run on each RUNNER and
    compared with NumPy. Each combination of operator, runner, symptom and condition is reported once.

    Exit codes: 0 nothing found; 1 findings, or failures that could not be examined in time; 2 wrong
    usage; 3 the folder cannot be written; 4 a runner named by --on is not available, or none of its
    answers could be judged; 130 interrupted, 143 terminated, after writing all findings so far.
    """
    if params["run_scripts"] and params["replay"] is None:
        raise UsageError("--run-scripts goes with --replay")
    if params["replay"] is not None:
        return _replay(params)
    with open_fleet(params) as fleet:
        return _fuzz(params, directory_of(fleet))


def _fuzz(params: dict[str, Any], directory: "Directory") -> int:
    from ir_scatter.fuzz.job import FuzzRequest, UnavailableRunner, prepare, run
    from ir_scatter.jobs import Gone
    from ir_scatter.report.campaign_folder import write_report
    from ir_scatter.report.fuzz_text import title

    names = (
        "on",
        "operators",
        "seconds",
        "cases",
        "seed",
        "values",
        "illegal",
        "resume",
        "overwrite",
        "new_only",
    )
    folder = None if params["output"] is None else Path(params["output"])
    job = FuzzRequest(folder=folder, **{name: params[name] for name in names})
    try:
        campaign = prepare(job, directory)
    except UnavailableRunner as error:
        say(error)
        return exits.RUNTIME
    lost = ""
    write_report(campaign, folder)
    try:
        with spinner(campaign, quiet=params["quiet"]), closing(run(job, campaign)) as findings:
            for finding in findings:
                if not params["quiet"]:  # its condition may still change
                    if is_animated():
                        click.echo("\r\x1b[K", nl=False, err=True)
                    say(f"new finding: {title(finding)}")
                write_report(campaign, folder)
    except KeyboardInterrupt:
        campaign.is_interrupted = True
    except Gone as error:
        lost = str(error)
    write_report(campaign, folder)
    write(render("fuzz", params["format"], campaign, **style()))
    for name, answers in campaign.answers().items():
        if answers.why_not:
            say(f"no answer of {name} could be judged: {answers.why_not}")
    if lost:
        say(f"{lost}; findings so far are reported; continue with --resume")
        return exits.RUNTIME
    if campaign.is_interrupted:
        return exits.INTERRUPTED
    if campaign.reported or campaign.unexplained:
        return exits.FINDINGS
    by_runner = campaign.answers().values()
    if params["on"]:
        is_incomplete = any(answers.why_not for answers in by_runner)
    else:
        is_incomplete = not any(answers.judged for answers in by_runner)
    return exits.RUNTIME if is_incomplete else exits.OK


def _replay(params: dict[str, Any]) -> int:
    from ir_scatter.fuzz.replay import replay

    conflicting = [name for name in ("on", "operators", "output", "cases", "seconds") if params[name]]
    if conflicting or params["resume"] or params["illegal"]:
        raise UsageError("--replay goes with no other options than --run-scripts and --format")
    replays = []
    for replayed in replay(Path(params["replay"]), run_scripts=params["run_scripts"]):
        replays.append(replayed)
        if params["format"] == "text":
            lines = f"{replayed.outcome}: {visible(replayed.signature)}\n    {visible(replayed.message)}\n"
            write(without_commands(lines))
    if params["format"] != "text":
        write(render("replay", params["format"], replays))
    if any(replayed.outcome in {"still there", "changed"} for replayed in replays):
        return exits.FINDINGS
    return exits.RUNTIME if any(replayed.outcome == "cannot run" for replayed in replays) else exits.OK
