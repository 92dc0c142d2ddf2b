"""Writes the text of an IR and its weights, one layer at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

PRECISIONS = {
    "f64": "FP64", "f32": "FP32", "f16": "FP16", "bf16": "BF16", "f8e4m3": "F8E4M3", "f8e5m2": "F8E5M2",
    "f8e8m0": "F8E8M0", "f4e2m1": "F4E2M1", "nf4": "NF4", "i64": "I64", "i32": "I32", "i16": "I16",
    "i8": "I8", "i4": "I4", "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8", "u4": "U4", "u1": "BIN",
    "boolean": "BOOL", "string": "STRING", "dynamic": "UNSPECIFIED",
}  # fmt: skip
"""OpenVINO's names in `element_type` and in `precision`."""

_DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
    "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "boolean": "bool",
}  # fmt: skip

Dims = Sequence[int | str]


@dataclass(frozen=True)
class Output:
    """An output port of a layer: where edges start, and what is written at the other end."""

    layer: int
    port: int
    precision: str
    dims: Dims


@dataclass
class IrText:
    """The layers and edges of one graph; a body shares the weights of the net around it."""

    weights: bytearray = field(default_factory=bytearray)
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    count: int = 0

    def parameter(self, name: str, type: str = "f32", shape: Dims | None = (), ports: str = "") -> Output:
        """Add a Parameter; `None` for a shape is an unknown rank."""
        text = "..." if shape is None else ",".join(map(str, shape))
        dims = [dim if isinstance(dim, int) else -1 for dim in shape or ()]
        data = {"element_type": type, "shape": text}
        return self.add(name, "Parameter", "opset1", [], [(type, dims)], data, ports=ports)

    def const(
        self, name: str, type: str, values: npt.ArrayLike, shape: Sequence[int] | None = None
    ) -> Output:
        """Add a Const whose bytes go to the end of the weights."""
        array = np.array(values, _DTYPES[type])
        array = array if shape is None else array.reshape(shape)
        data = {
            "element_type": type,
            "shape": ", ".join(map(str, array.shape)),
            "offset": str(len(self.weights)),
            "size": str(max(array.nbytes, 1)),
        }
        self.weights += array.tobytes() or b"\0"
        return self.add(name, "Const", "opset1", [], [(type, array.shape)], data)

    def add(
        self,
        name: str,
        type: str,
        version: str,
        inputs: Sequence[Output],
        outputs: Sequence[tuple[str, Dims]],
        data: Mapping[str, str] | None = None,
        *,
        inside: str = "",
        ports: str = "",
    ) -> Output:
        """Add a layer and the edges that feed it; return its first output."""
        id = self.count
        self.count += 1
        self.edges += [
            f'<edge from-layer="{source.layer}" from-port="{source.port}" to-layer="{id}" to-port="{port}"/>'
            for port, source in enumerate(inputs)
        ]
        attributes = "".join(f" {key}={quoteattr(value)}" for key, value in (data or {}).items())
        parts = [f'<layer id="{id}" name={quoteattr(name)} type="{type}" version="{version}">']
        parts += [f"<data{attributes}/>"] if attributes else []
        if inputs:
            texts = [_port(port, source.precision, source.dims) for port, source in enumerate(inputs)]
            parts.append(f"<input>{''.join(texts)}</input>")
        first = len(inputs)
        if outputs:
            texts = [_port(port, *output, ports) for port, output in enumerate(outputs, first)]
            parts.append(f"<output>{''.join(texts)}</output>")
        self.layers.append("".join(parts) + inside + "</layer>")
        precision, dims = outputs[0] if outputs else ("f32", ())
        return Output(id, first, precision, dims)

    def body(self, tag: str) -> str:
        """Return the graph as the body of a layer."""
        return f"<{tag}><layers>{''.join(self.layers)}</layers><edges>{''.join(self.edges)}</edges></{tag}>"

    def write(self, folder: Path, name: str = "model") -> str:
        """Write the `.xml` with one layer per line and its `.bin`; return the path."""
        path = folder / f"{name}.xml"
        lines = ['<net name="model" version="11">', "<layers>", *self.layers, "</layers>"]
        path.write_text("\n".join([*lines, "<edges>", *self.edges, "</edges>", "</net>", ""]))
        path.with_suffix(".bin").write_bytes(self.weights)
        return str(path)


def _port(id: int, type: str, dims: Dims, extra: str = "") -> str:
    sizes = "".join(f"<dim>{dim if isinstance(dim, int) else -1}</dim>" for dim in dims)
    return f'<port id="{id}" precision="{PRECISIONS[type]}"{extra}>{sizes}</port>'


def array_of(type: str, values: Any, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return values in the NumPy type of an element type."""
    return np.array(values, _DTYPES[type]).reshape(shape)
