"""`ir-scatter explain`."""

import click

from ir_scatter.explain import explain
from ir_scatter.report.characters import reflowed
from ir_scatter_cli import options
from ir_scatter_cli.output import terminal_width, write

_EXAMPLES = {
    "a rule, by its code or its name": "ir-scatter explain SCT203",
    "why a node is not converted": "ir-scatter explain CVT105",
    "an operator, in one version or in all": "ir-scatter explain ScatterNDUpdate-15",
    "a page of the documents; without a name, their list": "ir-scatter explain kv-cache",
}


@click.command("explain", cls=options.Command, examples=_EXAMPLES)
@click.argument(
    "topic", metavar="[CODE|OPERATOR|PAGE]", default="index", shell_complete=options.offer("topics")
)
def command(topic: str) -> None:
    """Explain a rule (SCT203) or an operator (ScatterNDUpdate-15), or print a page of the documents.

    `ir-scatter rules` lists the rules.
    """
    write(reflowed(explain(topic), terminal_width()))
