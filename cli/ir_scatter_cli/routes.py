"""`ir-scatter routes`."""

import click

from ir_scatter.report import routes
from ir_scatter_cli import exits
from ir_scatter_cli.options import write


@click.command("routes")
@click.option(
    "--format",
    "format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write the table.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
def command(format: str, output: str | None) -> int:
    """List the rewrites that `convert` knows: from, to, under which conditions."""
    if format == "json":
        from ir_scatter.report.json import dumps
        from ir_scatter.version import versions

        write(dumps(routes.document(versions())), output)
    else:
        write(routes.text(), output)
    return exits.OK
