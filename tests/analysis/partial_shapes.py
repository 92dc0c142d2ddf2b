"""Shapes and element types that OpenVINO works out for the values of a model, in a process of its own.

This file is that process as well: each line of its input asks for a model, with the shapes of its inputs or
without; each line of its output answers.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Shapes = dict[str, list[tuple[str, list[int | None] | None]]]
"""The outputs of nodes by their names: type and sizes, None where a size or the rank is not known."""


class OpenvinoShapes:
    """Asks the process, and starts another one where it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, path: str | Path, inputs: Sequence[Sequence[int]] | None = None) -> Shapes | None:
        """Return what a model has with certain shapes of its inputs, None if OpenVINO refuses it."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, __file__]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(path), inputs]), file=self._process.stdin, flush=True)
        found = json.loads(self._process.stdout.readline() or "null")
        return (
            None if found is None else {name: [(type, dims) for type, dims in found[name]] for name in found}
        )

    def close(self) -> None:
        if self._process is not None:
            with self._process as process:  # closes the pipes also of a process that has crashed
                process.communicate(timeout=30)


def main() -> None:
    """Answer one question after the other."""
    import openvino

    core = openvino.Core()
    for line in sys.stdin:
        path, inputs = json.loads(line)
        try:
            model = core.read_model(path)
            if inputs is not None:
                pairs = zip(model.inputs, inputs, strict=True)
                model.reshape({input: openvino.PartialShape(shape) for input, shape in pairs})
            nodes = list(_nodes(model))
            names = [node.get_friendly_name() for node in nodes]
            found = {
                name: [(_type(output), _dims(output.get_partial_shape())) for output in node.outputs()]
                for name, node in zip(names, nodes, strict=True)
                if names.count(name) == 1
            }
        except RuntimeError:
            found = None
        print(json.dumps(found), flush=True)


def _nodes(model: Any) -> Iterator[Any]:
    """Yield the nodes of a model, and those of bodies."""
    for node in model.get_ops():
        yield node
        if node.get_type_name() == "If":
            yield from _nodes(node.get_function(0))
            yield from _nodes(node.get_function(1))
        elif node.get_type_name() in {"Loop", "TensorIterator"}:
            yield from _nodes(node.get_function())


def _type(output: Any) -> str:
    return str(output.get_element_type().get_type_name())


def _dims(shape: Any) -> list[int | None] | None:
    if shape.rank.is_dynamic:
        return None
    return [None if dim.is_dynamic else dim.get_length() for dim in shape]


if __name__ == "__main__":
    main()
