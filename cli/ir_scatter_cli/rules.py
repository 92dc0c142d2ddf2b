"""`ir-scatter rules`."""

from ir_scatter_cli.files import demand_free
from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import report


@sub_command()
@example("everything that has a code", "")
@example("for programs", "--format json -o rules.json")
@formats("rules", "How to write the list.")
@option("-o, --output FILE")
@option("--overwrite")
def command(format: str, output: str | None, overwrite: bool) -> None:
    """List everything that has a code: the rules, and why `convert` refuses a node.

    Each has a code, a name, a severity and a sentence; `ir-scatter explain CODE` says more.
    Where an option takes a code, it takes the name of a rule as well.
    """
    from ir_scatter.explain import catalogue

    demand_free("-o", output, overwrite=overwrite)
    report("rules", format, catalogue(), output, is_new=not overwrite)
