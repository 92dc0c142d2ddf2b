"""`ir-scatter devices`."""

import click

from ir_scatter_cli import exits
from ir_scatter_cli.options import Command, format_option, output_option
from ir_scatter_cli.output import report, spinner

_EXAMPLES = {
    "what `ir-scatter compare --on` can name here": "ir-scatter devices",
    "for programs": "ir-scatter devices --format json",
}


@click.command("devices", cls=Command, examples=_EXAMPLES)
@format_option("devices", "How to write the list.")
@click.option("-v", "--verbose", is_flag=True, help="Say all there is to know of each.")
@output_option
def command(format: str, verbose: bool, output: str | None) -> int:
    """List what can run here, and what the others need.

    The precision is what a device computes in if nobody asks for another one.
    """
    from ir_scatter.compare.request import survey

    with spinner() as tell:
        if tell is not None:
            tell("every runner runs a small model")
        found = survey()
    report("devices", format, found, output, verbose=verbose)
    return exits.OK
