"""`ir-scatter routes`."""

import click

from ir_scatter_cli import exits, options
from ir_scatter_cli.output import report

_EXAMPLES = {
    "what can become what": "ir-scatter routes",
    "for programs": "ir-scatter routes --format json -o routes.json",
}


@click.command("routes", cls=options.Command, examples=_EXAMPLES)
@options.format("routes", "How to write the table.")
@options.output
def command(format: str, output: str | None) -> int:
    """List the rewrites that `convert` knows: from, to, under which conditions."""
    from ir_scatter.rewrites import all_rewrites

    report("routes", format, all_rewrites(), output)
    return exits.OK
