"""`ir-scatter inspect`."""

from typing import Any

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import STANDARD_INPUT, STDIN_NAME, Source
from ir_scatter.inspect import Inspection, inspect
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, find_sources, read_model
from ir_scatter_cli.options import argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import report, say


@sub_command()
@example("the scatter nodes of a model", "model.xml")
@example("of all models of a folder, for programs", "models --format json")
@example("of what another program writes", "- < model.onnx")
@argument("PATH...", "paths")
@section("What is looked at")
@option("--exclude GLOB...")
@option("--stdin-format")
@section("How it is written")
@formats("inspection", "How to write the list.")
@option("-o, --output FILE")
@option("--overwrite")
@option("-v, --verbose")
def command(**given: Any) -> int:
    """List the scatter nodes of models: operator, shapes, types, axis, reduction, indices.

    PATH is a file (.xml or .onnx, told by its content), a folder, a glob, or - for standard input.
    """
    sources = find_sources(given["paths"], given["exclude"])
    demand_apart({"-o": given["output"]}, [source.path for source in sources])
    demand_free("-o", given["output"], overwrite=given["overwrite"])
    tried = [_inspect(source, given["stdin_format"], given["verbose"]) for source in sources]
    inspections = [one for one in tried if one is not None]
    report("inspection", given["format"], inspections, given["output"], is_new=not given["overwrite"])
    for one in inspections:
        if one.error:
            say(f"{one.path}: {one.error}")
    return exits.UNREADABLE if any(one.error for one in inspections) else exits.OK


def _inspect(source: Source, stdin_format: str | None, verbose: bool) -> Inspection | None:
    path = STDIN_NAME if source.path == STANDARD_INPUT else source.path
    try:
        model = read_model(source.path, stdin_format)
    except UnreadableModel as error:
        if source.is_named or error.is_model:
            return Inspection(path, None, (), error.message)
        if verbose:
            say(f"{path}: passed over: {error.message}")
        return None
    return Inspection(path, model.format, tuple(inspect(model)))
