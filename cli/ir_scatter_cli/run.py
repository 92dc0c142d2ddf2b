"""`ir-scatter run`."""

import io
from functools import partial
from typing import Any

import click

from ir_scatter.core.errors import BrokenModel, EvaluationFailed, UnknownOperator
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, read_model
from ir_scatter_cli.givens import read_texts
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import say, style, write


@sub_command()
@example("on generated inputs, with a summary of the outputs", "model.onnx --seed 1")
@example("on your own inputs", "model.onnx --inputs inputs.npz -o outputs.npz")
@example("with shapes that are dynamic in the file", "model.onnx --input-shape data=4,5")
@argument("MODEL", "path")
@section("Inputs")
@option("--inputs FILE", "The inputs: FILE.npz, a folder of .pb, or FILE.py:FUNCTION.")
@option("--seed N>=0", "Seed of generated inputs.  [default: 0]")
@option("--input-shape NAME=1,3,?...", "Generate this input with this shape; repeatable.")
@option("--input-range NAME=LOW..HIGH...")
@option("--given TEXT...")
@option("--stdin-format")
@section("Outputs")
@option("-o, --output FILE.npz", "Write the outputs to this file instead of a summary.")
@option("--overwrite")
@formats("outputs", "Format of the summary.")
def command(**params: Any) -> int:
    """Compute a model with NumPy.

    MODEL is a .xml or .onnx file, or - for standard input. Supported are scatter operators and the
    operators around them: data movement, arithmetic, If, loops, functions. Without --inputs, legal
    inputs are generated: indices are in range, and unique where that matters and is possible. Outputs
    that depend on an unknown or random operator are named, and the others computed.

    FILE.npz contains no pickles. Strings are fixed-width text; bf16, f8 and other short floating-point
    types are stored as float32, integers of 4 bits and less as int8 or uint8.

    Exit codes: 1 an operator breaks its rules; 2 wrong inputs; 3 the model cannot be read; 4 NumPy
    cannot compute it, or not all of its outputs.
    """
    path, inputs = params["path"], params["inputs"]
    if inputs is not None and (params["seed"] is not None or params["input_shape"] or params["input_range"]):
        raise click.UsageError("--inputs goes without --seed, --input-shape and --input-range")
    if inputs is not None:
        from ir_scatter.evaluate.input_files import files_of

        demand_apart({"-o": params["output"]}, [path], files_of(inputs))
    demand_apart({"-o": params["output"]}, [path])
    demand_free("-o", params["output"], overwrite=params["overwrite"])
    try:
        return _run(params)
    except BrokenModel as error:
        from ir_scatter.lint import FileResult, Report

        broken = Report((FileResult(path, None, True, 0, error.diagnostics),))
        click.echo(render("findings", "text", broken, quiet=True), err=True, nl=False)
        return exits.FINDINGS
    except (EvaluationFailed, UnknownOperator) as error:
        say(error)
        return exits.FINDINGS if getattr(error, "breaks_rule", False) else exits.RUNTIME


def _run(params: dict[str, Any]) -> int:
    from ir_scatter.evaluate import archive
    from ir_scatter.evaluate.model import prepare
    from ir_scatter.inputs.givens import GivenInputs

    inputs, output = params["inputs"], params["output"]
    model = read_model(params["path"], params["stdin_format"])
    givens = GivenInputs(model, read_texts(params["given"]))
    program = prepare(model)
    if inputs is None:
        from ir_scatter.inputs.model import draw_feeds

        shapes, ranges = dict(params["input_shape"]), dict(params["input_range"])
        feeds = givens.draw(partial(draw_feeds, program), params["seed"] or 0, shapes, ranges).feeds
    else:
        from ir_scatter.evaluate.input_files import read_one_case

        feeds = read_one_case(inputs, program.inputs)
        givens.demand(feeds)
    outputs, not_computed, repeated = program.run_in_part(feeds)
    for node in repeated:
        say(f"{node}: several updates of one element; the last one wins")
    if not outputs:
        for end in not_computed.values():
            raise program.error_of(end)
    ends = {name: end.source for name, end in not_computed.items()}
    for name, source in ends.items():
        say(f"output {name} is not computed: NumPy computes nothing after {source}")
    code = exits.RUNTIME if ends else exits.OK
    if output is None:
        write(render("outputs", params["format"], outputs, not_computed=ends, **style()))
        return code
    for name, array in outputs.items():
        written = archive.storable(array).dtype
        if written != array.dtype and array.dtype != object:
            say(f"{name} is {array.dtype.name}, written as {written.name}")
    content = io.BytesIO()
    archive.write_arrays(content, outputs)
    write(content.getvalue(), output, is_new=not params["overwrite"])
    return code
