"""`ir-scatter rules`."""

from ir_scatter.report.registry import render
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import style, write


@sub_command()
@example("all rules and reasons of refusals", "")
@example("for programs", "--format json -o rules.json")
@formats("rules", "Format of the list.")
@option("-o, --output FILE")
@option("--overwrite")
def command(format: str, output: str | None, overwrite: bool) -> None:
    """List everything that has a code: rules, and reasons why `convert` refuses a node.

    Each has a code, a name, a severity and a summary; `ir-scatter explain CODE` shows the details.
    Options that accept a code also accept the name of a rule.
    """
    from ir_scatter.explain import catalogue

    demand_free("-o", output, overwrite=overwrite)
    write(render("rules", format, catalogue(), **style(output)), output, is_new=not overwrite)
