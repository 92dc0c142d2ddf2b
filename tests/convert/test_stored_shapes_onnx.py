"""Shapes that an ONNX file stores wrongly: onnxruntime would make constants of the sizes that new nodes ask for."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper, parser

from ir_scatter import convert, read
from tests.models.runtimes import Arrays, run_all

_INPUTS = "float[N, M] data, int64[2, 2] at, float[2] new"
_STORE = "ScatterND ({}, at, new)"
_LOOP = f"""Loop (count, , x) <body = body (int64 n, bool go, float[A, B] old) => (on, z) {{
    on = Identity (go) z = {_STORE.format("old")} }}>"""
LYING = {
    "itself": (_INPUTS, f"x = Relu (data) y = {_STORE.format('x')}"),
    "in front": (_INPUTS, f"x = Relu (data) w = Neg (x) y = {_STORE.format('w')}"),
    "nothing is known": (
        f"{_INPUTS}, bool[N] kept",
        f"x = Compress <axis = 0> (data, kept) y = {_STORE.format('x')}",
    ),
    "around a loop": (f"{_INPUTS}, int64 count", f"x = Relu (data) y = {_LOOP}"),
}
"""Models whose scatter node takes sizes that x has; the file stores [6, 5] for it."""


def model(inputs: str, nodes: str, stored: tuple[int | str, ...] = (6, 5)) -> ModelProto:
    proto = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> m ({inputs}) => (float[P, Q] y) {{ {nodes} }}'
    )
    proto.graph.value_info.append(helper.make_tensor_value_info("x", 1, stored))
    return proto


def feeds(name: str, rows: int, columns: int) -> Arrays:
    data = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    at, new = np.array([[0, 3], [-1, -2]]), np.array([100, 200], np.float32)
    more = {"nothing is known": [np.ones(rows, bool)], "around a loop": [np.array(2)]}
    return [data, at, new, *more.get(name, ())]


@pytest.mark.onnxruntime
def test_converted_models_compute_with_sizes_that_are_there(tmp_path: Path) -> None:
    jobs: dict[str, tuple[Path, Arrays]] = {}
    for name, (inputs, nodes) in LYING.items():
        before, after = tmp_path / f"{name}.onnx", tmp_path / f"{name} converted.onnx"
        before.write_bytes(model(inputs, nodes).SerializeToString())
        conversion = convert(read(before), "ScatterElements", verify=1)
        assert conversion.converted[0].is_safe
        assert conversion.write(after) == (
            "the stored sizes of 'x' are made dynamic: they are not proven, and new nodes depend on them",
        )
        for sizes in ((6, 5), (7, 4), (9, 8)):
            jobs |= {f"{name} {sizes} {path.stem}": (path, feeds(name, *sizes)) for path in (before, after)}
    found = iter(run_all("onnxruntime", jobs, tmp_path).items())
    for (name, old), (_, new) in zip(found, found, strict=True):
        assert (old.error, new.error) == ("", ""), name
        np.testing.assert_array_equal(old.outputs[0], new.outputs[0], err_msg=name)


@pytest.mark.parametrize("stored", [("N", "M"), ("N", None)])
def test_what_is_proven_stays(stored: tuple[str | None, ...]) -> None:
    proto = model(*LYING["in front"], stored=stored)  # type: ignore[arg-type]
    data = convert(read("m.onnx", proto.SerializeToString()), "ScatterElements", verify=0)
    assert [*_value_info(data.files(Path("n.onnx")).outputs[-1].content)] == [
        *_value_info(proto.SerializeToString())
    ]
    assert "x: " not in data.diff()


def test_what_nobody_asks_for_stays() -> None:
    """What stands behind the node has wrong sizes as before."""
    proto = model(_INPUTS, f"y = {_STORE.format('data')} x = Relu (y)")
    conversion = convert(read("m.onnx", proto.SerializeToString()), "ScatterElements", verify=0)
    assert [*_value_info(conversion.files(Path("n.onnx")).outputs[-1].content)] == [
        *_value_info(proto.SerializeToString())
    ]


def test_a_diff_shows_what_is_left_open() -> None:
    proto = model(*LYING["in front"])
    shown = convert(read("m.onnx", proto.SerializeToString()), "ScatterElements", verify=0).diff()
    assert shown.endswith("-x: [6, 5]\n+x: [N, M]\n")


def _value_info(data: bytes) -> Iterator[bytes]:
    yield from (one.SerializeToString() for one in ModelProto.FromString(data).graph.value_info)
