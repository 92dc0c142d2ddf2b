"""`ir-scatter inspect`."""

import click

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import Source
from ir_scatter.inspect import Inspection, inspect
from ir_scatter.reading import read
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, find_sources
from ir_scatter_cli.options import Command, exclude_option, format_option, output_option
from ir_scatter_cli.output import report


@click.command("inspect", cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@format_option("inspection", "How to write the list.")
@output_option
@exclude_option
@click.option("-v", "--verbose", is_flag=True, help="Say what was passed over.")
def command(
    paths: tuple[str, ...], format: str, output: str | None, exclude: tuple[str, ...], verbose: bool
) -> int:
    """List the scatter nodes of models: operator, shapes, types, axis, reduction, indices.

    PATH is a file (.xml or .onnx, told by its content), a folder or a glob.
    """
    sources = find_sources(paths, exclude)
    demand_apart({"-o": output}, [source.path for source in sources])
    inspections = [one for source in sources if (one := _inspect(source, verbose)) is not None]
    report("inspection", format, inspections, output)
    for one in inspections:
        if one.error:
            click.echo(f"ir-scatter: {one.path}: {one.error}", err=True)
    return exits.UNREADABLE if any(one.error for one in inspections) else exits.OK


def _inspect(source: Source, verbose: bool) -> Inspection | None:
    try:
        model = read(source.path)
    except UnreadableModel as error:
        if source.is_named or error.is_model:
            return Inspection(source.path, None, (), error.message)
        if verbose:
            click.echo(f"ir-scatter: {source.path}: passed over: {error.message}", err=True)
        return None
    return Inspection(source.path, model.format, tuple(inspect(model)))
