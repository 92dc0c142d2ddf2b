"""Weights: views of a mapped file, and the types below a byte."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.tensors import Weights, decode
from tests.formats.ir_files import SIMPLE, check, codes, constant, edge, indices_from, write

PACKED = {
    "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
WHOLE: dict[str, Any] = {
    **{f"{kind}{8 * size}": f"<{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)},
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "f8e8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


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
    numbers, bits = int.from_bytes(raw, "little"), element_type.bits
    fields = [numbers >> (bits * place) & ((1 << bits) - 1) for place in range(count)]
    expected = np.array(fields, np.uint8).view(PACKED[name])
    np.testing.assert_array_equal(array.astype(np.float32), expected.astype(np.float32))


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
    "shape", [(3,), (1 << 61,), (2**63 - 1, 2**63 - 1), (1,) * 65, (2**63 - 1, 0, 2**63 - 1), (0,) * 65]
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
    path = tmp_path / "m.bin"
    for data in (bytes(range(10)), b""):
        path.write_bytes(data)
        weights = Weights(path)
        assert weights.size == len(data)
        for offset, size in (
            (3, 7),
            (3, 8),
            (0, 1),
            (0, 0),
            (11, 1),
            (-1, 1),
            (1 << 70, 1 << 70),
            (1 << 70, 0),
        ):
            view = weights.view(offset, size)
            is_inside = size == 0 or 0 <= offset <= len(data) - size
            assert (view is not None) == is_inside
            if view is not None:
                assert view.readonly
                assert bytes(view) == data[offset : offset + size]


def test_a_link_is_followed(tmp_path: Path) -> None:
    path = write(tmp_path, SIMPLE)
    path.with_suffix(".bin").rename(tmp_path / "blob")
    path.with_suffix(".bin").symlink_to("blob")
    assert codes(check(path)) == []


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "no such file"),
        (Path.mkdir, "is a directory"),
        (lambda path: path.symlink_to("nowhere"), "no such file"),
        (lambda path: path.symlink_to(path.name), "too many levels"),
        (os.mkfifo, "no regular file"),
    ],
)
@pytest.mark.timeout(20)
def test_what_is_no_file_is_a_warning(tmp_path: Path, make: Callable[[Path], object], reason: str) -> None:
    path = write(tmp_path, SIMPLE, None)
    make(path.with_suffix(".bin"))
    checked = check(path)
    assert codes(checked) == ["SCT930"]
    assert reason in checked.diagnostics[0].message


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
start = time.perf_counter()
found = check_file(Source(sys.argv[1]), Options())
seconds = time.perf_counter() - start
assert [one.code for one in found.diagnostics] == ["SCT302"], found.bug
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds)
"""


def measure(path: Path) -> list[str]:
    """Check a file of which one index is bad in a fresh process; return peak memory and seconds."""
    command = [sys.executable, "-c", SCRIPT, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def with_weights(folder: Path, size: int) -> Path:
    """Write a model whose data is a Const of all the weights but the first 24 bytes."""
    folder.mkdir()
    rows = size // 20
    data = constant(9, f"{rows},5", 24, rows * 20, "f32")
    text = indices_from(constant(1, "1", 8, 8) + data, "", 1, 0)
    text = text.replace(edge(0, 0, 4, 0), edge(9, 0, 4, 0)).replace("<dim>4</dim>", f"<dim>{rows}</dim>")
    path = write(folder, text, struct.pack("<qqq", 0, rows, 0))
    with path.with_suffix(".bin").open("r+b") as file:
        file.truncate(24 + rows * 20)
    return path


def test_weights_are_mapped_and_never_read(tmp_path: Path) -> None:
    paths = [with_weights(tmp_path / name, size) for name, size in (("small", 1 << 20), ("large", 1 << 30))]
    small, large = ([measure(path) for _ in range(3)] for path in paths)
    assert int(min(large)[0]) - int(min(small)[0]) < 30 * 1024
    assert min(float(one[1]) for one in large) < 3 * min(float(one[1]) for one in small) + 0.1


LEFT = """
import gc, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
gc.disable()
import ir_scatter
from ir_scatter.core.tensors import Weights
for _ in range(150):
    found = ir_scatter.validate(sys.argv[1])
    assert [one.code for one in found] == ["SCT302"], found
held = [Weights(Path(sys.argv[1]).with_suffix(".bin")) for _ in range(150)]
try:
    print(sum(one.view(0, 1) is not None for one in held))
except ir_scatter.Error as error:
    print(error)
"""


def test_files_of_models_that_nobody_holds_are_closed(tmp_path: Path) -> None:
    """Where too many are held, that is told: constants that are not read would break no rule."""
    path = write(tmp_path, indices_from(constant(1, "1", 8, 8), "", 1, 0), struct.pack("<qq", 0, 4))
    command = [sys.executable, "-c", LEFT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "model.bin: model.bin cannot be read (too many open files)" in done.stdout, done.stderr
