"""`ir-scatter contract`."""

from typing import Any

import click

from ir_scatter.contract import FOR_ALL, Contract, make_contract
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.files import STANDARD_INPUT
from ir_scatter.report.characters import visible
from ir_scatter.report.registry import formats as known_formats
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_apart, demand_free, find_sources, read_model
from ir_scatter_cli.givens import read_texts
from ir_scatter_cli.options import argument, example, option, section, sub_command
from ir_scatter_cli.output import say, style, write

_ONNX = "onnx"


@sub_command()
@example("what inputs must satisfy so that every index is legal", "decoder.xml")
@example("with what you know of an input", 'decoder.xml --given "position in 0..15"')
@example("a check of inputs to copy into a server", "decoder.xml --format python -o check.py")
@argument("MODEL...", "paths")
@section("Conditions on inputs")
@option("--given TEXT...")
@option("--exclude GLOB...")
@option("--stdin-format")
@section("Output")
@option(
    "--format", "Format of the contract; python and onnx write a check of inputs.",
    choices=[*known_formats("contract"), _ONNX], default="text",
)  # fmt: skip
@option("-o, --output FILE")
@option("--overwrite")
@option("--strict", "Also exit with 1 if it is unknown whether some index is in range.")
@option("-v, --verbose")
def command(**params: Any) -> int:
    """Say what inputs must satisfy so that every index of scatter nodes is in range, proven from the file.

    MODEL is a .xml or .onnx file (recognised by its content), a folder, a glob, or - for standard input.

    Conditions have the syntax of --given: "position in 0..15" (both ends included), "past + S <= C",
    "cache.shape[2] >= 16", "table distinct", "rows of table distinct". Names with other characters than
    letters, digits, "_", "." and "/" need double quotes.

    Exit codes: 0 nothing is refuted; 1 some legal input breaks an index, or one that --given admits, or, with
    --strict, indices are unknown; 2 wrong use; 3 a model cannot be read.
    """
    sources = find_sources(params["paths"], params["exclude"])
    demand_apart({"-o": params["output"]}, [source.path for source in sources])
    demand_free("-o", params["output"], overwrite=params["overwrite"])
    given = read_texts(params["given"])
    contracts, has_unread = list[Contract](), not sources
    for source in sources:
        try:
            model = read_model(source.path, params["stdin_format"])
        except UnreadableModel as error:
            if source.is_named or error.is_model or source.path == STANDARD_INPUT:
                say(error)
                has_unread = True
            elif params["verbose"]:
                say(f"{source.path}: skipped: {error.message}")
            continue
        contracts.append(make_contract(model, given))
    if contracts:
        write(
            _content(params["format"], contracts, params["output"]),
            params["output"],
            is_new=not params["overwrite"],
        )
    _say_refuted(contracts)
    if has_unread:
        return exits.UNREADABLE
    nodes = [node for contract in contracts for node in contract.nodes]
    is_wrong = any(node.range.status == "refuted" or node.breach for node in nodes)
    is_wrong |= params["strict"] and any(node.range.status == "unknown" for node in nodes)
    return exits.FINDINGS if is_wrong else exits.OK


def _content(format: str, contracts: list[Contract], output: str | None) -> str | bytes:
    if format != _ONNX:
        return render("contract", format, contracts, **style(output))
    from ir_scatter.contract.onnx_check import onnx_model

    if len(contracts) != 1:
        raise click.UsageError(f"a check is written for one model, not for {len(contracts)}")
    content: bytes = onnx_model(contracts[0]).SerializeToString()
    return content


def _say_refuted(contracts: list[Contract]) -> None:
    """Print an error for each node whose indices some allowed input puts out of range."""
    for contract in contracts:
        for node in contract.nodes:
            if node.breach:
                is_for_all = node.breach == FOR_ALL
                code = "SCT302 index-out-of-range" if is_for_all else "SCT310 index-may-be-out-of-range"
                for_given = f", for {', '.join(contract.given)}" if contract.given else ""
                text = f"error {code}: indices of {visible(node.scope)} {node.breach}{for_given}"
                click.echo(text, err=True)
