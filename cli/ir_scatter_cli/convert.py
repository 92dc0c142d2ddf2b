"""`ir-scatter convert`."""

import sys
from typing import Any

import click

from ir_scatter.report.characters import visible
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.options import (
    Command,
    Opset,
    choice_option,
    file_option,
    format_option,
    models_argument,
    number_option,
    overwrite_option,
    words_option,
)
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
_SECTIONS = {
    "What is converted": "--to --for --guard --from --node --opset --assume --keep-negative-indices "
    "--partial",
    "How it is proven": "--verify --verify-on --seed",
    "What is written": "--output --in-place --overwrite --dry-run --diff --format",
}


@click.command("convert", cls=Command, examples=_EXAMPLES, sections=_SECTIONS)
@models_argument()
@file_option("-o", "--output", metavar="FILE", help="The new model; its weights are written beside it.")
@words_option(
    "--to",
    kind="targets",
    metavar="OPERATOR",
    help="What to convert to; see `ir-scatter routes`.",
    multiple=False,
)
@words_option(
    "--for", "targets", kind="runners", metavar="DEVICE", help="Around its known defects; repeatable."
)
@choice_option(
    "--guard", ["clamp", "wrap"], "Limit indices to their range, or count negative ones from the end."
)
@words_option("--from", "sources", kind="operators", metavar="OPERATOR", help="Only nodes of it; repeatable.")
@words_option("--node", "nodes", kind="nodes", metavar="NAME", help="Only this node, or a glob; repeatable.")
@click.option("--opset", type=Opset(), metavar="N", help="The opset an ONNX model moves to.")
@words_option("--assume", kind="conditions", metavar="CONDITION", help="Promise what the file does not tell.")
@click.option("--keep-negative-indices", is_flag=True, help="Leave them where the target forbids them.")
@number_option(
    "--verify", default=8, least=0, help="Compare old and new form of each node on N generated inputs."
)
@words_option("--verify-on", kind="devices", metavar="DEVICE", help="Compare both models there, too.")
@number_option("--seed", default=0, least=0, shown=False, help="For the generated inputs.")
@click.option("--diff", is_flag=True, help="Show the changes; write only with -o or --in-place.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--partial", is_flag=True, help="Write although a node is refused.")
@click.option("--in-place", is_flag=True, help="Replace the model itself.")
@overwrite_option
@format_option("conversion", "How to report.")
def command(**options: Any) -> int:
    """Rewrite scatter operators into equal forms, and nothing else.

    MODEL is a .xml or .onnx file. Without --to deprecated operators become their successors. An ONNX
    model with an output that ends in .xml becomes an IR, through OpenVINO.

    Exit codes: 1 a node is refused or not verified, and nothing is written without --partial; 2 wrong
    usage; 3 a file cannot be read or written; 4 a runtime of --verify-on failed.
    """
    if options["in_place"] and options["output"] is not None:
        raise click.UsageError("--in-place goes without -o")
    if options["dry_run"] and options["in_place"]:
        raise click.UsageError("--dry-run goes without --in-place")
    is_shown = options["diff"] or options["dry_run"]
    if not options["in_place"] and options["output"] is None and not is_shown:
        raise click.UsageError("-o FILE is missing, expected it, --in-place, --diff or --dry-run")
    from ir_scatter.convert.job import Job, run_job

    wanted = (
        "to",
        "sources",
        "nodes",
        "opset",
        "assume",
        "keep_negative_indices",
        "verify",
        "seed",
        "targets",
        "guard",
    )
    job = Job(
        source=options["path"],
        output=options["path"] if options["in_place"] else options["output"],
        options={name: options[name] for name in wanted},
        devices=options["verify_on"],
        is_dry=options["dry_run"],
        with_diff=options["diff"],
        **{name: options[name] for name in ("partial", "in_place", "overwrite")},
    )
    done = run_job(job)
    is_text = options["format"] == "text"
    if done.diff is not None and is_text:
        color = use_color()
        write(_shown(done.diff, color) if color or sys.stdout.isatty() else done.diff)
    if options["diff"] and is_text:
        click.echo(render("conversion", "text", done), nl=False, err=True)
    else:
        report("conversion", options["format"], done)
    if done.conversion.refused:
        return exits.FINDINGS
    return exits.RUNTIME if done.failed_devices else exits.OK


def _shown(diff: str, color: bool) -> str:
    """A diff whose lines cannot send terminal escapes of their own."""
    lines = ["\t".join(visible(part) for part in line.split("\t")) for line in diff.split("\n")]
    if color:
        lines = [f"\x1b[{_COLORS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLORS else line for line in lines]
    return "\n".join(lines)
