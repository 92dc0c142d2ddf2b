"""`ir-scatter rules`."""

import click

from ir_scatter_cli import exits, options
from ir_scatter_cli.output import report

_EXAMPLES = {
    "everything that has a code": "ir-scatter rules",
    "for programs": "ir-scatter rules --format json -o rules.json",
}


@click.command("rules", cls=options.Command, examples=_EXAMPLES)
@options.format("rules", "How to write the list.")
@options.output
def command(format: str, output: str | None) -> int:
    """List everything that has a code: the rules, and why `convert` refuses a node.

    Each has a code, a name, a severity and a sentence; `ir-scatter explain CODE` says more.
    Where an option takes a code, it takes the name of a rule as well.
    """
    from ir_scatter.explain import catalogue

    report("rules", format, catalogue(), output)
    return exits.OK
