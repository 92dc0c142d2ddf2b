"""`ir-scatter devices`."""

import click

from ir_scatter_cli import exits
from ir_scatter_cli.options import Command, format_option, output_option
from ir_scatter_cli.output import report


@click.command("devices", cls=Command)
@format_option("devices", "How to write the list.")
@output_option
def command(format: str, output: str | None) -> int:
    """List what can run here: each runner with its device and versions, and why others cannot."""
    from ir_scatter.compare.request import survey

    report("devices", format, survey(), output)
    return exits.OK
