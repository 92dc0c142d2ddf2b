"""`ir-scatter convert`."""

import sys
from typing import Any

import click

from ir_scatter.report.characters import visible, without_commands
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.options import OPSET, argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import report, use_color, write

_GUARDS = ("clamp", "wrap", "drop")
_COLORS = {"+": "32", "-": "31", "@": "36"}


@sub_command()
@example("deprecated operators become their successors", "model.onnx -o new.onnx")
@example("what devices refuse or get wrong, and nothing else", "model.xml --for CPU -o new.xml")
@example("only some nodes; look at it first", "model.xml --to ScatterNDUpdate --node 'cache*' --diff")
@example("with runtime indices that stay in their range", "model.xml --guard clamp -o new.xml")
@example("without updates whose index is out of range", "model.onnx --guard drop -o new.onnx")
@example(
    "with a promise of what the file does not tell",
    "model.xml --to ScatterUpdate --assume equal-indices --diff",
)
@example("an ONNX model as an IR, and both on a device", "model.onnx -o model.xml --verify-on CPU")
@argument("MODEL", "path")
@section("What is converted")
@option("--to OPERATOR", "What to convert to; see `ir-scatter routes`.", offers="targets")
@option("--for DEVICE...", "Around its known defects; repeatable.", "targets", offers="runners")
@option("--guard", "Limit indices, count negative ones from the front, or drop updates.", choices=_GUARDS)
@option("--from OPERATOR...", "Only nodes of it; repeatable.", "sources", offers="operators")
@option("--node NAME...", "Only this node, or a glob; repeatable.", "nodes", offers="nodes")
@option("--opset N", "The opset an ONNX model moves to.", type=OPSET)
@option("--assume CONDITION...", "Promise what the file does not tell.", offers="conditions")
@option("--keep-negative-indices", "Leave them where the target forbids them.")
@option("--partial", "Write although a node is refused.")
@section("How it is proven")
@option("--verify N>=0", "Compare old and new form of each node on N generated inputs.", default=8)
@option("--verify-on DEVICE...", "Compare both models there, too.", offers="devices")
@option("--seed N>=0", "For the generated inputs.", default=0, show_default=False)
@section("What is written")
@option("-o, --output FILE", "The new model; its weights are written beside it.")
@option("--in-place", "Replace the model itself.")
@option("--overwrite")
@option("--dry-run", "Say what would be done, and write nothing.")
@option("--diff", "Show the changes; write only with -o or --in-place.")
@formats("conversion", "How to report.")
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
    from ir_scatter.convert.job import ConversionJob, run_job

    wanted = "to sources nodes opset assume keep_negative_indices verify seed targets guard"
    job = ConversionJob(
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
        write(without_commands(_shown(done.diff, color) if color or sys.stdout.isatty() else done.diff))
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
