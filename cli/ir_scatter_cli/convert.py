"""`ir-scatter convert`."""

import sys
from typing import Any

import click

from ir_scatter.report.characters import visible
from ir_scatter.report.registry import render
from ir_scatter_cli import exits, options
from ir_scatter_cli.output import report, use_color, write

_COLORS = {"+": "32", "-": "31", "@": "36"}


_EXAMPLES = {
    "deprecated operators become their successors": "ir-scatter convert model.onnx -o new.onnx",
    "what devices refuse or get wrong, and nothing else": "ir-scatter convert model.xml --for CPU -o new.xml",
    "only some nodes; look at it first": "ir-scatter convert model.xml --to ScatterNDUpdate "
    "--node 'cache*' --diff",
    "with runtime indices that stay in their range": "ir-scatter convert model.xml --guard clamp -o new.xml",
    "with a promise of what the file does not tell": "ir-scatter convert model.xml --to ScatterUpdate "
    "--assume equal-indices --diff",
    "an ONNX model as an IR, and both on a device": "ir-scatter convert model.onnx "
    "-o model.xml --verify-on CPU",
}


@click.command("convert", cls=options.Command, examples=_EXAMPLES)
@options.models()
@options.section("What is converted")
@options.words(
    "--to",
    kind="targets",
    metavar="OPERATOR",
    help="What to convert to; see `ir-scatter routes`.",
    multiple=False,
)
@options.words(
    "--for", "targets", kind="runners", metavar="DEVICE", help="Around its known defects; repeatable."
)
@options.choice(
    "--guard", ["clamp", "wrap"], "Limit indices to their range, or count negative ones from the end."
)
@options.words(
    "--from", "sources", kind="operators", metavar="OPERATOR", help="Only nodes of it; repeatable."
)
@options.words("--node", "nodes", kind="nodes", metavar="NAME", help="Only this node, or a glob; repeatable.")
@click.option("--opset", type=options.Opset(), metavar="N", help="The opset an ONNX model moves to.")
@options.words(
    "--assume", kind="conditions", metavar="CONDITION", help="Promise what the file does not tell."
)
@options.flag("--keep-negative-indices", help="Leave them where the target forbids them.")
@options.flag("--partial", help="Write although a node is refused.")
@options.section("How it is proven")
@options.number(
    "--verify", default=8, least=0, help="Compare old and new form of each node on N generated inputs."
)
@options.words("--verify-on", kind="devices", metavar="DEVICE", help="Compare both models there, too.")
@options.number("--seed", default=0, least=0, shown=False, help="For the generated inputs.")
@options.section("What is written")
@options.file("-o", "--output", metavar="FILE", help="The new model; its weights are written beside it.")
@options.flag("--in-place", help="Replace the model itself.")
@options.overwrite
@options.flag("--dry-run", help="Say what would be done, and write nothing.")
@options.flag("--diff", help="Show the changes; write only with -o or --in-place.")
@options.format("conversion", "How to report.")
def command(**given: Any) -> int:
    """Rewrite scatter operators into equal forms, and nothing else.

    MODEL is a .xml or .onnx file. Without --to deprecated operators become their successors. An ONNX
    model with an output that ends in .xml becomes an IR, through OpenVINO.

    Exit codes: 1 a node is refused or not verified, and nothing is written without --partial; 2 wrong
    usage; 3 a file cannot be read or written; 4 a runtime of --verify-on failed.
    """
    if given["in_place"] and given["output"] is not None:
        raise click.UsageError("--in-place goes without -o")
    if given["dry_run"] and given["in_place"]:
        raise click.UsageError("--dry-run goes without --in-place")
    is_shown = given["diff"] or given["dry_run"]
    if not given["in_place"] and given["output"] is None and not is_shown:
        raise click.UsageError("-o FILE is missing, expected it, --in-place, --diff or --dry-run")
    from ir_scatter.convert.job import Job, run_job

    wanted = "to sources nodes opset assume keep_negative_indices verify seed targets guard"
    job = Job(
        source=given["path"],
        output=given["path"] if given["in_place"] else given["output"],
        options={name: given[name] for name in wanted.split()},
        devices=given["verify_on"],
        is_dry=given["dry_run"],
        with_diff=given["diff"],
        **{name: given[name] for name in ("partial", "in_place", "overwrite")},
    )
    done = run_job(job)
    is_text = given["format"] == "text"
    if done.diff is not None and is_text:
        color = use_color()
        write(_shown(done.diff, color) if color or sys.stdout.isatty() else done.diff)
    if given["diff"] and is_text:
        click.echo(render("conversion", "text", done), nl=False, err=True)
    else:
        report("conversion", given["format"], done)
    if done.conversion.refused:
        return exits.FINDINGS
    return exits.RUNTIME if done.failed_devices else exits.OK


def _shown(diff: str, color: bool) -> str:
    """A diff whose lines cannot send terminal escapes of their own."""
    lines = ["\t".join(visible(part) for part in line.split("\t")) for line in diff.split("\n")]
    if color:
        lines = [f"\x1b[{_COLORS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLORS else line for line in lines]
    return "\n".join(lines)
