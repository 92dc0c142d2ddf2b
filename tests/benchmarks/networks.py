"""Large IRs made in the tests: repeated blocks with scatter operators, as exporters write them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

Port = tuple[str, Sequence[int]]


class Network:
    """Writes layers and edges as `save_model` does."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = bytearray()

    def layer(
        self,
        type: str,
        version: str,
        data: str = "",
        inputs: Sequence[tuple[tuple[int, int], Port]] = (),
        output: Port | None = None,
        names: str = "",
    ) -> tuple[int, int]:
        """Add a layer fed by (layer, port) pairs; return its id and output port."""
        id = len(self.layers)
        lines = [f'\t\t<layer id="{id}" name="block/{type}_{id}" type="{type}" version="{version}">']
        if data:
            lines.append(f"\t\t\t<data {data} />")
        if inputs:
            lines.append("\t\t\t<input>")
            for number, (origin, port) in enumerate(inputs):
                lines.extend(_port(number, port, ""))
                self.edges.append(
                    f'\t\t<edge from-layer="{origin[0]}" from-port="{origin[1]}" '
                    f'to-layer="{id}" to-port="{number}" />'
                )
            lines.append("\t\t\t</input>")
        if output is not None:
            lines += ["\t\t\t<output>", *_port(len(inputs), output, names), "\t\t\t</output>"]
        lines.append("\t\t</layer>")
        self.layers.append("\n".join(lines))
        return id, len(inputs)

    def constant(self, values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> tuple[int, int]:
        """Add a Const with its bytes."""
        element_type = {"int64": "i64", "float32": "f32"}[str(values.dtype)]
        shape = ", ".join(map(str, values.shape))
        place = f'offset="{len(self.weights)}" size="{values.nbytes}"'
        self.weights += values.tobytes()
        precision = element_type.replace("i", "I").replace("f", "FP")
        data = f'element_type="{element_type}" shape="{shape}" {place}'
        return self.layer("Const", "opset1", data, output=(precision, values.shape))

    def write(self, path: Path) -> Path:
        """Write `.xml` and `.bin`."""
        text = "\n".join(
            [
                '<?xml version="1.0"?>',
                '<net name="network" version="11">',
                "\t<layers>",
                *self.layers,
                "\t</layers>",
                "\t<edges>",
                *self.edges,
                "\t</edges>",
                "\t<rt_info />",
                "</net>",
                "",
            ]
        )
        path.write_text(text, encoding="utf-8")
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def _port(number: int, port: Port, names: str) -> Iterable[str]:
    precision, dims = port
    named = f' names="{names}"' if names else ""
    opening = f'\t\t\t\t<port id="{number}" precision="{precision}"{named}'
    if not dims:
        return [f"{opening} />"]
    return [f"{opening}>", *(f"\t\t\t\t\t<dim>{dim}</dim>" for dim in dims), "\t\t\t\t</port>"]


def transformer(path: Path, layers: int) -> Path:
    """Write a chain of blocks of 32 layers, each with one cache update: 500 in 16,000 layers."""
    network = Network()
    cache: Port = ("FP32", (1, 8, 64, 16))
    token: Port = ("FP32", (1, 8, 1, 16))
    scalar: Port = ("I64", ())
    positions: Port = ("I64", (1, 8, 1, 16))
    hidden = network.layer("Parameter", "opset1", 'shape="1,8,1,16" element_type="f32"', output=token)
    past = network.layer("Parameter", "opset1", 'shape="1,8,64,16" element_type="f32"', output=cache)
    position = network.layer("Parameter", "opset1", 'shape="1,8,1,16" element_type="i64"',
                             output=("I64", (1, 8, 1, 16)))  # fmt: skip
    axis = network.constant(np.array(2))
    block = 0
    while len(network.layers) < layers:
        block += 1
        for number in range(14):
            weight = network.constant(np.full((1, 8, 1, 16), number, np.float32))
            inputs = [(hidden, token), (weight, token)]
            name = f"hidden.{block}.{number}"
            hidden = network.layer("Add", "opset1", 'auto_broadcast="numpy"', inputs, token, name)
        inputs = [(past, cache), (position, positions), (hidden, token), (axis, scalar)]
        data = 'reduction="none" use_init_val="true"'
        past = network.layer("ScatterElementsUpdate", "opset12", data, inputs, cache, f"past.{block}")
        for _ in range(3):
            hidden = network.layer("ReLU", "opset1", "", [(hidden, token)], token)
    for value, port in ((hidden, token), (past, cache)):
        network.layer("Result", "opset1", "", [(value, port)])
    return network.write(path)


def every_fifth(path: Path, layers: int) -> Path:
    """Write a chain in which every fifth layer is a ScatterUpdate with constant indices."""
    network, random = Network(), np.random.default_rng(0)
    data, updates = ("FP32", (16, 32, 8)), ("FP32", (16, 7, 8))
    value = network.layer("Parameter", "opset1", 'shape="16,32,8" element_type="f32"', output=data)
    while len(network.layers) < layers:
        indices = network.constant(random.permutation(32)[:7])
        rows = network.constant(np.zeros((16, 7, 8), np.float32))
        axis = network.constant(np.array(1))
        inputs = [(value, data), (indices, ("I64", (7,))), (rows, updates), (axis, ("I64", ()))]
        value = network.layer("ScatterUpdate", "opset3", "", inputs, data)
        value = network.layer("ReLU", "opset1", "", [(value, data)], data)
    network.layer("Result", "opset1", "", [(value, data)])
    return network.write(path)
