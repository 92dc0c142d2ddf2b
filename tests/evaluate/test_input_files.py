"""Inputs from files: npz, folders of ONNX tensors, functions in Python files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.value_ranges import make_range, parse_range, show_range
from ir_scatter.evaluate.input_files import read_cases, read_one_case
from ir_scatter.formats import dataflow_of
from ir_scatter.reading import read
from tests.models.onnx_text import save

MODEL = """<ir_version: 10, opset_import: ["" : 18]>
g (float[2] x, int64[N] at, bfloat16[1] low, float[1] scale) => (float[2] y, int64[N] z, bfloat16[1] w)
  <float[1] scale = {2.0}> {
  y = Mul (x, scale)
  z = Neg (at)
  w = Identity (low)
}"""
X, AT = np.array([1, 2], np.float32), np.array([7])
LOW = np.array([0.5], ml_dtypes.bfloat16)


@pytest.fixture
def inputs(tmp_path: Path) -> Sequence[GraphInput]:
    return dataflow_of(read(save(MODEL, tmp_path / "model.onnx"))).inputs


def store(folder: Path, *arrays: np.ndarray[Any, Any], names: Sequence[str] = ()) -> Path:
    folder.mkdir(parents=True)
    for number, array in enumerate(arrays):
        tensor = onnx.numpy_helper.from_array(array, names[number] if names else "")
        (folder / f"input_{number}.pb").write_bytes(tensor.SerializeToString())
    (folder / "output_0.pb").write_bytes(b"not read")
    return folder


def check(case: dict[str, Any], x: Any = X, at: Any = AT, low: Any = LOW) -> None:
    expected = {"x": x, "at": at, "low": low}
    assert case.keys() == expected.keys()
    for name, array in expected.items():
        assert case[name].dtype == array.dtype
        assert np.array_equal(case[name], array)


@pytest.mark.parametrize("names", [("x", "at", "low"), ("", "", ""), ("a", "b", "c"), ("x", "x", "x")])
def test_tensors_by_name_or_in_order(
    names: Sequence[str], tmp_path: Path, inputs: Sequence[GraphInput]
) -> None:
    check(read_one_case(str(store(tmp_path / "set", X, AT, LOW, names=names)), inputs))


def test_names_of_tensors_come_first(tmp_path: Path, inputs: Sequence[GraphInput]) -> None:
    folder = store(tmp_path / "set", LOW, X, AT, names=["low", "x", "at"])
    check(read_one_case(str(folder), inputs))


def test_an_input_with_an_initializer_may_be_there(tmp_path: Path, inputs: Sequence[GraphInput]) -> None:
    case = read_one_case(str(store(tmp_path / "set", X, AT, LOW, X[:1])), inputs)
    assert list(case) == ["x", "at", "low", "scale"]


def test_several_sets_in_the_order_of_their_numbers(tmp_path: Path, inputs: Sequence[GraphInput]) -> None:
    for number in (10, 9, 0):
        store(tmp_path / "all" / f"test_data_set_{number}", X, AT + number, LOW)
    (tmp_path / "all" / "model.onnx").touch()
    cases = read_cases(str(tmp_path / "all"), inputs)
    assert [case["at"].tolist() for case in cases] == [[7], [16], [17]]
    with pytest.raises(BadFeed, match=r"all has 3 sets of inputs, expected one$"):
        read_one_case(str(tmp_path / "all"), inputs)


def test_an_archive_without_names(tmp_path: Path, inputs: Sequence[GraphInput]) -> None:
    np.savez(tmp_path / "in.npz", X, AT, LOW)
    check(read_one_case(str(tmp_path / "in.npz"), inputs))
    np.savez(tmp_path / "in.npz", **{"1": AT, "0": X, "2": LOW})  # type: ignore[arg-type]
    check(read_one_case(str(tmp_path / "in.npz"), inputs))


def test_names_that_are_unknown_stay(tmp_path: Path, inputs: Sequence[GraphInput]) -> None:
    """They are refused by `check_feeds`, with a suggestion."""
    np.savez(tmp_path / "in.npz", X=X, at=AT)
    assert list(read_one_case(str(tmp_path / "in.npz"), inputs)) == ["X", "at"]


FUNCTIONS = """
import numpy as np
from neighbour import AT

X, LOW = np.array([1, 2], np.float32), [0.5]

def by_name():
    return {"at": AT, "x": X, "low": LOW}

def in_order():
    return X, AT, LOW

def several():
    yield {"x": X, "at": AT, "low": LOW}
    yield [X, np.array(AT), LOW]

def raises():
    values = {}
    return values["x"]

def raises_outside():
    return np.zeros(-1)

def leaves():
    raise SystemExit(0)

def hangs():
    while True:
        pass

def ends():
    import os
    os._exit(3)

def number(): return 5
def none(): pass
def nothing():
    return
    yield
def endless():
    while True:
        yield {}
def no_array(): return {"x": object()}
def ragged(): return {"x": [[1], [1, 2]]}
def numbered(): return {1: X}
def few(): return [X]
def few_of_several():
    yield [X, AT, LOW]
    yield [X]
needs_arguments = by_name.__get__(1)
no_function = 5
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("make.py").write_text(FUNCTIONS)
    Path("neighbour.py").write_text("AT = [7]")
    return "make.py"


@pytest.mark.parametrize("name", ["by_name", "in_order"])
def test_a_function(name: str, functions: str, inputs: Sequence[GraphInput]) -> None:
    check(read_one_case(f"{functions}:{name}", inputs))


def test_a_generator(functions: str, inputs: Sequence[GraphInput]) -> None:
    cases = read_cases(f"{functions}:several", inputs)
    assert len(cases) == 2
    for case in cases:
        check(case)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("raises", "make.py:19: KeyError: 'x'"),
        ("raises_outside", "make.py:22: ValueError: negative dimensions are not allowed"),
        ("leaves", "make.py:25: SystemExit: 0"),
        ("hangs", "make.py:hangs: the function did not end within 1 seconds"),
        ("ends", "make.py:ends: the process ended with 3"),
        ("number", "make.py:number returns an int, expected a dict of arrays by name, or a list of arrays"),
        ("none", "make.py:none returns a NoneType, expected a dict of arrays by name, or a list of arrays"),
        ("nothing", "make.py:nothing yields nothing, expected sets of inputs"),
        ("endless", "make.py:endless yields more than 1000 sets of inputs"),
        ("no_array", "make.py:no_array returns x as an object that NumPy makes no array of"),
        ("ragged", "make.py:ragged returns x as a list that NumPy makes no array of"),
        (
            "numbered",
            "make.py:numbered returns a dict with the key 1, "
            "expected a dict of arrays by name, or a list of arrays",
        ),
        ("few", "make.py:few has 1 array, expected 3 for the inputs x, at, low"),
        (
            "few_of_several",
            "make.py:few_of_several, case 1, has 1 array, expected 3 for the inputs x, at, low",
        ),
        ("needs_arguments", "make.py: TypeError: by_name() takes 0 positional arguments but 1 was given"),
        ("no_function", "make.py has no function 'no_function'"),
        ("several1", "make.py has no function 'several1' (did you mean several?)"),
        ("a b", "make.py:a b: 'a b' is not the name of a function, expected FILE.py:FUNCTION"),
    ],
)
def test_functions_that_fail(name: str, sentence: str, functions: str, inputs: Sequence[GraphInput]) -> None:
    with pytest.raises(BadFeed) as caught:
        read_cases(f"{functions}:{name}", inputs, limit=1 if name == "hangs" else 60)
    assert str(caught.value) == sentence


def test_files_that_are_no_inputs(tmp_path: Path, inputs: Sequence[GraphInput], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("make.py").write_text("def inputs() -> int:\n    return (\n")
    Path("empty").mkdir()
    store(Path("gap"), X, AT, LOW)
    Path("gap/input_1.pb").unlink()
    store(Path("few"), X)
    store(Path("damaged"), X, AT, LOW)
    Path("damaged/input_1.pb").write_bytes(b"\xff\xff\xff")
    store(Path("short"), X, AT, LOW)
    tensor = onnx.numpy_helper.from_array(AT)
    tensor.dims[0] = 2
    Path("short/input_1.pb").write_bytes(tensor.SerializeToString())
    store(Path("folder"), X)
    Path("folder/input_1.pb").mkdir()
    store(Path("elsewhere"), X, AT, LOW)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    Path("elsewhere/input_1.pb").write_bytes(tensor.SerializeToString())
    sentences = {
        "make.py": "make.py names no function, expected make.py:FUNCTION",
        "make.py:inputs": "make.py:2: SyntaxError: '(' was never closed",
        "mike.py:inputs": "mike.py: no such file or directory (did you mean make.py?)",
        "none.npz": "none.npz: no such file or directory",
        "empty": "empty has no inputs, expected input_0.pb or folders test_data_set_0",
        "gap": "gap has 2 inputs, but no input_1.pb",
        "few": "few has 1 array, expected 3 for the inputs x, at, low",
        "damaged": "damaged/input_1.pb: not a tensor of ONNX",
        "short": "short/input_1.pb: not a tensor of ONNX: "
        "the tensor has 8 bytes, its type i64 and shape [2] need 16",
        "folder": "folder/input_1.pb: is a directory",
        "elsewhere": "elsewhere/input_1.pb: its data is in another file, expected a tensor with data",
    }
    for source, sentence in sentences.items():
        with pytest.raises(BadFeed) as caught:
            read_cases(source, inputs)
        assert str(caught.value) == sentence


def test_ranges() -> None:
    assert parse_range("0..31999") == (0, 31999)
    assert parse_range("-0.5..1e3") == (-0.5, 1000)
    assert type(parse_range(f"0..{2**63}")[1]) is int
    assert show_range(make_range((0, 2.5))) == "0..2.5"
    for text, sentence in {
        "5": "'5' is not a range, expected LOW..HIGH, like 0..31999 or -0.5..0.5",
        "a..5": "'a..5' is not a range, expected LOW..HIGH, like 0..31999 or -0.5..0.5",
        "0..inf": "(0, inf) is not a range, expected two finite numbers",
        "2..1": "the range begins at 2 and ends at 1, expected the lower number first",
    }.items():
        with pytest.raises(ValueError, match=r"^.") as caught:
            parse_range(text)
        assert str(caught.value) == sentence
