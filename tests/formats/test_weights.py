"""Weights: views of a mapped file, and the types below a byte."""

import os
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.tensors import Weights, decode
from tests.formats.ir_files import SIMPLE, check, codes, constant, indices_from, layer, port, write

PACKED = {
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "i2": ml_dtypes.int2,
    "u2": ml_dtypes.uint2,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
WHOLE: dict[str, Any] = {
    "f64": "<f8",
    "f32": "<f4",
    "f16": "<f2",
    "i64": "<i8",
    "i32": "<i4",
    "i16": "<i2",
    "i8": "i1",
    "u64": "<u8",
    "u32": "<u4",
    "u16": "<u2",
    "u8": "u1",
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
}


def mapped(folder: Path, data: bytes) -> Weights:
    path = folder / "m.bin"
    path.write_bytes(data)
    return Weights(path)


@pytest.mark.parametrize("name", PACKED)
@given(data=st.data())
def test_types_below_a_byte_are_those_of_ml_dtypes(name: str, data: st.DataObject) -> None:
    element_type = ELEMENT_TYPES[name]
    raw = data.draw(st.binary(min_size=1, max_size=9))
    per_byte = 8 // element_type.bits
    count = data.draw(st.integers((len(raw) - 1) * per_byte + 1, len(raw) * per_byte))
    array = decode(memoryview(raw), element_type, (count,))
    assert array is not None
    assert array.dtype == np.dtype(PACKED[name])
    assert not array.flags.writeable
    numbers = int.from_bytes(raw, "little")
    fields = [
        numbers >> (element_type.bits * place) & ((1 << element_type.bits) - 1) for place in range(count)
    ]
    expected = np.array(fields, np.uint8).view(PACKED[name])
    assert array.view(np.uint8).tolist() == expected.view(np.uint8).tolist() or all(
        left == right or (left != left and right != right)
        for left, right in zip(array.astype(np.float32), expected.astype(np.float32), strict=True)
    )


@pytest.mark.parametrize("name", WHOLE)
@given(raw=st.binary(min_size=1, max_size=64), start=st.integers(0, 7))
def test_whole_types_at_any_place(name: str, raw: bytes, start: int) -> None:
    wanted = np.dtype(WHOLE[name])
    count = len(raw) // wanted.itemsize
    array = decode(memoryview(bytes(start) + raw)[start:], ELEMENT_TYPES[name], (count,))
    assert array is not None
    assert array.tobytes() == raw[: count * wanted.itemsize]
    assert array.dtype == wanted


@pytest.mark.parametrize("name", ["nf4", "u1", "u3", "u6", "f6e2m3", "string"])
def test_what_numpy_has_no_array_of_is_none(name: str) -> None:
    assert decode(memoryview(bytes(8)), ELEMENT_TYPES[name], (2,)) is None


@pytest.mark.parametrize(
    "shape",
    [(3,), (1 << 61,), (2**63 - 1, 2**63 - 1), (1,) * 65, (2**63 - 1, 0, 2**63 - 1), (0,) * 65],
)
@pytest.mark.parametrize("name", ["i64", "i4"])
def test_shapes_that_cannot_be(shape: tuple[int, ...], name: str) -> None:
    data = memoryview(bytes(16 if name == "i64" else 1))
    assert decode(data, ELEMENT_TYPES[name], shape) is None


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 1, 1)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    array = decode(memoryview(bytes(16)), ELEMENT_TYPES["i64"], shape)
    assert array is not None
    assert array.shape == shape
    assert not array.flags.writeable


def test_a_view_ends_with_the_file(tmp_path: Path) -> None:
    weights = mapped(tmp_path, bytes(range(10)))
    view = weights.view(3, 7)
    assert view is not None
    assert bytes(view) == bytes(range(3, 10))
    assert view.readonly
    assert weights.view(3, 8) is None
    assert weights.view(11, 1) is None
    assert weights.view(-1, 1) is None
    assert weights.view(1 << 70, 1 << 70) is None
    empty = weights.view(1 << 70, 0)
    assert empty is not None
    assert len(empty) == 0


def test_an_empty_file(tmp_path: Path) -> None:
    weights = mapped(tmp_path, b"")
    assert weights.size == 0
    assert weights.view(0, 1) is None
    assert weights.view(0, 0) is not None


def test_a_link_is_followed(tmp_path: Path) -> None:
    path = write(tmp_path, SIMPLE)
    path.with_suffix(".bin").rename(tmp_path / "blob")
    path.with_suffix(".bin").symlink_to("blob")
    assert codes(check(path)) == []


@pytest.mark.parametrize("kind", ["missing", "folder", "dangling", "loop", "pipe"])
@pytest.mark.timeout(20)
def test_what_is_no_file_is_a_warning(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, SIMPLE, None)
    binary = path.with_suffix(".bin")
    if kind == "folder":
        binary.mkdir()
    elif kind in {"dangling", "loop"}:
        binary.symlink_to("nowhere" if kind == "dangling" else binary.name)
    elif kind == "pipe":
        os.mkfifo(binary)
    checked = check(path)
    assert codes(checked) == ["SCT930"]
    assert checked.result is not None
    reason = checked.result.diagnostics[0].message
    words = {"folder": "is a directory", "loop": "too many levels", "pipe": "no regular file"}
    assert words.get(kind, "no such file") in reason


def test_a_constant_at_an_odd_place(tmp_path: Path) -> None:
    text = indices_from(constant(1, "1", 9, 8), "", 1, 0)
    legal = write(tmp_path, text, struct.pack("<qbq", 0, 7, 3))
    assert codes(check(legal)) == []
    broken = write(tmp_path, text, struct.pack("<qbq", 0, 7, 4))
    assert codes(check(broken)) == ["SCT302"]


SCRIPT = """
import resource, sys, time
from ir_scatter.lint import Options, check_file
from ir_scatter.core.files import Source
for path in sys.argv[1:]:
    start = time.perf_counter()
    found = check_file(Source(path), Options())
    seconds = time.perf_counter() - start
    assert found.result is not None and found.bug == "", found.bug
    codes = [one.code for one in found.result.diagnostics]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds, *codes)
"""


def measure(*paths: Path) -> list[list[str]]:
    """Check files in one fresh process; return peak memory, seconds and codes of each."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, paths)], capture_output=True, text=True, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


def with_weights(folder: Path, size: int) -> Path:
    """Write a model whose data is a Const of all the weights but the first 24 bytes."""
    folder.mkdir()
    rows = size // 20
    data = layer(
        9,
        "Const",
        f'element_type="f32" shape="{rows},5" offset="24" size="{rows * 20}"',
        outputs=[port(0, "FP32")],
    )
    text = indices_from(constant(1, "1", 8, 8) + data, "", 1, 0)
    text = text.replace(
        'from-layer="0" from-port="0" to-layer="4"', 'from-layer="9" from-port="0" to-layer="4"'
    )
    text = text.replace("<dim>4</dim>", f"<dim>{rows}</dim>")
    path = write(folder, text, struct.pack("<qqq", 0, rows, 0))
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(24 + rows * 20)
    return path


def test_weights_are_mapped_and_never_read(tmp_path: Path) -> None:
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0
    small = with_weights(tmp_path / "small", 1 << 20)
    large = with_weights(tmp_path / "large", 1 << 30)
    small_memory, small_seconds, *small_codes = measure(small)[0]
    large_memory, large_seconds, *large_codes = measure(large)[0]
    assert small_codes == large_codes == ["SCT302"]
    assert int(large_memory) - int(small_memory) < 30 * 1024
    assert float(large_seconds) < 3 * float(small_seconds) + 0.1
