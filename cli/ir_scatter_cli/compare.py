"""`ir-scatter compare`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ir_scatter import runners
from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import find_files
from ir_scatter.report.registry import render
from ir_scatter.runners.defaults import NUMPY, PRECISION, PRECISIONS, TAP_MEMORY, TAPS, TIME_LIMIT
from ir_scatter_cli import exits
from ir_scatter_cli.files import (
    demand_apart,
    demand_apart_from_folders,
    demand_free,
    demand_free_folder,
    demand_no_models,
)
from ir_scatter_cli.fleet import directory_of, fleet_options, open_fleet, report_lost
from ir_scatter_cli.givens import read_texts
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import circumstances, say, spinner, style, write

if TYPE_CHECKING:
    from ir_scatter.compare.request import ComparedModels, CompareRequest


VALUES = ("plain", "edge")
_TAP_MEMORY = f"{TAP_MEMORY >> 30}GiB"


@sub_command()
@example("NumPy and every device that works here", "model.xml")
@example(
    "which runtime is wrong, as a page with pictures",
    "model.onnx --on CPU --on onnxruntime --report page.html",
)
@example("a one-node model of each node that differs", "model.xml --on CPU --extract wrong")
@example("save results, to compare them elsewhere (--against)", "model.xml --on numpy --save there")
@example("every model of a folder", "models --each --on CPU")
@example("every model, on other machines", "models --each --on CPU --scheduler tls://lab:8786")
@argument("MODEL...", "models")
@section("Runners")
@option("--on RUNNER...", "Run the model here; repeatable.", "names", offers="runners")
@option(
    "--precision", f"Precision of inference.  [default: {PRECISION}]", choices=PRECISIONS, default=PRECISION
)
@option("--timeout SECONDS", f"Limit per run.  [default: {TIME_LIMIT:g}]", default=TIME_LIMIT)
@option(
    "--tap-memory SIZE",
    f"Memory limit for inputs and outputs of nodes.  [default: {_TAP_MEMORY}]",
    default=_TAP_MEMORY,
)
@option(
    "--taps",
    f"Nodes read to find where a difference arises.  [default: {TAPS[0]}]",
    choices=TAPS,
    default=TAPS[0],
)
@option("--skip-missing", "Skip runners that are not available here.")
@section("Machines")
@fleet_options(resume="With --each, skip models that an earlier run finished.")
@section("Inputs")
@option("--inputs FILE", "Inputs of the first cases: FILE.npz, a folder of .pb, FILE.py:FUNCTION.")
@option("--seed N>=0", "Seed of generated inputs.  [default: 0]", default=0)
@option("--cases N", "Number of input sets; those of --inputs are the first.", default=1, show_default=False)
@option("--values", "Ordinary or extreme numbers.  [default: plain]", choices=VALUES, default="plain")
@option("--input-shape NAME=1,3,?...", "Generate this input with this shape.")
@option("--input-range NAME=LOW..HIGH...")
@option("--given TEXT...")
@option("--repeat N", "Number of runs of each case.", default=1, show_default=False)
@section("What is compared")
@option("--each", "Compare every model on its own; folders are searched.")
@option("--pairwise", "Also compare every pair of runners.")
@option("--no-reference", "Do not add NumPy as the reference.")
@option("--map-input A=B...", "Pair input A of one model with B of the other.")
@option("--map-output A=B...", "Pair output A of one model with B of the other.")
@option("--tolerance OUTPUT=ABS,REL...", "Tolerance of an output or node; without a name, of all.")
@option("--against DIR", "Compare with the results saved in this folder.")
@section("What is written")
@formats("comparison", "Format of the report.", leave_out="html")
@option("-o, --output FILE")
@option("-q, --quiet")
@option("--report FILE.html", "Write a report with pictures.")
@option("--save DIR", "Save inputs, outputs, and those of nodes.")
@option("--extract DIR", "Write a one-node model of each node that differs.")
@option("--overwrite", "Replace existing files and results saved in the folder.")
def command(**params: Any) -> int:
    """Run a model on several runtimes; report which node, element and runtime is wrong.

    MODEL is a .xml or .onnx file. Given two models, their outputs are compared with each other.
    Without --on, NumPy and every device found are used; `ir-scatter devices` lists them. NumPy follows
    the specification: it is the reference for every model that it can compute.

    Exit codes: 0 agreement; 1 a difference, a result that changes, or illegal indices; 2 wrong usage;
    3 a file cannot be read or written; 4 no difference, but a runner named by --on could not run, or
    nothing could be compared on it; 130 interrupted, 143 terminated, after reporting what was finished.
    """
    if params["scheduler"] is None:
        for name in params["names"]:
            if name.strip().lower() != NUMPY:
                runners.find(name, (NUMPY,))  # a wrong name is reported before slow imports
    from ir_scatter.compare.phases import Interrupted, report_to
    from ir_scatter.compare.request import run_job
    from ir_scatter.evaluate.input_files import files_of

    job = _job(params)
    models = [source.path for source in find_files(job.models, ()).sources] if job.each else [*job.models]
    other_inputs = files_of(params["inputs"]) if params["inputs"] else []
    if params["against"]:
        other_inputs += map(str, Path(params["against"]).glob("*"))
    demand_apart({"-o": params["output"], "--report": params["report"]}, models, other_inputs)
    demand_apart_from_folders(params["save"], params["extract"], models, other_inputs)
    report = params["report"]
    if report is not None and Path(report).suffix.lower() not in {"", ".html", ".htm"}:
        raise click.UsageError(f"--report: {report} is not a page, expected a name that ends in .html")
    for name, path in (("-o", params["output"]), ("--report", params["report"])):
        demand_free(name, path, overwrite=params["overwrite"])
    demand_no_models(params["extract"], overwrite=params["overwrite"])
    demand_free_folder(params["save"], each=job.each, overwrite=params["overwrite"])
    was_interrupted = False
    try:
        with open_fleet(params) as fleet:
            directory = directory_of(fleet)
            if fleet is not None and not job.names:
                there = ", ".join(directory.known())
                raise UsageError(f"--scheduler goes with --on, as machines differ; there is {there}")
            spread = fleet if job.each else None  # a fleet reports its own progress
            quiet = params["quiet"]
            with spinner(spread or "starting", quiet=quiet) as update, report_to(None if spread else update):
                done = run_job(job, executor=fleet, directory=directory)
                from ir_scatter.convert.fixes import with_fixes

                try:
                    done = with_fixes(done)
                except KeyboardInterrupt:
                    say("interrupted while looking for a way around defects; the comparison is complete")
                    was_interrupted = True
    except Interrupted as interrupt:
        done = interrupt.found
    except KeyboardInterrupt:
        say("interrupted before anything was compared")
        return exits.INTERRUPTED
    text = render("comparison", params["format"], done, each=params["each"], **style(params["output"]))
    is_new = not params["overwrite"]
    write(text, params["output"], is_new=is_new)
    if params["report"]:
        inputs, against = params["inputs"], params["against"]
        page = render("comparison", "html", done, inputs=inputs, against=against, **circumstances())
        write(page, params["report"], is_new=is_new)
    are_runners_named = bool(params["names"])
    failures = [f"{failure.model}: {failure.message}" for failure in done.failures]
    for line in (
        *done.written,
        *done.unwritten,
        *_skipped_runners(done, are_runners_named=are_runners_named),
        *failures,
    ):
        say(line)
    if fleet is not None and fleet.gone:
        return report_lost(fleet, len(models) - len(done.found) - len(done.failures), "model")
    return (
        exits.INTERRUPTED
        if done.interrupted or was_interrupted
        else _exit_code(done, are_runners_named=are_runners_named)
    )


def _job(params: dict[str, Any]) -> "CompareRequest":
    from ir_scatter.compare.measure import Tolerances
    from ir_scatter.compare.request import CompareRequest
    from ir_scatter.compare.result import CompareSettings

    copied = ("seed", "cases", "repeat", "values", "precision", "pairwise", "timeout", "taps", "tap_memory")
    settings = CompareSettings(
        **{name: params[name] for name in copied},
        input_shapes=dict(params["input_shape"]),
        input_ranges=dict(params["input_range"]),
        given=tuple(read_texts(params["given"])),
        map_inputs=params["map_input"],
        map_outputs=params["map_output"],
        tolerances=Tolerances(params["tolerance"]),
        reference=not params["no_reference"],
        describes=bool(params["report"] or params["save"]),
    )
    names = ("models", "names", "each", "inputs", "skip_missing", "save", "against", "extract", "overwrite")
    return CompareRequest(settings=settings, **{name: params[name] for name in names})


def _skipped_runners(done: "ComparedModels", *, are_runners_named: bool) -> Iterator[str]:
    """Yield a remark for each runner that was skipped."""
    if are_runners_named:
        for name, reason in done.skipped:
            yield f"{name} is skipped: {reason}"
    elif done.skipped:
        names = ", ".join(name for name, _ in done.skipped)
        yield f"not available: {names}; `ir-scatter devices` shows why"


def _exit_code(done: "ComparedModels", *, are_runners_named: bool) -> int:
    if done.unwritten or any(failure.is_unreadable for failure in done.failures):
        return exits.UNREADABLE
    if any(compared.differs for compared in done.found):
        return exits.FINDINGS
    if done.failures:
        return exits.USAGE
    from ir_scatter.compare.result import has_failed

    return exits.RUNTIME if are_runners_named and has_failed(done.found) else exits.OK
