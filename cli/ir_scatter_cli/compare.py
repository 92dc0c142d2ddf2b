"""`ir-scatter compare`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import find_files
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import (
    demand_apart,
    demand_apart_from_folders,
    demand_free,
    demand_free_folder,
    demand_no_models,
)
from ir_scatter_cli.fleet import fleet_options, lost, used_fleet
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import circumstances, report, say, spinner, write

if TYPE_CHECKING:
    from ir_scatter.compare.request import Done, Job


PRECISIONS = ("f32", "f16", "bf16", "default")
VALUES = ("plain", "edge")


@sub_command()
@example("NumPy and every device that is here", "model.xml")
@example("who is wrong, with a page of pictures", "model.onnx --on CPU --on onnxruntime --report page.html")
@example("a model of each node that differs", "model.xml --on CPU --extract wrong")
@example("this machine with another one", "model.xml --on numpy --save there")
@example("every model of a folder", "models --each --on CPU")
@example("every model, elsewhere", "models --each --on CPU --scheduler tls://lab:8786")
@argument("MODEL...", "models")
@section("Who computes")
@option("--on RUNNER...", "Who computes; repeatable.", "names", offers="runners")
@option("--precision", "What runtimes compute in.  [default: f32]", choices=PRECISIONS, default="f32")
@option("--timeout SECONDS", "Per run.  [default: 600]", default=600.0)
@option("--tap-memory SIZE", "Tapped values held at once.  [default: 1GiB]", default="1GiB")
@option("--skip-missing", "Pass over runners that cannot run here.")
@section("Where")
@fleet_options(resume="With --each, do not do again what an earlier run finished.")
@section("On which inputs")
@option("--inputs FILE.npz", "The inputs of the first case, by their names.")
@option("--seed N>=0", "For generated inputs.  [default: 0]", default=0)
@option("--cases N", "So many inputs; those of --inputs are the first.", default=1, show_default=False)
@option("--values", "Ordinary numbers, or extreme.  [default: plain]", choices=VALUES, default="plain")
@option("--input-shape NAME=1,3,?...", "Draw this input in this shape.")
@option("--repeat N", "Run each so often.", default=1, show_default=False)
@section("What is compared")
@option("--each", "Compare every model for itself; folders are searched.")
@option("--pairwise", "Compare every pair of runners, too.")
@option("--no-reference", "Do without NumPy as the reference unless it is named.")
@option("--map-input A=B...", "Input A of one model is B of the other.")
@option("--map-output A=B...", "Output A of one model is B of the other.")
@option("--tolerance OUTPUT=ABS,REL...", "How far apart is close; a node's name will do, none means all.")
@option("--against DIR", "Compare with what was saved there.")
@section("What is written")
@formats("comparison", "How to report.", leave_out="html")
@option("-o, --output FILE")
@option("--report FILE.html", "Write a report with pictures.")
@option("--save DIR", "Save inputs, outputs and tapped values.")
@option("--extract DIR", "Write a model of each node that differs.")
@option("--overwrite", "Replace files that exist, and what was saved in that folder.")
def command(**given: Any) -> int:
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

    if given["report"]:
        from ir_scatter.report.comparison_html import require_packages

        require_packages()
    job = _job(given)
    models = [source.path for source in find_files(job.models, ()).sources] if job.each else [*job.models]
    others = [given["inputs"]]
    if given["against"]:
        others += map(str, Path(given["against"]).glob("*"))
    demand_apart({"-o": given["output"], "--report": given["report"]}, models, others)
    demand_apart_from_folders(given["save"], given["extract"], models, others)
    for name, path in (("-o", given["output"]), ("--report", given["report"])):
        demand_free(name, path, overwrite=given["overwrite"])
    demand_no_models(given["extract"], overwrite=given["overwrite"])
    demand_free_folder(given["save"], each=job.each, overwrite=given["overwrite"])
    try:
        with used_fleet(given) as fleet:
            if fleet is not None and not job.names:
                there = ", ".join(runners.known())
                raise UsageError(f"--scheduler goes with --on, as machines differ; there is {there}")
            spread = fleet if job.each else None  # which says itself how far it is
            with spinner(spread or "starting") as tell, told_to(None if spread else tell):
                done = run_job(job, executor=fleet)
    except Interrupted as interrupt:
        done = interrupt.found
    except KeyboardInterrupt:
        say("interrupted before anything was compared")
        return exits.INTERRUPTED
    is_new = not given["overwrite"]
    report("comparison", given["format"], done, given["output"], is_new=is_new, each=given["each"])
    if given["report"]:
        source = {name: given[name] for name in ("inputs", "against")}
        page = render("comparison", "html", done, **source, **circumstances())
        write(page, given["report"], is_new=is_new)
    is_named = bool(given["names"])
    failures = [f"{failure.model}: {failure.message}" for failure in done.failures]
    for line in (*done.written, *done.unwritten, *_passed_over(done, is_named=is_named), *failures):
        say(line)
    if fleet is not None and fleet.gone:
        return lost(fleet, len(models) - len(done.found) - len(done.failures), "model")
    return exits.INTERRUPTED if done.interrupted else _exit_code(done, is_named=is_named)


def _job(given: dict[str, Any]) -> "Job":
    from ir_scatter.compare.measure import Tolerances
    from ir_scatter.compare.request import Job
    from ir_scatter.compare.result import Settings

    same = ("seed", "cases", "repeat", "values", "precision", "pairwise", "timeout", "tap_memory")
    settings = Settings(
        **{name: given[name] for name in same},
        input_shapes=dict(given["input_shape"]),
        map_inputs=given["map_input"],
        map_outputs=given["map_output"],
        tolerances=Tolerances(given["tolerance"]),
        reference=not given["no_reference"],
        describes=bool(given["report"] or given["save"]),
    )
    names = ("models", "names", "each", "inputs", "skip_missing", "save", "against", "extract", "overwrite")
    return Job(settings=settings, **{name: given[name] for name in names})


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
