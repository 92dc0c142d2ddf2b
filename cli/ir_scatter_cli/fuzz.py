"""`ir-scatter fuzz`."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.report.characters import visible, without_commands
from ir_scatter_cli import exits
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.options import Seconds, example, formats, option, section, sub_command
from ir_scatter_cli.output import report, say, spinner, use_color, write

_VALUES = ("any", "plain", "edge")


@sub_command()
@example("a minute of every operator", "--on CPU")
@example(
    "half an hour, with a bug report for each finding", "--on CPU --on onnxruntime --seconds 1800 -o findings"
)
@example("what a runtime does with what is forbidden", "--illegal --on CPU")
@example("on from where it stopped", "--on CPU -o findings --resume")
@example("with a device of another machine", "--on lab/openvino:GPU --scheduler tls://lab:8786")
@example("what is still there in a new release", "--replay findings")
@section("Who computes")
@option("--on RUNNER...", "Who computes; repeatable.", offers="runners")
@fleet_options()
@section("What is drawn")
@option("--operator NAME...", "Only this one; repeatable.", "operators", offers="operators")
@option("--values", "Ordinary numbers, or at the edges of their type.", choices=_VALUES, default="any")
@option("--illegal", "Break one rule in each case: is it refused?")
@option("--seed N>=0", "What is drawn follows from it.", default=0)
@section("How long")
@option(
    "--seconds N", "Of wall time for everything.  [default: 60, or none with --cases]", type=Seconds(0.1, 1e8)
)
@option("--cases N", "Draw so many.")
@section("What is written")
@option("-o, --output DIR", "Write a folder for each finding.")
@option("--overwrite", "Replace an index.html there that is no page of findings.")
@option("--resume", "Go on with the findings of that folder.")
@option("--replay DIR", "Run the models of a folder of findings again, and nothing else.")
@option("--run-scripts", "With --replay, run its repro.py: any code may be in there.")
@formats("fuzz", "How to report.", leave_out="html")
def command(**given: Any) -> int:
    """Find what runtimes get wrong, and shrink each defect to one small node.

    Cases of every scatter operator are drawn from its documented facts, computed by each RUNNER and held
    against NumPy. What goes wrong is told once for each operator, runner, symptom and condition.

    Exit codes: 0 nothing found; 1 findings, or failures that no time was left to look at; 2 wrong usage; 3
    the folder cannot be written; 4 a runner that was named cannot run here, or not one of its answers could
    be judged; 130 interrupted, with all that was found until then.
    """
    if given["run_scripts"] and given["replay"] is None:
        raise UsageError("--run-scripts goes with --replay")
    if given["replay"] is not None:
        return _replay(given)
    with used_fleet(given):
        return _fuzz(given)


def _fuzz(given: dict[str, Any]) -> int:
    from ir_scatter.fuzz.job import FuzzRequest, UnavailableRunner, prepare, run
    from ir_scatter.jobs import Gone
    from ir_scatter.report.fuzz_folder import write_report
    from ir_scatter.report.fuzz_text import one_finding

    names = ("on", "operators", "seconds", "cases", "seed", "values", "illegal", "resume", "overwrite")
    folder = None if given["output"] is None else Path(given["output"])
    job = FuzzRequest(folder=folder, **{name: given[name] for name in names})
    try:
        campaign = prepare(job)
    except UnavailableRunner as error:
        say(error)
        return exits.RUNTIME
    interrupted, color, lost = False, use_color(), ""
    write_report(campaign, folder)
    try:
        with spinner(campaign) as tell, closing(run(job, campaign)) as findings:
            for finding in findings:
                if given["format"] == "text":
                    if tell is not None:
                        click.echo("\r\x1b[K", nl=False, err=True)
                    write(without_commands(one_finding(finding, color=color)))
                write_report(campaign, folder)
    except KeyboardInterrupt:
        interrupted = True
    except Gone as error:
        lost = str(error)
    write_report(campaign, folder)
    report("fuzz", given["format"], campaign)
    for name, one in campaign.answers().items():
        if one.why_not:
            say(f"nothing of {name} was judged: {one.why_not}")
    if lost:
        say(f"{lost}; what was found until then is told, and --resume goes on")
        return exits.RUNTIME
    if interrupted:
        return exits.INTERRUPTED
    if campaign.findings or campaign.unexplained:
        return exits.FINDINGS
    answers = campaign.answers().values()
    is_missed = any(one.why_not for one in answers) if given["on"] else not any(one.judged for one in answers)
    return exits.RUNTIME if is_missed else exits.OK


def _replay(given: dict[str, Any]) -> int:
    from ir_scatter.fuzz.replay import replay
    from ir_scatter.report.registry import render

    others = [name for name in ("on", "operators", "output", "cases", "seconds") if given[name]]
    if others or given["resume"] or given["illegal"]:
        raise UsageError("--replay runs what is in the folder, and takes no other option but --format")
    found = []
    for one in replay(Path(given["replay"]), run_scripts=given["run_scripts"]):
        found.append(one)
        if given["format"] == "text":
            lines = f"{one.outcome}: {visible(one.signature)}\n    {visible(one.message)}\n"
            write(without_commands(lines))
    if given["format"] != "text":
        write(render("replay", given["format"], found))
    if any(one.outcome in {"still there", "changed"} for one in found):
        return exits.FINDINGS
    return exits.RUNTIME if any(one.outcome == "cannot run" for one in found) else exits.OK
