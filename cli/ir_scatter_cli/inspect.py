"""`ir-scatter inspect`."""

from typing import Any

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import STANDARD_INPUT, STDIN_NAME, Source
from ir_scatter.inspect import Inspection, inspect
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, find_sources, read_model
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import say, style, write


@sub_command()
@example("the scatter nodes of a model", "model.xml")
@example("all models in a folder, as JSON", "models --format json")
@example("a model on standard input", "- < model.onnx")
@argument("PATH...", "paths")
@section("What is read")
@option("--exclude GLOB...")
@option("--stdin-format")
@section("Output")
@formats("inspection", "Format of the list.")
@option("-o, --output FILE")
@option("--overwrite")
@option("-v, --verbose", "List skipped files; show what is proven about indices.")
def command(**params: Any) -> int:
    """List the scatter nodes of models: operator, shapes, types, axis, reduction, indices.

    PATH is a .xml or .onnx file (recognised by its content), a folder, a glob, or - for standard input.
    """
    sources = find_sources(params["paths"], params["exclude"])
    demand_apart({"-o": params["output"]}, [source.path for source in sources])
    demand_free("-o", params["output"], overwrite=params["overwrite"])
    results = [_inspect(source, params["stdin_format"], params["verbose"]) for source in sources]
    inspections = [inspection for inspection in results if inspection is not None]
    text = render("inspection", params["format"], inspections, **style(params["output"]))
    write(text, params["output"], is_new=not params["overwrite"])
    for inspection in inspections:
        if inspection.error:
            say(f"{inspection.path}: {inspection.error}")
    is_read = (inspections or params["exclude"]) and not any(inspection.error for inspection in inspections)
    return exits.OK if is_read else exits.UNREADABLE


def _inspect(source: Source, stdin_format: str | None, verbose: bool) -> Inspection | None:
    path = STDIN_NAME if source.path == STANDARD_INPUT else source.path
    try:
        model = read_model(source.path, stdin_format)
    except UnreadableModel as error:
        if source.is_named or error.is_model:
            return Inspection(path, None, (), error.advice)
        if verbose:
            say(f"{path}: skipped: {error.message}")
        return None
    return Inspection(path, model.format, tuple(inspect(model, proves=verbose)))
