"""`ir-scatter convert`."""

import sys
from dataclasses import dataclass
from typing import Any

import click

from ir_scatter.core.errors import CannotWrite, Error, UnreadableModel, UsageError
from ir_scatter.report.characters import visible
from ir_scatter_cli import exits
from ir_scatter_cli.options import use_color, write


@dataclass(frozen=True, slots=True)
class _Wish:
    """The options of one call."""

    path: str
    output: str | None
    to: str | None
    sources: tuple[str, ...]
    nodes: tuple[str, ...]
    opset: int | None
    assume: tuple[str, ...]
    keep_negative_indices: bool
    verify: int
    verify_on: tuple[str, ...]
    seed: int
    diff: bool
    dry_run: bool
    partial: bool
    in_place: bool
    overwrite: bool
    format: str


@click.command("convert")
@click.argument("path", metavar="MODEL")
@click.option("-o", "--output", metavar="FILE", help="The new model; its weights are written beside it.")
@click.option("--to", metavar="OPERATOR", help="What to convert to; see `ir-scatter routes`.")
@click.option("--from", "sources", multiple=True, metavar="OPERATOR", help="Only nodes of it; repeatable.")
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="Only this node, or a glob; repeatable.")
@click.option("--opset", type=int, metavar="N", help="The opset an ONNX model moves to.")
@click.option("--assume", multiple=True, metavar="CONDITION", help="Promise what the file does not tell.")
@click.option("--keep-negative-indices", is_flag=True, help="Leave them where the target forbids them.")
@click.option(
    "--verify",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    metavar="N",
    help="Compare old and new form of each node on N generated inputs.",
)
@click.option("--verify-on", multiple=True, metavar="DEVICE", help="Compare both models there, too.")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="For the generated inputs.")
@click.option("--diff", is_flag=True, help="Show the changes; write only with -o or --in-place.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--partial", is_flag=True, help="Write although a node is refused.")
@click.option("--in-place", is_flag=True, help="Replace the model itself.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to report.")
def command(**options: Any) -> int:
    """Rewrite scatter operators into equal forms, and nothing else.

    MODEL is a .xml or .onnx file. Without --to deprecated operators become their successors. An ONNX
    model with an output that ends in .xml becomes an IR, through OpenVINO.

    Exit codes: 1 a node is refused or not verified, and nothing is written without --partial; 2 wrong
    usage; 3 a file cannot be read or written; 4 a runtime of --verify-on failed.
    """
    wish = _Wish(**options)
    _demand_output(wish)
    try:
        return _run(wish)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except Error as error:
        if not isinstance(error, UnreadableModel | CannotWrite):
            raise
        click.echo(f"ir-scatter: {visible(str(error))}", err=True)
        return exits.UNREADABLE


def _demand_output(wish: _Wish) -> None:
    if wish.in_place and wish.output is not None:
        raise click.UsageError("--in-place goes without -o")
    if wish.dry_run and wish.in_place:
        raise click.UsageError("--dry-run goes without --in-place")
    is_shown = wish.diff or wish.dry_run
    if not wish.in_place and wish.output is None and not is_shown:
        raise click.UsageError("-o FILE is missing, expected it, --in-place, --diff or --dry-run")


def _run(wish: _Wish) -> int:
    from ir_scatter.convert.job import Job, run_job

    job = Job(
        source=wish.path,
        output=wish.path if wish.in_place else wish.output,
        options={
            "to": wish.to,
            "sources": wish.sources,
            "nodes": wish.nodes,
            "opset": wish.opset,
            "assume": wish.assume,
            "keep_negative_indices": wish.keep_negative_indices,
            "verify": wish.verify,
            "seed": wish.seed,
        },
        devices=wish.verify_on,
        is_dry=wish.dry_run,
        partial=wish.partial,
        in_place=wish.in_place,
        overwrite=wish.overwrite,
        with_diff=wish.diff,
    )
    done = run_job(job)
    if done.diff is not None and wish.format == "text":
        write(_painted(done.diff, use_color(False)) if sys.stdout.isatty() else done.diff, None)
    _report(wish, done)
    if done.is_refused:
        return exits.FINDINGS
    return exits.RUNTIME if done.failed_devices else exits.OK


def _report(wish: _Wish, done: Any) -> None:
    from ir_scatter.report.conversion import Result, document, text

    result = Result(done.conversion, done.written, done.remarks, done.devices, done.diff)
    if wish.format == "json":
        from ir_scatter.report.json import dumps
        from ir_scatter.version import versions

        write(dumps(document(result, versions())), None)
    elif wish.diff:
        click.echo(text(result), nl=False, err=True)
    else:
        write(text(result), None)


def _painted(text: str, color: bool) -> str:
    if not color:
        return visible_lines(text)
    colors = {"+": "32", "-": "31", "@": "36"}
    lines = visible_lines(text).splitlines(keepends=True)
    return "".join(
        f"\x1b[{colors[line[0]]}m{line.rstrip()}\x1b[0m\n" if line[:1] in colors else line for line in lines
    )


def visible_lines(text: str) -> str:
    """Return a text whose lines cannot send terminal escapes."""
    return "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in text.split("\n"))
