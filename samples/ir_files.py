"""Build IR files with OpenVINO, and break them as text.

OpenVINO refuses to build most illegal models, so those are built legal, saved, and edited.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from openvino import opset1


def parameter(name: str, shape: Sequence[int], element_type: Any = np.float32) -> Any:
    """Make an input of the network, found by this name."""
    node = opset1.parameter(list(shape), element_type, name=name)
    node.output(0).tensor.set_names({name})
    return node


def constant(name: str, value: Any, element_type: Any = np.int64) -> Any:
    """Make a Const."""
    return opset1.constant(np.array(value, element_type), name=name)


def result(node: Any, name: str = "result") -> Any:
    """Make a Result with a name of its own."""
    return opset1.result(node, name=name)


def save_ir(path: Path, results: Sequence[Any], parameters: Sequence[Any]) -> None:
    """Save a network without what depends on the version of OpenVINO."""
    model = openvino.Model([opset1.result(node) for node in results], list(parameters), path.stem)
    for number, result in enumerate(model.get_results()):
        result.set_friendly_name(f"result_{number}")
        result.output(0).tensor.set_names({f"result_{number}"})
    openvino.save_model(model, path, compress_to_fp16=False)
    text = re.sub(r"\s*<rt_info( />|>.*?</rt_info>)", "", path.read_text(), flags=re.DOTALL)
    path.write_text(text, newline="\n")


def edit(path: Path, layer: str, pattern: str, new: str) -> None:
    """Replace what a pattern matches first in the layer of that name."""
    text = path.read_text()
    block = re.search(rf'<layer id="\d+" name="{layer}".*?</layer>', text, re.DOTALL)
    assert block is not None, layer
    changed, count = re.subn(pattern, new, block[0], count=1, flags=re.DOTALL)
    assert count == 1, (layer, pattern)
    path.write_text(text.replace(block[0], changed), newline="\n")


def reshape(path: Path, parameter: str, reader: str, port: int, shape: Sequence[int]) -> None:
    """Give a Parameter another shape, and the port that reads it."""
    dims = "".join(f"\n\t\t\t\t\t<dim>{dim}</dim>" for dim in shape)
    edit(path, parameter, r'shape="[^"]*"', f'shape="{",".join(map(str, shape))}"')
    for layer, number in ((parameter, 0), (reader, port)):
        pattern = rf'(<port id="{number}"[^>]*>).*?(\s*</port>)'
        edit(path, layer, pattern, rf"\g<1>{dims}\g<2>")


def revalue(path: Path, layer: str, *values: int) -> None:
    """Give an i64 Const other values, at the end of the weights."""
    weights = path.with_suffix(".bin")
    data, new = weights.read_bytes(), np.array(values, np.int64).tobytes()
    weights.write_bytes(data + new)
    edit(path, layer, r'offset="\d+" size="\d+"', f'offset="{len(data)}" size="{len(new)}"')


def disconnect(path: Path, layer: str, port: int) -> None:
    """Take an input port away, and the edge that ends there."""
    edit(path, layer, rf'\s*<port id="{port}".*?</port>', "")
    text = path.read_text()
    number = re.findall(rf'<layer id="(\d+)" name="{layer}"', text)[0]
    edge = rf'\s*<edge from-layer="\d+" from-port="\d+" to-layer="{number}" to-port="{port}" />'
    path.write_text(re.sub(edge, "", text), newline="\n")
