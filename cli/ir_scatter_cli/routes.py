"""`ir-scatter routes`."""

from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import report


@sub_command()
@example("what can become what", "")
@example("for programs", "--format json -o routes.json")
@formats("routes", "How to write the table.")
@option("-o, --output FILE")
def command(format: str, output: str | None) -> None:
    """List the rewrites that `convert` knows: from, to, under which conditions."""
    from ir_scatter.rewrites import all_rewrites

    report("routes", format, all_rewrites(), output)
