"""`ir-scatter devices`."""

import shutil

import click

from ir_scatter_cli import exits
from ir_scatter_cli.options import use_color, write


@click.command("devices")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to write the list.")
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
def command(format: str, output: str | None) -> int:
    """List what can run here: each runner with its device and versions, and why others cannot."""
    from ir_scatter.compare.request import survey
    from ir_scatter.report.devices import document, text

    found = survey()
    if format == "json":
        from ir_scatter.report.json import dumps
        from ir_scatter.version import versions

        write(dumps(document(found, versions())), output)
    else:
        color = use_color(output is not None)
        width = shutil.get_terminal_size().columns if color else None
        write(text(found, color=color, width=width), output)
    return exits.OK
