"""Models that exporters and other projects wrote: what we compute for them, and what runtimes do."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import BrokenModel, Error, UnknownOperator
from ir_scatter.evaluate.model import Program, prepare
from ir_scatter.inputs.model import make_feeds
from ir_scatter.ops.general import find_analysed, find_computed
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.reading import read
from tests.models.runtimes import run_all

MODELS = Path(__file__).parents[3] / "shared" / "models"
SEEDS = (0, 1)

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"),
]


@cache
def _prepared() -> dict[Path, Program | Error]:
    found: dict[Path, Program | Error] = {}
    for entry in json.loads((MODELS / "manifest.json").read_text()):
        path = MODELS / entry["path"]
        try:
            program = prepare(path)
            found[path] = program.unknown or program
        except Error as error:
            found[path] = error
    return found


def _programs(suffix: str = "") -> Iterator[tuple[Path, Program]]:
    for path, program in _prepared().items():
        if isinstance(program, Program) and path.suffix.endswith(suffix) and _is_exact(path):
            yield path, program


def _is_exact(path: Path) -> bool:
    """Return whether nothing is rounded: `tests/compare/test_real_models.py` compares the networks."""
    model = read(path)
    return all(
        find_analysed(node.domain, node.type)
        or node.bodies
        or find_scatter(node.domain, node.type, node.opset)
        for node in model.walk()
        if node.type not in {"Parameter", "Result", "Const", "Constant"} and (node.domain or node.type)
    )


def _difference(ours: Mapping[str, Any], theirs: Sequence[Any]) -> str:
    for (name, array), expected in zip(ours.items(), theirs, strict=True):
        if array.dtype != expected.dtype or array.shape != expected.shape:
            return f"{name} is {array.dtype} {array.shape}, theirs {expected.dtype} {expected.shape}"
        if not np.array_equal(array, expected, equal_nan=array.dtype.kind == "f"):
            return f"{name} is {array}, theirs {expected}"
    return ""


@pytest.mark.parametrize(
    ("runtime", "suffix"),
    [
        pytest.param("onnxruntime", ".onnx", marks=pytest.mark.onnxruntime),
        pytest.param("openvino", "", marks=pytest.mark.openvino),
    ],
)
def test_as_a_runtime(runtime: str, suffix: str, tmp_path: Path) -> None:
    """All indices are legal, and no model leaves a runtime a choice that it makes in another way."""
    pytest.importorskip(runtime)
    feeds = {
        f"{path} {seed}": (path, program, make_feeds(program, seed))
        for path, program in _programs(suffix)
        for seed in SEEDS
    }
    jobs = {key: (path, list(given.values())) for key, (path, _, given) in feeds.items()}
    outcomes, wrong = run_all(runtime, jobs, tmp_path), {}
    for key, (_, program, given) in feeds.items():
        wrong[key] = outcomes[key].error or _difference(program.run(given), outcomes[key].outputs)
    assert {key: text for key, text in wrong.items() if text} == {}
    assert len(wrong) >= 60


def test_as_the_framework_that_exported_it() -> None:
    wrong = {}
    for path, program in _programs():
        if not path.with_name("io.npz").exists():
            continue
        names = json.loads(path.with_name("io_names.json").read_text())["inputs_in_order"]
        with np.load(path.with_name("io.npz")) as archive:
            inputs = [archive[name] for name in archive.files if name.startswith("in_")]
            expected = [archive[name] for name in archive.files if name.startswith("out_")]
        declared = {input.names[0]: input for input in program.inputs}
        named = names if declared.keys() == set(names) else list(declared)
        pairs = zip(named, inputs, strict=True)
        feeds = {name: array.astype(_dtype(declared[name])) for name, array in pairs}
        wrong[path] = _difference(program.run(feeds), expected)
    assert set(wrong.values()) == {""}


def _dtype(input: GraphInput) -> Any:
    """Return the type of an input: Model Optimizer has made i32 of i64."""
    assert input.element_type is not None
    return dtype(input.element_type)


def test_as_the_files_beside_it() -> None:
    wrong = {}
    for path, program in _programs():
        if (folder := path.with_name("test_data_set_0")).is_dir():
            inputs, expected = (
                [onnx.numpy_helper.to_array(onnx.load_tensor(file)) for file in sorted(folder.glob(names))]
                for names in ("input_*.pb", "output_*.pb")
            )
            names = [input.names[0] for input in program.inputs]
            wrong[path] = _difference(program.run(dict(zip(names, inputs, strict=True))), expected)
    assert set(wrong.values()) == {""}


def test_other_models_say_why_they_are_not_computed() -> None:
    errors = {path: error for path, error in _prepared().items() if isinstance(error, Error)}
    for path, error in errors.items():
        if isinstance(error, UnknownOperator):
            words = str(error).removeprefix("NumPy does not compute ").partition(" ")
            nodes = [node for node in read(path).walk() if node.type == words[0].rpartition("::")[2]]
            assert nodes
            assert all(find_computed(node.domain, node.type) is None for node in nodes)
    codes = Counter(one.diagnostics[0].code for one in errors.values() if isinstance(one, BrokenModel))
    assert codes == {"SCT402": 3, "SCT104": 5, "SCT105": 2}
    kinds = Counter(type(error).__name__ for error in errors.values())
    assert kinds == {"BrokenModel": 10, "UnknownOperator": 2, "UnreadableModel": 2}
