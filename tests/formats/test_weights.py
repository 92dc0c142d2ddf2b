"""Weights: the bytes of a file, which may change, and the types below a byte."""

import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper, parser

from ir_scatter import read, validate
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.tensors import Weights, decode
from tests.formats.ir_files import SIMPLE, check, codes, constant, edge, indices_from, write
from tests.models.ir_text import IrText
from tests.scale import thinned

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
import resource, sys
from ir_scatter.lint import Options, check_file
from ir_scatter.core.files import Source
found = check_file(Source(sys.argv[1]), Options())
assert [one.code for one in found.diagnostics] == ["SCT302"], found.bug
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure(path: Path) -> int:
    """Check a file of which one index is bad in a fresh process; return the peak of its memory, in KiB."""
    command = [sys.executable, "-c", SCRIPT, str(path)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


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
    small, large = map(measure, paths)
    assert large - small < 30 * 1024


HELD = """
import os, sys
from pathlib import Path
import ir_scatter
path, weights, looks, change = sys.argv[1:]
model = ir_scatter.read(path)
if looks == "looks":
    assert [one.code for one in ir_scatter.validate(model)] == ["SCT302"]
size = os.path.getsize(weights)
if change == "shorter":
    os.truncate(weights, 1)
elif change == "empty":
    os.truncate(weights, 0)
else:
    data = Path(weights).read_bytes()
    Path(weights).write_bytes(data[:-8] + bytes(8))
    os.utime(weights, (1, 1))
    assert os.path.getsize(weights) == size
try:
    print([one.code for one in ir_scatter.validate(model)])
except ir_scatter.UnreadableModel as error:
    print(error)
try:
    print(ir_scatter.evaluate_model(model, {}))
except ir_scatter.Error as error:
    print(type(error).__name__)
"""
INDICES = 3000


def held_ir(folder: Path) -> tuple[Path, Path]:
    ir = IrText()
    data, rows = ir.parameter("data", "f32", [4]), ir.parameter("rows", "f32", [INDICES])
    axis, indices = ir.const("axis", "i64", 0), ir.const("at", "i64", [0] * (INDICES - 1) + [4])
    out = ir.add("out", "ScatterUpdate", "opset3", [data, indices, rows, axis], [("f32", [4])])
    ir.add("result", "Result", "opset1", [out], [])
    path = Path(ir.write(folder))
    return path, path.with_suffix(".bin")


def held_onnx(folder: Path) -> tuple[Path, Path]:
    indices = numpy_helper.from_array(np.array([0] * (INDICES - 1) + [4]), "at")
    graph = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (float[4] d, float[{INDICES}] u) => (float[4] o)'
        " { o = ScatterElements (d, at, u) }"
    )
    graph.graph.initializer.append(indices)
    path = folder / "model.onnx"
    onnx.save(graph, path, save_as_external_data=True, location="w.data", size_threshold=0)
    return path, folder / "w.data"


CHANGES = ["shorter", "empty", "other numbers"]
HOLDERS = [(held_ir, "looks"), (held_ir, ""), (held_onnx, "looks")]


@pytest.mark.parametrize(
    ("change", "make", "looks"),
    thinned([(change, *HOLDERS[(n + m) % 3]) for n in range(3) for m, change in enumerate(CHANGES)], 4),
)
def test_weights_that_change_while_a_model_is_held(
    make: Callable[[Path], tuple[Path, Path]], looks: str, change: str, tmp_path: Path
) -> None:
    """Neither does the process end, nor does what was not read count as legal."""
    path, weights = make(tmp_path)
    command = [sys.executable, "-I", "-c", HELD, str(path), str(weights), looks, change]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    size = {"shorter": 1, "empty": 0}.get(change)
    first, second = done.stdout.splitlines()
    assert f"{weights.name} has changed since it was read" in first
    assert "expected the same file, read the model again" in first
    assert (size is None) == (" now; " not in first)
    assert second == "UnreadableModel"


def test_weights_that_are_removed_while_a_model_is_held(tmp_path: Path) -> None:
    """What the file says of itself needs no bytes; what does need them does not count as legal."""
    path, weights = held_ir(tmp_path)
    model = read(path)
    weights.unlink()
    assert [one.message for one in model.defects] == []
    with pytest.raises(UnreadableModel, match=r"m\w*\.bin cannot be read \(no such file or directory\)"):
        validate(model)


def test_external_data_that_is_short_before_the_first_look(tmp_path: Path) -> None:
    path, weights = held_onnx(tmp_path)
    model = read(path)
    os.truncate(weights, 8)
    assert "SCT931" in [one.code for one in validate(model)]


def test_a_file_of_weights_that_changes_between_two_tensors(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(bytes(100))
    weights = Weights(path)
    assert weights.view(0, 50) is not None
    os.truncate(path, 60)
    with pytest.raises(UnreadableModel, match="it had 100 bytes and has 60 now"):
        weights.view(0, 50)
    path.unlink()
    with pytest.raises(UnreadableModel, match=r"m\.bin has changed"):
        weights.demand_unchanged()


def test_what_was_copied_stays(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(b"12345678")
    view = Weights(path).view(2, 4)
    os.truncate(path, 0)
    assert view is not None
    assert bytes(view) == b"3456"


def test_large_tensors_are_mapped(tmp_path: Path) -> None:
    path, size = tmp_path / "m.bin", (1 << 24) + 8
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size - 1)
        file.write(b"\1")
    weights = Weights(path)
    whole, part = weights.view(0, size), weights.view(8, 1 << 24)
    assert whole is not None
    assert part is not None
    assert (whole.readonly, part.readonly, whole[-1], part[-1]) == (True, True, 1, 1)
    assert isinstance(whole.obj, mmap.mmap)
    assert isinstance(part.obj, bytes)
    del whole, part


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
