"""`ir-scatter explain`."""

import click

from ir_scatter.explain import explain
from ir_scatter_cli.files import usage
from ir_scatter_cli.output import write


@click.command("explain")
@click.argument("topic", metavar="CODE|OPERATOR")
def command(topic: str) -> None:
    """Explain a rule (SCT203) or an operator (ScatterNDUpdate-15)."""
    with usage():
        write(explain(topic))
