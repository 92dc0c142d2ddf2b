"""`ir-scatter explain`."""

from ir_scatter.explain import explain
from ir_scatter.report.characters import reflow
from ir_scatter_cli.options import argument, example, sub_command
from ir_scatter_cli.output import terminal_width, write


@sub_command()
@example("a rule, by its code or its name", "SCT203")
@example("why a node is not converted", "CVT105")
@example("an operator, in one version or in all", "ScatterNDUpdate-15")
@example("a page of the documentation; without a name, the list of pages", "kv-cache")
@argument("[CODE|OPERATOR|PAGE]...", "words", offers="topics")
def command(words: tuple[str, ...]) -> None:
    """Explain a rule (SCT203) or an operator (ScatterNDUpdate-15), or print a page of the documentation.

    `ir-scatter rules` lists the rules.
    """
    topic = " ".join(words) or "index"
    write(reflow(explain(topic), terminal_width()))
