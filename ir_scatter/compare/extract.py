"""A model of each node that differs, with its inputs and the command that shows it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.nodes import nodes_by_tap, output_of
from ir_scatter.compare.result import SAVED, Compared, CompareSettings, Comparison, Level
from ir_scatter.compare.snapshot import type_of
from ir_scatter.core.atomic_write import Output, replace_files
from ir_scatter.core.errors import CannotWrite, NotEditable
from ir_scatter.core.fragment import free_name
from ir_scatter.evaluate.archive import archived
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import OneInput, OneNode
from ir_scatter.ops.spec import Kind
from ir_scatter.reading import read

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 60
_INPUTS, _README = "inputs.npz", "README.txt"


def extract(found: Compared, folder: Path, *, overwrite: bool = True) -> Iterator[str]:
    """Write one folder for each node of each runner that differs, and say so.

    It holds the model of that one node, `inputs.npz`, and `README.txt` with the command: all of them appear
    together or none. Unless they may `overwrite`, only what was extracted before is replaced; anything else
    stays, and is a UsageError.
    """
    model = read(found.model)
    nodes = {(scatter.node.scope, output_of(scatter)): scatter for scatter in nodes_by_tap(model).values()}
    taken: set[str] = set()
    seen: set[tuple[str, str, str]] = set()
    for one in found.comparisons:
        key = (one.subject, one.node or "", one.tensor)
        if one.level is not Level.NODE or one.measure.verdict is not Verdict.MISMATCH or key in seen:
            continue
        seen.add(key)
        name = _UNSAFE.sub("_", f"{one.node}__{one.subject}").strip("._")[-_LONGEST:]
        place = folder / free_name(name or "node", taken)
        try:
            place.mkdir(parents=True, exist_ok=True)
            node = _node(one, nodes[key[1:]])
            files = FORMATS[model.format].nodes([node])
            fed = (each for each in node.inputs if each is not None and not each.is_constant)
            written = place / f"model{next(iter(files))}"
            contents = {f"model{suffix}": data for suffix, data in files.items()}
            contents |= {_INPUTS: archived({each.name: each.array for each in fed})}
            contents |= {_README: _readme(one, written, found).encode()}
            is_new = not overwrite and not (place / _README).is_file()
            replace_files([Output(place / name, data, is_new=is_new) for name, data in contents.items()])
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CannotWrite(f"{place} cannot be written: {reason}") from None
        except (NotEditable, TypeError) as error:
            yield f"{one.node} on {one.subject} was not extracted: {error}"
        else:
            yield f"{one.node} on {one.subject} extracted to {written}"


def _node(one: Comparison, scatter: ScatterNode) -> OneNode:
    spec, node = scatter.spec, scatter.node
    inputs: list[OneInput | None] = []
    for port, input, array in zip(spec.ports, node.inputs, one.inputs, strict=False):
        is_constant = input.value is not None and scatter.facts.array(input.value) is not None
        inputs.append(None if array is None else OneInput(port.name, type_of(array), array, is_constant))
    attributes = {
        name: value
        for name, value in node.attributes.items()
        if (row := spec.attribute(name)) is not None and (row.kind is not Kind.INT or value is not None)
    }
    assert one.expected is not None
    assert node.opset is not None
    return OneNode(spec.key.type, node.opset, attributes, inputs, type_of(one.expected), one.expected.shape)


def _readme(one: Comparison, path: Path, found: Compared) -> str:
    runner, measure, settings = one.subject.removeprefix(SAVED), one.measure, found.settings
    lines = [
        f"{one.operator} on {runner} differs from its document.",
        "",
        f"Node:     {one.node} of {Path(found.model).name}, case {one.case}, seed {settings.seed}",
        f"Elements: {measure.mismatched} of {measure.elements} differ",
    ]
    if measure.worst is not None:
        worst = measure.worst
        lines.append(f"Worst:    {list(worst.index)} is {worst.got}, expected {worst.expected}")
    if measure.remark:
        lines.append(f"Output:   {measure.remark}")
    versions = {name: version for outcome in found.outcomes for name, version in outcome.versions.items()}
    lines += [f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}", ""]
    words = ["ir-scatter", "compare", path.name, "--on", "numpy", "--on", runner, "--inputs", _INPUTS]
    if settings.precision != CompareSettings().precision:
        words += ["--precision", settings.precision]
    requested = settings.tolerances.find(one.tensor, one.node)
    if requested is not None:
        words += ["--tolerance", f"{requested.absolute:g},{requested.relative:g}"]
    return "\n".join([*lines, "Repeat it in this folder with", "", f"    {shlex.join(words)}", "", ""])
