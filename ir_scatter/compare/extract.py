"""Writes each differing scatter node as a one-node model, with inputs and a command to reproduce it."""

import re
from collections.abc import Iterator
from pathlib import Path

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.nodes import nodes_by_tap, output_name
from ir_scatter.compare.result import SAVED, Compared, CompareSettings, Comparison, Level
from ir_scatter.compare.snapshot import type_of
from ir_scatter.core.atomic_write import Output, replace_files
from ir_scatter.core.errors import CannotWrite, NotEditable
from ir_scatter.core.fragment import free_name
from ir_scatter.core.parameters import Invocation
from ir_scatter.evaluate.archive import archived
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import OneInput, OneNode
from ir_scatter.ops.spec import Kind
from ir_scatter.reading import read

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
"""Characters that a folder name must not contain."""

_LONGEST = 60
"""Maximum characters of a folder name: file systems allow 255, and the paths of the files inside need
room."""

_INPUTS, _README = "inputs.npz", "README.txt"


def extract(compared: Compared, folder: Path, *, overwrite: bool = True) -> Iterator[str]:
    """Write a folder for each pair of a runner and a node that differs on it; yield a line of text for each.

    A folder holds the one-node model, `inputs.npz`, and `README.txt` with the command that reproduces the
    difference. Its files appear together or not at all. Without `overwrite`, only folders written by an
    earlier extraction are replaced; UsageError is raised if a folder has any other content.
    """
    model = read(compared.model)
    nodes = {(scatter.node.scope, output_name(scatter)): scatter for scatter in nodes_by_tap(model).values()}
    folder_names: set[str] = set()
    extracted: set[tuple[str, str, str]] = set()
    for comparison in compared.comparisons:
        key = (comparison.subject, comparison.node or "", comparison.tensor)
        is_difference = comparison.measure.verdict is Verdict.MISMATCH
        if comparison.level is not Level.NODE or not is_difference or key in extracted:
            continue
        extracted.add(key)
        name = _UNSAFE.sub("_", f"{comparison.node}__{comparison.subject}").strip("._")[-_LONGEST:]
        place = folder / free_name(name or "node", folder_names)
        try:
            place.mkdir(parents=True, exist_ok=True)
            node = _one_node(comparison, nodes[key[1:]])
            files = FORMATS[model.format].nodes([node])
            feeds = {
                input.name: input.array
                for input in node.inputs
                if input is not None and not input.is_constant
            }
            written = place / f"model{next(iter(files))}"
            contents = {f"model{suffix}": data for suffix, data in files.items()}
            contents |= {_INPUTS: archived(feeds)}
            contents |= {_README: _readme(comparison, written, compared).encode()}
            is_new = not overwrite and not (place / _README).is_file()
            replace_files([Output(place / name, data, is_new=is_new) for name, data in contents.items()])
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CannotWrite(f"{place} cannot be written: {reason}") from None
        except (NotEditable, TypeError) as error:
            yield f"{comparison.node} on {comparison.subject} was not extracted: {error}"
        else:
            yield f"{comparison.node} on {comparison.subject} extracted to {written}"


def _one_node(comparison: Comparison, scatter: ScatterNode) -> OneNode:
    """Return a one-node model with a scatter node's attributes and the inputs that the runner fed it."""
    spec, node = scatter.spec, scatter.node
    inputs: list[OneInput | None] = []
    for port, input, array in zip(spec.ports, node.inputs, comparison.inputs, strict=False):
        is_constant = input.value is not None and scatter.facts.array(input.value) is not None
        inputs.append(None if array is None else OneInput(port.name, type_of(array), array, is_constant))
    attributes = {
        name: value
        for name, value in node.attributes.items()
        if (row := spec.attribute(name)) is not None and (row.kind is not Kind.INT or value is not None)
    }
    expected = comparison.expected
    assert expected is not None
    assert node.opset is not None
    return OneNode(spec.key.type, node.opset, attributes, inputs, type_of(expected), expected.shape)


def _readme(comparison: Comparison, path: Path, compared: Compared) -> str:
    runner, measure = comparison.subject.removeprefix(SAVED), comparison.measure
    settings = compared.settings
    lines = [
        f"{comparison.operator} on {runner} differs from its specification.",
        "",
        f"Node:     {comparison.node} of {Path(compared.model).name}, "
        f"case {comparison.case}, seed {settings.seed}",
        f"Elements: {measure.mismatched} of {measure.elements} differ",
    ]
    if measure.worst is not None:
        worst = measure.worst
        lines.append(f"Worst:    {list(worst.index)} is {worst.got}, expected {worst.expected}")
    if measure.remark:
        lines.append(f"Output:   {measure.remark}")
    versions = {name: version for outcome in compared.outcomes for name, version in outcome.versions.items()}
    lines += [f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}", ""]
    arguments: dict[str, object] = {"on": ["numpy", runner], "inputs": _INPUTS}
    if settings.precision != CompareSettings().precision:
        arguments["precision"] = settings.precision
    requested = settings.tolerances.find(comparison.tensor, comparison.node)
    if requested is not None:
        arguments["tolerance"] = f"{requested.absolute:g},{requested.relative:g}"
    call = Invocation("compare", arguments, (path.name,))
    return "\n".join([*lines, "Repeat it in this folder with", "", f"    {call}", "", ""])
