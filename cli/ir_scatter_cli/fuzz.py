"""`ir-scatter fuzz`."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.core.errors import UsageError
from ir_scatter_cli import exits, options
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.output import report, say, spinner, use_color, write

if TYPE_CHECKING:
    from ir_scatter.fuzz.campaign import Campaign

_EXAMPLES = {
    "a minute of every operator": "ir-scatter fuzz --on CPU",
    "half an hour, with a bug report for each finding": "ir-scatter fuzz --on CPU --on onnxruntime "
    "--seconds 1800 -o findings",
    "what a runtime does with what is forbidden": "ir-scatter fuzz --illegal --on CPU",
    "on from where it stopped": "ir-scatter fuzz --on CPU -o findings --resume",
    "with a device of another machine": "ir-scatter fuzz --on lab/openvino:GPU --scheduler tls://lab:8786",
    "what is still there in a new release": "ir-scatter fuzz --replay findings",
}


@click.command("fuzz", cls=options.Command, examples=_EXAMPLES)
@options.section("Who computes")
@options.words("--on", "on", kind="runners", metavar="RUNNER", help="Who computes; repeatable.")
@fleet_options()
@options.section("What is drawn")
@options.words("--operator", "operators", kind="operators", metavar="NAME", help="Only this one; repeatable.")
@options.choice(
    "--values", ("any", "plain", "edge"), "Ordinary numbers, or at the edges of their type.", "any"
)
@options.flag("--illegal", help="Break one rule in each case: is it refused?")
@options.number("--seed", default=0, least=0, help="What is drawn follows from it.")
@options.section("How long")
@options.seconds(
    "--seconds", metavar="N", least=0.1, most=1e8,
    help="Of wall time for everything.  [default: 60, or none with --cases]",
)  # fmt: skip
@click.option("--cases", type=click.IntRange(min=1), metavar="N", help="Draw so many.")
@options.section("What is written")
@options.file("-o", "--output", metavar="DIR", help="Write a folder for each finding.")
@options.flag("--resume", help="Go on with the findings of that folder.")
@options.file("--replay", metavar="DIR", help="Run the findings of a folder again, and nothing else.")
@options.format("fuzz", "How to report.", leave_out=["html"])
def command(**given: Any) -> int:
    """Find what runtimes get wrong, and shrink each defect to one small node.

    Cases of every scatter operator are drawn from its documented facts, computed by each RUNNER and held
    against NumPy. What goes wrong is told once for each operator, runner, symptom and condition.

    Exit codes: 0 nothing found; 1 findings, or failures that no time was left to look at; 2 wrong usage; 3
    the folder cannot be written; 4 a runner that was named cannot run here; 130 interrupted, with all that
    was found until then.
    """
    if given["replay"] is not None:
        return _replay(given)
    with used_fleet(given):
        return _fuzz(given)


def _fuzz(given: dict[str, Any]) -> int:
    from ir_scatter.fuzz.job import Job, Missing, prepare, run
    from ir_scatter.jobs import Gone
    from ir_scatter.report.fuzz_folder import write_report
    from ir_scatter.report.fuzz_text import one_finding

    names = ("on", "operators", "seconds", "cases", "seed", "values", "illegal", "resume")
    folder = None if given["output"] is None else Path(given["output"])
    job = Job(folder=folder, **{name: given[name] for name in names})
    try:
        campaign = prepare(job)
    except Missing as error:
        say(error)
        return exits.RUNTIME
    is_text, interrupted, color, lost = given["format"] == "text", False, use_color(), ""
    if folder is not None:
        write_report(campaign, folder)
    try:
        with spinner() as tell, closing(run(job, campaign)) as findings:
            if tell is not None:
                tell(_Progress(campaign))
            for finding in findings:
                if is_text:
                    if tell is not None:
                        click.echo("\r\x1b[K", nl=False, err=True)
                    write(one_finding(finding, color=color))
                if folder is not None:
                    write_report(campaign, folder)
    except KeyboardInterrupt:
        interrupted = True
    except Gone as error:
        lost = str(error)
    if folder is not None:
        write_report(campaign, folder)
    report("fuzz", given["format"], campaign)
    if lost:
        say(f"{lost}; what was found until then is told, and --resume goes on")
        return exits.RUNTIME
    if interrupted:
        return exits.INTERRUPTED
    return exits.FINDINGS if campaign.findings or campaign.unexplained else exits.OK


def _replay(given: dict[str, Any]) -> int:
    from ir_scatter.fuzz.job import replay
    from ir_scatter.report.registry import render

    others = [name for name in ("on", "operators", "output", "cases", "seconds") if given[name]]
    if others or given["resume"] or given["illegal"]:
        raise UsageError("--replay runs what is in the folder, and takes no other option but --format")
    found = []
    for one in replay(Path(given["replay"])):
        found.append(one)
        if given["format"] == "text":
            write(f"{one.outcome}: {one.signature}\n    {one.message}\n")
    if given["format"] != "text":
        write(render("replay", given["format"], found))
    if any(one.outcome in {"still there", "changed"} for one in found):
        return exits.FINDINGS
    return exits.RUNTIME if any(one.outcome == "cannot run" for one in found) else exits.OK


class _Progress:
    """How far a campaign is, whenever somebody asks."""

    def __init__(self, campaign: "Campaign") -> None:
        self._campaign = campaign

    def __str__(self) -> str:
        found = self._campaign
        pace = found.cases / max(time.monotonic() - found.started, 0.1)
        told = f"{found.cases} cases, {pace:.0f}/s, {len(found.findings)} findings"
        return f"{told}, {len(found.coverage.pairs)} pairs"
