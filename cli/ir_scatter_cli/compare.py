"""`ir-scatter compare`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import find_files
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_apart_from_folders, demand_free_folder
from ir_scatter_cli.fleet import FLEET, fleet_options, lost, used_fleet
from ir_scatter_cli.options import (
    Command,
    Seconds,
    Size,
    choice_option,
    file_option,
    format_option,
    input_shape_option,
    models_argument,
    number_option,
    output_option,
    words_option,
)
from ir_scatter_cli.output import circumstances, report, say, spinner, write

if TYPE_CHECKING:
    from ir_scatter.compare.request import Done, Job


_PRECISIONS = ("f32", "f16", "bf16", "default")
_VALUES = ("plain", "edge")
_VALUES_HELP = "Ordinary numbers, or extreme.  [default: plain]"
_PRECISION_HELP = "What runtimes compute in.  [default: f32]"
_TIMEOUT_HELP = "Per run.  [default: 600]"


_EXAMPLES = {
    "NumPy and every device that is here": "ir-scatter compare model.xml",
    "who is wrong, with a page of pictures": "ir-scatter compare model.onnx --on CPU --on onnxruntime "
    "--report page.html",
    "a model of each node that differs": "ir-scatter compare model.xml --on CPU --extract wrong",
    "this machine with another one": "ir-scatter compare model.xml --on numpy --save there",
    "every model of a folder": "ir-scatter compare models --each --on CPU",
    "every model, elsewhere": "ir-scatter compare models --each --on CPU --scheduler tls://lab:8786",
}
_SECTIONS = {
    "Who computes": "--on --precision --timeout --tap-memory --skip-missing",
    "Where": f"{FLEET} --resume",
    "On which inputs": "--inputs --seed --cases --values --input-shape --repeat",
    "What is compared": "--each --pairwise --no-reference --map-input --map-output --tolerance --against",
    "What is written": "--format --output --report --save --extract --overwrite",
}


@click.command("compare", cls=Command, examples=_EXAMPLES, sections=_SECTIONS)
@models_argument("models", "MODEL...", several=True)
@words_option("--on", "names", kind="runners", metavar="RUNNER", help="Who computes; repeatable.")
@click.option("--each", is_flag=True, help="Compare every model for itself; folders are searched.")
@file_option("--inputs", metavar="FILE.npz", help="The inputs of the first case, by their names.")
@number_option("--seed", default=0, least=0, shown=False, help="For generated inputs.  [default: 0]")
@number_option("--cases", default=1, shown=False, help="So many inputs; those of --inputs are the first.")
@number_option("--repeat", default=1, shown=False, help="Run each so often.")
@choice_option("--values", _VALUES, _VALUES_HELP, "plain", shown=False)
@input_shape_option("Draw this input in this shape.")
@click.option("--map-input", multiple=True, metavar="A=B", help="Input A of one model is B of the other.")
@click.option("--map-output", multiple=True, metavar="A=B", help="Output A of one model is B of the other.")
@click.option(
    "--tolerance",
    multiple=True,
    metavar="OUTPUT=ABS,REL",
    help="How far apart is close; a node's name will do, none means all.",
)
@choice_option("--precision", _PRECISIONS, _PRECISION_HELP, "f32", shown=False)
@click.option("--pairwise", is_flag=True, help="Compare every pair of runners, too.")
@click.option("--no-reference", is_flag=True, help="Do without NumPy as the reference unless it is named.")
@click.option("--timeout", type=Seconds(min=0.001), default=600.0, metavar="SECONDS", help=_TIMEOUT_HELP)
@click.option(
    "--tap-memory", type=Size(), default="1GiB", help="Tapped values held at once.  [default: 1GiB]"
)
@click.option("--skip-missing", is_flag=True, help="Pass over runners that cannot run here.")
@file_option("--report", metavar="FILE.html", help="Write a report with pictures.")
@file_option("--save", metavar="DIR", help="Save inputs, outputs and tapped values.")
@file_option("--against", metavar="DIR", help="Compare with what was saved there.")
@file_option("--extract", metavar="DIR", help="Write a model of each node that differs.")
@click.option("--overwrite", is_flag=True, help="Replace what was saved in that folder.")
@format_option("comparison", "How to report.", leave_out=["html"])
@output_option
@fleet_options(resume="With --each, do not do again what an earlier run finished.")
def command(**options: Any) -> int:
    """Run a model on several runtimes and say which node, which element, which side is wrong.

    MODEL is a .xml or .onnx file; of two models the outputs are compared with each other. Without
    --on that is NumPy and every device found; `ir-scatter devices` lists them. Named or not, NumPy is
    the reference of every model that it computes: it says what the documents say.

    Exit codes: 0 agreement; 1 a difference, a result that changes, or illegal indices; 2 wrong usage;
    3 a file cannot be read or written; 4 a runner that was named could not run, or nothing was compared
    although one was named, and nothing differs.
    """
    from ir_scatter import runners
    from ir_scatter.compare.phases import Interrupted, told_to
    from ir_scatter.compare.request import run_job

    if options["report"]:
        from ir_scatter.report.comparison_html import require_packages

        require_packages()
    job = _job(options)
    models = [source.path for source in find_files(job.models, ()).sources] if job.each else [*job.models]
    _demand_apart(models, options)
    demand_free_folder("--save", options["save"], each=job.each, overwrite=options["overwrite"])
    try:
        with used_fleet(options) as fleet, spinner() as waiting:
            if fleet is not None and not job.names:
                there = ", ".join(runners.known())
                raise UsageError(f"--scheduler goes with --on, as machines differ; there is {there}")
            if waiting is not None and fleet is not None and job.each:
                waiting(fleet)
                waiting = None
            with told_to(waiting):
                done = run_job(job, engine=fleet)
    except Interrupted as interrupt:
        done = interrupt.found
    except KeyboardInterrupt:
        say("interrupted before anything was compared")
        return exits.INTERRUPTED
    report("comparison", options["format"], done, options["output"], each=options["each"])
    if options["report"]:
        source = {name: options[name] for name in ("inputs", "against")}
        page = render("comparison", "html", done, **source, **circumstances())
        write(page, options["report"])
    is_named = bool(options["names"])
    failures = [f"{failure.model}: {failure.message}" for failure in done.failures]
    for line in (*done.written, *done.unwritten, *_passed_over(done, is_named=is_named), *failures):
        say(line)
    if fleet is not None and fleet.gone:
        return lost(fleet, len(models) - len(done.found) - len(done.failures), "model")
    return exits.INTERRUPTED if done.interrupted else _exit_code(done, is_named=is_named)


def _job(options: dict[str, Any]) -> "Job":
    from ir_scatter.compare.measure import Tolerances
    from ir_scatter.compare.request import Job
    from ir_scatter.compare.result import Settings

    same = ("seed", "cases", "repeat", "values", "precision", "pairwise", "timeout", "tap_memory")
    settings = Settings(
        **{name: options[name] for name in same},
        input_shapes=dict(options["input_shape"]),
        map_inputs=options["map_input"],
        map_outputs=options["map_output"],
        tolerances=Tolerances(options["tolerance"]),
        reference=not options["no_reference"],
        describes=bool(options["report"] or options["save"]),
    )
    names = ("models", "names", "each", "inputs", "skip_missing", "save", "against", "extract")
    return Job(settings=settings, **{name: options[name] for name in names})


def _demand_apart(models: list[str], options: dict[str, Any]) -> None:
    """Demand that nothing is written over what is read."""
    others = [options["inputs"]]
    if options["against"]:
        others += map(str, Path(options["against"]).glob("*"))
    demand_apart({"-o": options["output"], "--report": options["report"]}, models, others)
    demand_apart_from_folders(options["save"], options["extract"], models, others)


def _passed_over(done: "Done", *, is_named: bool) -> Iterator[str]:
    """Yield what is to be said of runners that were not asked."""
    if is_named:
        for name, reason in done.skipped:
            yield f"{name} is passed over: {reason}"
    elif done.skipped:
        names = ", ".join(name for name, _ in done.skipped)
        yield f"not here: {names}; `ir-scatter devices` says why"


def _exit_code(done: "Done", *, is_named: bool) -> int:
    if done.unwritten or any(failure.is_unreadable for failure in done.failures):
        return exits.UNREADABLE
    if any(one.differs for one in done.found):
        return exits.FINDINGS
    if done.failures:
        return exits.USAGE
    from ir_scatter.compare.result import has_failed

    return exits.RUNTIME if is_named and has_failed(done.found) else exits.OK
