"""`ir-scatter run`."""

import io
from typing import Any

import click

from ir_scatter.core.errors import BrokenModel, EvaluationFailed, UnknownOperator
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, read_model
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import report, say, write


@sub_command()
@example("on drawn inputs, and say what comes out", "model.onnx --seed 1")
@example("on inputs of your own", "model.onnx --inputs inputs.npz -o outputs.npz")
@example("where the file leaves shapes open", "model.onnx --input-shape data=4,5")
@argument("MODEL", "path")
@section("Inputs")
@option("--inputs FILE.npz", "The inputs, by their names.")
@option("--seed N>=0", "Draw other inputs.  [default: 0]")
@option("--input-shape NAME=1,3,?...", "Draw this input in this shape; repeatable.")
@option("--stdin-format")
@section("Outputs")
@option("-o, --output FILE.npz", "Write the outputs instead of a summary.")
@option("--overwrite")
@formats("outputs", "How to write the summary.")
def command(**given: Any) -> int:
    """Compute a model with NumPy.

    MODEL is a .xml or .onnx file, or - for standard input, made of scatter operators and of those
    around them: data movement, arithmetic, If, loops, functions. Without --inputs legal ones are
    drawn: indices are in range, and differ where that matters and is possible.

    FILE.npz holds no pickles. In it strings are fixed-width text; bf16, f8 and other short
    floating-point types are float32, whole numbers of 4 bits and less are int8 or uint8.

    Exit codes: 1 an operator breaks its rules; 2 wrong inputs; 3 the model cannot be read; 4 NumPy
    cannot compute it.
    """
    path, inputs = given["path"], given["inputs"]
    if inputs is not None and (given["seed"] is not None or given["input_shape"]):
        raise click.UsageError("--inputs goes without --seed and --input-shape")
    demand_apart({"-o": given["output"]}, [path], [inputs])
    demand_free("-o", given["output"], overwrite=given["overwrite"])
    try:
        return _run(given)
    except BrokenModel as error:
        from ir_scatter.lint import FileResult, Report
        from ir_scatter.report.registry import render

        found = Report((FileResult(path, None, True, 0, error.diagnostics),))
        click.echo(render("findings", "text", found, quiet=True), err=True, nl=False)
        return exits.FINDINGS
    except (EvaluationFailed, UnknownOperator) as error:
        say(error)
        return exits.FINDINGS if getattr(error, "breaks_rule", False) else exits.RUNTIME


def _run(given: dict[str, Any]) -> int:
    from ir_scatter.evaluate import archive
    from ir_scatter.evaluate.model import prepare

    inputs, output = given["inputs"], given["output"]
    program = prepare(read_model(given["path"], given["stdin_format"]))
    if inputs is None:
        from ir_scatter.inputs.model import draw_feeds

        feeds = draw_feeds(program, given["seed"] or 0, dict(given["input_shape"])).feeds
    else:
        feeds = archive.fit_types(archive.read_arrays(inputs), program.inputs)
    found, repeated = program.run_noting(feeds)
    for node in repeated:
        say(f"{node}: several updates of one element, the last one stays")
    if output is None:
        report("outputs", given["format"], found)
        return exits.OK
    for name, array in found.items():
        written = archive.storable(array).dtype
        if written != array.dtype and array.dtype != object:
            say(f"{name} is {array.dtype.name}, written as {written.name}")
    content = io.BytesIO()
    archive.write_arrays(content, found)
    write(content.getvalue(), output, is_new=not given["overwrite"])
    return exits.OK
