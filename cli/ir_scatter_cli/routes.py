"""`ir-scatter routes`."""

from ir_scatter.report.registry import render
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import style, write


@sub_command()
@example("all rewrites", "")
@example("for programs", "--format json -o routes.json")
@formats("routes", "Format of the table.")
@option("-o, --output FILE")
@option("--overwrite")
def command(format: str, output: str | None, overwrite: bool) -> None:
    """List the rewrites that `convert` supports: from, to, under which conditions."""
    from ir_scatter.rewrites import all_rewrites

    demand_free("-o", output, overwrite=overwrite)
    write(render("routes", format, all_rewrites(), **style(output)), output, is_new=not overwrite)
