"""Small models with scatter nodes to convert, and what is asked about the results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import parser

from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import make_feeds
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.models.ir_text import IrText
from tests.rewrites.ir_models import given, held, one_scatter

DATA = (4, 5, 3)


def slices(
    indices: Sequence[int] = (2,),
    *,
    axis: int | None = 1,
    values: Any = None,
    node: str = "scatter",
    folder: Path = Path(),
) -> Path:
    """Write an IR with one ScatterUpdate and return its path; without an axis or `values` those are inputs."""
    place = 1 if axis is None else axis % len(DATA)
    at = given("at", "i64", indices) if values is None else held(values, name="at")
    rows = given("rows", shape=(*DATA[:place], *indices, *DATA[place + 1 :]))
    where = given("axis", "i64") if axis is None else held(axis, name="axis")
    sources = given("data", shape=DATA), at, rows, where
    return Path(one_scatter(folder, "ScatterUpdate", "opset3", *sources, name=node))


def elements(version: str = "opset12", rows: int = 2, **attributes: str) -> Path:
    """Write an IR with one ScatterElementsUpdate of data [4, 5] and return its path."""
    sources = given("data", shape=(4, 5)), given("at", "i64", (rows, 5)), given("rows", shape=(rows, 5))
    axis = held(0, name="axis")
    return Path(one_scatter(Path(), "ScatterElementsUpdate", version, *sources, axis, attributes))


def tuples(version: str = "opset15", **attributes: str) -> Path:
    """Write an IR with one ScatterNDUpdate and return its path."""
    sources = given("data", shape=(4, 5)), given("at", "i64", (2, 1)), given("rows", shape=(2, 5))
    return Path(one_scatter(Path(), "ScatterNDUpdate", version, *sources, None, attributes))


def chain(nodes: Sequence[str]) -> Path:
    """Write an IR with a chain of ScatterUpdates and return its path."""
    ir = IrText()
    value, at = ir.parameter("data", shape=DATA), ir.parameter("at", "i64", (2,))
    rows, axis = ir.parameter("rows", shape=(4, 2, 3)), ir.const("axis", "i64", 1, ())
    for node in nodes:
        value = ir.add(node, "ScatterUpdate", "opset3", [value, at, rows, axis], [("f32", DATA)])
    ir.add("result", "Result", "opset1", [value], [])
    return Path(ir.write(Path()))


def onnx_model(text: str, name: str = "model", names: Sequence[str] = ()) -> Path:
    """Write an ONNX model of this text, its nodes under these names, and return its path."""
    model = parser.parse_model(text)
    for node, label in zip(model.graph.node, names, strict=False):
        node.name = label
        node.doc_string = f"what {label} is for"
    path = Path(f"{name}.onnx")
    path.write_bytes(model.SerializeToString())
    return path


def deprecated(opset: int, name: str = "model") -> Path:
    """Write an ONNX model with two Scatter nodes and return its path."""
    return onnx_model(
        f"""
        <ir_version: {4 if opset < 11 else 8}, opset_import: ["" : {opset}]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {{
          a = Scatter (data, at, rows)
          out = Scatter <axis = -2> (a, at, rows)
        }}
        """,
        name,
        ["first", "second"],
    )


def operators(path: Path) -> list[str]:
    """Return what the scatter nodes of a model are, in the order of the file."""
    model = read(path)
    rows = (
        find(node.domain, node.type, node.opset) for node in model.definitions(scatter_types(model.domain))
    )
    return [str(row.spec.key) for row in rows if row and row.spec]


def opsets(path: Path) -> list[int]:
    """Return the opset of an ONNX model, and of each of its functions."""
    model = onnx.load(str(path), load_external_data=False)
    return [
        entry.version
        for owner in (model, *model.functions)
        for entry in owner.opset_import
        if not entry.domain
    ]


def findings(path: Path) -> list[str]:
    """Return the codes that `validate` finds."""
    return [found.code for found in validate(read(path))]


def demand_equal(before: Path, after: Path, **given: Any) -> None:
    """Demand that NumPy computes the same for two models on generated inputs, but for those given."""
    for seed in range(3):
        feeds = {**make_feeds(before, seed), **{name: np.array(value) for name, value in given.items()}}
        old, new = prepare(before).run(feeds), prepare(after).run(feeds)
        assert list(old) == list(new)
        for name, array in old.items():
            np.testing.assert_array_equal(new[name], array)


def files(folder: Path | None = None) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    folder = folder or Path.cwd()
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def external(path: Path, arrays: dict[str, tuple[str, npt.NDArray[Any]]]) -> Path:
    """Give a model initializers in other files, by name with their locations, and return its path."""
    model = onnx.load(str(path))
    for name, (location, array) in arrays.items():
        tensor = model.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=array.shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        file = path.parent / location
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(array.astype(np.float32).tobytes())
    path.write_bytes(model.SerializeToString())
    return path
