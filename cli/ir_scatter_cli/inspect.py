"""`ir-scatter inspect`."""

from collections.abc import Sequence

import click

from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import Source, find_files
from ir_scatter.inspect import inspect
from ir_scatter.reading import read
from ir_scatter.report.inspection import Inspection, document, rows, summary
from ir_scatter.version import versions
from ir_scatter_cli import exits
from ir_scatter_cli.destinations import demand_apart
from ir_scatter_cli.options import use_color, write


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write the list.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out paths that match.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was passed over.")
def command(
    paths: tuple[str, ...], format: str, output: str | None, exclude: tuple[str, ...], verbose: bool
) -> int:
    """List the scatter nodes of models: operator, shapes, types, axis, reduction, indices.

    PATH is a file (.xml or .onnx, told by its content), a folder or a glob.
    """
    found = find_files(paths, exclude)
    for folder in found.empty_folders:
        click.echo(f"ir-scatter: {folder}: no .xml or .onnx file in this folder", err=True)
    demand_apart({"-o": output}, [source.path for source in found.sources])
    inspections = [one for source in found.sources if (one := _inspect(source, verbose)) is not None]
    if format == "json":
        from ir_scatter.report.json import dumps

        write(dumps(document(inspections, versions())), output)
    else:
        write(_text(inspections, is_file=output is not None), output)
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


def _text(inspections: Sequence[Inspection], *, is_file: bool) -> str:
    """Draw one table for each file that has scatter nodes, and the totals."""
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    color = use_color(is_file)
    buffer = io.StringIO()
    width = None if color else 10_000
    console = Console(file=buffer, width=width or Console().width, force_terminal=color)
    for one in inspections:
        if not one.nodes:
            continue
        header, *body = rows(one)
        table = Table(box=box.SIMPLE_HEAD if color else None, pad_edge=False)
        for column in header:
            table.add_column(column, overflow="fold")
        for row in body:
            table.add_row(*(Text(cell) for cell in row))
        console.print(Text(one.path, style="bold"))
        console.print(table)
        console.print()
    console.print(Text(summary(inspections)))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
