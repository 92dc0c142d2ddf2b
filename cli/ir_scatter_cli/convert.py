"""`ir-scatter convert`."""

import sys
from typing import Any

import click

from ir_scatter.report.characters import visible, without_commands
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.givens import read_texts
from ir_scatter_cli.options import OPSET, argument, example, formats, option, section, sub_command
from ir_scatter_cli.output import spinner, style, use_color, write

_GUARDS = ("clamp", "wrap", "drop")
_COLORS = {"+": "32", "-": "31", "@": "36"}


@sub_command()
@example("replace deprecated operators by their successors", "model.onnx -o new.onnx")
@example("replace only what a device refuses or computes incorrectly", "model.xml --for CPU -o new.xml")
@example("convert some nodes, and show the changes", "model.xml --to ScatterNDUpdate --node 'cache*' --diff")
@example("clamp indices that are computed at run time", "model.xml --guard clamp -o new.xml")
@example("drop updates whose index is out of range", "model.onnx --guard drop -o new.onnx")
@example(
    "assume a condition that the file does not prove",
    "model.xml --to ScatterUpdate --assume equal-indices --diff",
)
@example("convert ONNX to IR, and compare both on a device", "model.onnx -o model.xml --verify-on CPU")
@argument("MODEL", "path")
@section("What is converted")
@option("--to OPERATOR", "Target operator; see `ir-scatter routes`.", offers="targets")
@option("--for DEVICE...", "Avoid known defects of this device; repeatable.", "targets", offers="runners")
@option("--at-any-cost", "With --for: avoid a defect that only some inputs meet even if that copies data.")
@option("--strict", "Exit with 1 if a node is still at risk on a device of --for.")
@option(
    "--guard", "Clamp indices, wrap negative ones, or drop updates that are out of range.", choices=_GUARDS
)
@option("--from OPERATOR...", "Only nodes of this operator; repeatable.", "sources", offers="operators")
@option("--node NAME...", "Only this node, or a glob; repeatable.", "nodes", offers="nodes")
@option("--opset N", "Move an ONNX model to this opset.", type=OPSET)
@option("--assume CONDITION...", "Assume this condition on indices, without proof.", offers="conditions")
@option("--given TEXT...")
@option("--keep-negative-indices", "Keep negative indices even if the target forbids them.")
@option("--partial", "Write the model even if a node is refused.")
@section("Verification")
@option("--verify N>=0", "Compare each node before and after on N generated inputs.", default=8)
@option("--verify-on DEVICE...", "Also compare both models on this device.", offers="devices")
@option("--seed N>=0", "Seed of the generated inputs.", default=0, show_default=False)
@section("What is written")
@option("-o, --output FILE", "The new model; its weights are written beside it.")
@option("--in-place", "Replace the model itself.")
@option("--overwrite")
@option("--dry-run", "Report the changes, and write nothing.")
@option("--diff", "Show the changes; write only with -o or --in-place.")
@formats("conversion", "Format of the report.")
@option("-q, --quiet")
def command(**params: Any) -> int:
    """Rewrite scatter operators into equivalent ones, and change nothing else.

    MODEL is a .xml or .onnx file. Without --to, deprecated operators are replaced by their successors.
    If MODEL is ONNX and the output ends in .xml, OpenVINO converts it to an IR.

    Exit codes: 1 a node is refused or not verified, and the model is only written with --partial, or with
    --strict a node is still at risk; 2
    wrong usage; 3 a file cannot be read or written; 4 a runtime of --verify-on failed.
    """
    if params["in_place"] and params["output"] is not None:
        raise click.UsageError("--in-place goes without -o")
    if params["dry_run"] and params["in_place"]:
        raise click.UsageError("--dry-run goes without --in-place")
    is_preview = params["diff"] or params["dry_run"]
    if not params["in_place"] and params["output"] is None and not is_preview:
        raise click.UsageError("-o FILE is missing, expected it, --in-place, --diff or --dry-run")
    from ir_scatter.compare.phases import report_to
    from ir_scatter.convert.job import ConversionJob, run_job

    if not params["targets"] and (params["at_any_cost"] or params["strict"]):
        name = "--at-any-cost" if params["at_any_cost"] else "--strict"
        raise click.UsageError(f"{name} goes with --for DEVICE")
    copied = "to sources nodes opset assume keep_negative_indices verify seed targets at_any_cost guard"
    job = ConversionJob(
        source=params["path"],
        output=params["path"] if params["in_place"] else params["output"],
        options={**{name: params[name] for name in copied.split()}, "given": read_texts(params["given"])},
        devices=params["verify_on"],
        is_dry=params["dry_run"],
        with_diff=params["diff"],
        **{name: params[name] for name in ("partial", "in_place", "overwrite")},
    )
    with spinner("reading", quiet=params["quiet"]) as update, report_to(update):
        done = run_job(job)
    is_text = params["format"] == "text"
    if done.diff is not None and is_text:
        color = use_color()
        write(
            without_commands(_printable_diff(done.diff, color) if color or sys.stdout.isatty() else done.diff)
        )
    if params["diff"] and is_text:
        click.echo(render("conversion", "text", done), nl=False, err=True)
    else:
        write(render("conversion", params["format"], done, **style()))
    if done.conversion.refused or (params["strict"] and done.conversion.risks):
        return exits.FINDINGS
    return exits.RUNTIME if done.failed_devices else exits.OK


def _printable_diff(diff: str, color: bool) -> str:
    """Return a diff without terminal escapes from the model; coloured if requested."""
    lines = ["\t".join(visible(part) for part in line.split("\t")) for line in diff.split("\n")]
    if color:
        lines = [f"\x1b[{_COLORS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLORS else line for line in lines]
    return "\n".join(lines)
