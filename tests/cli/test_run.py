import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tests.models.ir_text import IrText
from tests.models.onnx_text import LEGAL, NEVER_LEGAL, save

_HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
_PAIR = _HEADER + "g (float[2] x, int64[1] at) => (float[2] y, int64[1] z) { y = Relu (x) z = Neg (at) }"


@pytest.fixture
def pair(elsewhere: Path) -> Path:
    return save(_PAIR, elsewhere / "pair.onnx").relative_to(elsewhere)


@pytest.fixture
def direct(elsewhere: Path) -> Path:
    return save(LEGAL["direct"], elsewhere / "direct.onnx").relative_to(elsewhere)


def _feed(**changes: Any) -> Path:
    arrays = {"x": np.array([-1.5, 2.5], np.float32), "at": np.array([7]), **changes}
    path = Path("feeds.npz")
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def _load(path: str = "out.npz") -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_outputs_are_summed_up(cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "--inputs", _feed())
    assert result.code == 0
    assert result.err == ""
    assert result.out.splitlines() == [
        "output  type  shape  min  max",
        "y       f32   [2]    0    2.5",
        "z       i64   [1]    -7   -7",
    ]


def test_outputs_are_written(cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "--inputs", _feed(), "-o", "out.npz")
    assert (result.code, result.out, result.err) == (0, "", "")
    found = _load()
    assert {name: array.tolist() for name, array in found.items()} == {"y": [0, 2.5], "z": [-7]}
    assert [array.dtype for array in found.values()] == [np.float32, np.int64]


def test_inputs_are_drawn(cli: Cli, direct: Path) -> None:
    for name, options in {"a": [], "b": ["--seed", "0"], "c": ["--seed", "1"]}.items():
        assert cli("run", direct, *options, "-o", f"{name}.npz").code == 0
    files = [Path(f"{name}.npz").read_bytes() for name in "abc"]
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_shapes_may_be_given(cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["dynamic"], elsewhere / "m.onnx")
    result = cli("run", path, "--input-shape", "data=9,?", "--input-shape", "at=4,1", "-o", "out.npz")
    assert result.code == 0
    assert _load()["out"].shape == (9, 3)


def test_a_dimension_of_minus_one_is_dynamic(cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["dynamic"].replace("[N, 3]", "[9, 3]"), elsewhere / "m.onnx")
    proto = onnx.load(path)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(proto, path)
    result = cli("run", path, "--input-shape", "data=7,3", "--input-shape", "at=4,1", "-o", "out.npz")
    assert (result.code, result.err) == (0, "")
    assert _load()["out"].shape == (7, 3)


def test_a_dimension_of_minus_one_hides_no_cause(cli: Cli, elsewhere: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    m (float[5, 3] data, int64 count, float[1, 2, 3] new, int64[2] rows) => (float[5, 3] out) {
      out = Loop (count, , data) <body = b (int64 i, bool go, float[5, 3] old) => (bool on, float[5, 3] x) {
        on = Identity (go)
        x = ScatterElements <axis = 0> (old, rows, new)
      }>
    }"""
    path = save(text, elsewhere / "m.onnx")
    proto = onnx.load(path)
    proto.graph.node[0].attribute[0].g.input[2].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(proto, path)
    result = cli("run", path)
    assert result.code != 0
    assert "SCT928" not in result.err
    assert "updates is [1, 2, 3], expected [2] = indices" in result.err


def test_repeated_targets_are_remarked(cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["direct"].replace("[7, 3]", "[2, 3]"), elsewhere / "m.onnx")
    result = cli("run", path)
    assert result.code == 0
    assert result.err == "ir-scatter: out: several updates of one element; the last one wins\n"


@pytest.mark.parametrize(("indices", "is_repeated"), [([3, 1], False), ([3, 3], True), ([3, -4], True)])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_repeated_targets_of_given_inputs_are_remarked(
    indices: list[int], is_repeated: bool, reduction: str, cli: Cli, elsewhere: Path
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    m (float[7] data, int64[2, 1] at, float[2] new) => (float[7] out) {
      out = ScatterND <reduction = "%s"> (data, at, new)
    }"""
    path = save(text % reduction, elsewhere / "m.onnx")
    feeds = {"data": np.zeros(7, np.float32), "new": np.ones(2, np.float32)}
    np.savez(
        elsewhere / "feeds.npz", at=np.array(indices).reshape(2, 1), data=feeds["data"], new=feeds["new"]
    )
    result = cli("run", path, "--inputs", elsewhere / "feeds.npz")
    remark = "ir-scatter: out: several updates of one element; the last one wins\n"
    assert (result.code, result.err) == (0, remark if is_repeated and reduction == "none" else "")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": None}, "no array is given for x"),
        ({"q": np.zeros(1)}, "the model has no input 'q', expected x, at"),
        ({"x": np.zeros(3, np.float32)}, "x has shape [3], expected [2]"),
        ({"x": np.zeros(2)}, "x is float64, expected float32"),
        ({"x": np.array([{}, {}], object)}, "feeds.npz: x: holds pickles, which are not read"),
    ],
)
def test_wrong_inputs(changes: dict[str, Any], sentence: str, cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "--inputs", _feed(**changes), "-o", "out.npz")
    assert (result.code, result.out, result.err) == (2, "", f"Error: {sentence}\n")
    assert not Path("out.npz").exists()


def _one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(2))


def _damaged(path: Path) -> None:
    data = bytearray(_feed().read_bytes())
    data[60:70] = b"0123456789"
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda path: None, "no such file or directory"),
        (lambda path: path.write_bytes(b""), "not an npz file"),
        (lambda path: path.write_text("no archive"), "not an npz file"),
        (lambda path: path.write_bytes(pickle.dumps([1])), "holds pickles, which are not read"),
        (lambda path: path.write_bytes(b"PK\3\4" + b"\0" * 40), "not an npz file"),
        (_one_array, "one array without a name, expected an npz file"),
        (_damaged, "x: not an npz file"),
    ],
)
def test_files_that_are_no_npz(write: Callable[[Path], Any], sentence: str, cli: Cli, pair: Path) -> None:
    write(Path("bad.npz"))
    result = cli("run", pair, "--inputs", "bad.npz")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"Error: bad.npz: {sentence}\n"


@pytest.mark.parametrize("other", [["--seed", "1"], ["--input-shape", "x=2"], ["--input-range", "x=0..1"]])
def test_inputs_are_given_or_drawn(other: list[str], cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "--inputs", "feeds.npz", *other)
    assert result.code == 2
    assert "--inputs goes without --seed, --input-shape and --input-range" in result.err


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ("q=1", "the model has no input 'q', expected one of x, at"),
        ("x=3", "x has shape [2], which [3] does"),
    ],
)
def test_wrong_shapes(shape: str, sentence: str, cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "--input-shape", shape)
    assert result.code == 2
    assert sentence in result.err


def test_no_legal_inputs(cli: Cli, elsewhere: Path) -> None:
    result = cli("run", save(NEVER_LEGAL, elsewhere / "never.onnx"))
    assert result.code == 2
    assert "no legal inputs were found: out: positions between 5 and 5, expected -3 to 2" in result.err


def test_an_unreadable_model(cli: Cli) -> None:
    Path("no.onnx").write_text("nothing")
    for name in ("no.onnx", "missing.xml"):
        result = cli("run", name)
        assert (result.code, result.out) == (3, "")
        assert result.err.startswith(f"ir-scatter: {name}: ")


def test_broken_operators(cli: Cli, broken: Path) -> None:
    result = cli("run", broken, "-o", "out.npz")
    assert (result.code, result.out) == (1, "")
    assert result.err.count("error SCT") == 5
    assert "SCT304" not in result.err
    assert not Path("out.npz").exists()


def test_an_index_that_breaks_the_rules(cli: Cli, direct: Path) -> None:
    data, rows = np.zeros((7, 3), np.float32), np.zeros((4, 3), np.float32)
    np.savez("feeds.npz", data=data, rows=rows, at=np.array([[0], [1], [2], [7]]))
    result = cli("run", direct, "--inputs", "feeds.npz")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"ir-scatter: ScatterND out ({direct}): indices[3, 0] is 7, expected -7 to 6\n"


def test_an_operator_that_numpy_does_not_compute(cli: Cli, elsewhere: Path) -> None:
    text = _HEADER + "g (float[2, 2] x) => (float[2, 2] y) { y = Thing (x, x) }"
    path = save(text, elsewhere / "m.onnx").relative_to(elsewhere)
    result = cli("run", path, "-o", "out.npz")
    assert (result.code, result.out) == (4, "")
    assert result.err == "ir-scatter: NumPy does not compute Thing at y (m.onnx)\n"


def test_numbers_that_numpy_does_not_compute(cli: Cli, elsewhere: Path) -> None:
    path = save(_HEADER + "g (int64[1] x) => (int64[1] y) { y = Div (x, x) }", elsewhere / "m.onnx")
    np.savez("feeds.npz", x=np.array([0]))
    result = cli("run", path, "--inputs", "feeds.npz")
    assert result.code == 4
    assert "Div y (" in result.err


def test_a_folder_that_cannot_be_written(cli: Cli, pair: Path) -> None:
    result = cli("run", pair, "-o", "missing/out.npz")
    assert (result.code, result.out) == (3, "")
    assert result.err == "ir-scatter: missing/out.npz cannot be written: there is no folder missing\n"


def _identities(folder: Path, types: list[str]) -> str:
    ir = IrText()
    for type in types:
        source = ir.parameter(f"in_{type}", type, (2,))
        same = ir.add(type, "Identity", "opset16", [source], [(type, (2,))])
        ir.add(f"r_{type}", "Result", "opset1", [same], [])
    return ir.write(folder)


def test_types_that_npz_does_not_know(cli: Cli, elsewhere: Path) -> None:
    arrays: dict[str, Any] = {
        "in_bf16": np.array([1.5, -2], ml_dtypes.bfloat16),
        "in_f8e4m3": np.array([1.5, -2], np.float32),
        "in_i4": np.array([-8, 7], np.int8),
        "in_u4": np.array([0, 15], ml_dtypes.uint4),
        "in_string": np.array(["a", "bcd"]),
    }
    np.savez("feeds.npz", **arrays)
    path = _identities(elsewhere, ["bf16", "f8e4m3", "i4", "u4", "string"])
    result = cli("run", path, "--inputs", "feeds.npz", "-o", "out.npz")
    assert result.code == 0
    assert result.err.splitlines() == [
        "ir-scatter: bf16 is bfloat16, written as float32",
        "ir-scatter: f8e4m3 is float8_e4m3fn, written as float32",
        "ir-scatter: i4 is int4, written as int8",
        "ir-scatter: u4 is uint4, written as uint8",
    ]
    found = {name: array.tolist() for name, array in _load().items()}
    assert found == {
        "bf16": [1.5, -2], "f8e4m3": [1.5, -2], "i4": [-8, 7], "u4": [0, 15], "string": ["a", "bcd"],
    }  # fmt: skip
    assert "string  string  [2]" in cli("run", path, "--inputs", "feeds.npz").out


@pytest.mark.parametrize(("name", "value"), [("bf16", 1.0001), ("i4", 8), ("u4", 16)])
def test_numbers_that_do_not_fit_are_not_rounded(name: str, value: float, cli: Cli, elsewhere: Path) -> None:
    wide = {"bf16": np.float32, "i4": np.int8, "u4": np.uint8}[name]
    arrays: dict[str, Any] = {f"in_{name}": np.array([value, 0], wide)}
    np.savez("feeds.npz", **arrays)
    result = cli("run", _identities(elsewhere, [name]), "--inputs", "feeds.npz")
    assert result.code == 2
    assert f"in_{name} is {np.dtype(wide).name}, expected " in result.err


def test_names_cannot_send_escapes(cli: Cli, elsewhere: Path) -> None:
    ir = IrText()
    same = ir.add("same", "Identity", "opset16", [ir.parameter("x", "f32", (1,))], [("f32", (1,))])
    ir.add("r", "Result", "opset1", [same], [])
    path = Path(ir.write(elsewhere))
    path.write_text(path.read_text().replace('name="same"', 'name="sa&#x9B;me"'))
    result = cli("run", path)
    assert result.code == 0
    assert "\x9b" not in result.out


def test_outputs_that_depend_on_no_unknown_operator_are_computed(cli: Cli, elsewhere: Path) -> None:
    """The exit code is that of a model which is not computed, so that no script takes a part for the whole."""
    header = _HEADER.replace("]", ', "own" : 1]')
    text = header + "g (float[2] x) => (float[2] y, float[2] z) { y = Relu (x) z = own.Thing (y) }"
    path = save(text, elsewhere / "part.onnx").relative_to(elsewhere)
    np.savez("x.npz", x=np.array([-1, 2], np.float32))
    result = cli("run", path, "--inputs", "x.npz")
    assert (result.code, result.err) == (
        4, "ir-scatter: output z is not computed: NumPy computes nothing after z (own::Thing)\n",
    )  # fmt: skip
    assert result.out.splitlines()[1:] == ["y       f32   [2]    0    2"]
    result = cli("run", path, "--inputs", "x.npz", "-o", "out.npz")
    assert (result.code, [*_load()]) == (4, ["y"])
    document = json.loads(cli("run", path, "--inputs", "x.npz", "--format", "json").out)
    assert document["not_computed"] == [{"name": "z", "after": "z (own::Thing)"}]
    assert [output["name"] for output in document["outputs"]] == ["y"]
    assert cli("run", path).code == 4
