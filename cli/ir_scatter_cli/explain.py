"""`ir-scatter explain`."""

import click

from ir_scatter.explain import explain
from ir_scatter_cli.options import Command
from ir_scatter_cli.output import write


@click.command("explain", cls=Command)
@click.argument("topic", metavar="CODE|OPERATOR")
def command(topic: str) -> None:
    """Explain a rule (SCT203) or an operator (ScatterNDUpdate-15)."""
    write(explain(topic))
