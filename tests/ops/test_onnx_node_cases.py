"""The backend node tests of the package onnx, run by `evaluate_model`: they pass, or are refused with a reason."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import prepare

REFUSED = {
    "Bernoulli": (6, "random numbers"),
    "Cast": (12, "numbers that the new type does not have, and rounding to f8e8m0"),
    "CastLike": (20, "numbers that the new type does not have"),
    "Dropout": (6, "training drops elements at random, and is not computed with a ratio of 0 either"),
    "FlexAttention": (11, "preview: it has graphs as attributes"),
    "Identity": (2, "sequences and optional values"),
    "If": (2, "sequences and optional values"),
    "ImageDecoder": (9, "pictures in files"),
    "Loop": (2, "sequences and optional values"),
    "OptionalGetElement": (4, "sequences and optional values"),
    "OptionalHasElement": (7, "sequences and optional values"),
    "Resize": (2, "align_corners with a length that is no integer: whether it is rounded is not specified"),
    "Scan": (1, "Scan before opset 9"),
    "SequenceInsert": (2, "sequences and optional values"),
    "SequenceMap": (12, "sequences and optional values"),
    "SplitToSequence": (3, "sequences and optional values"),
}
"""Refused cases by operator, of onnx 1.23.2; "expanded" cases count for the operator that is expanded."""

SHORT = {"float16": 2e-3, "bfloat16": 2e-2}
"""Tolerances for outputs of short types: every node of an expanded function rounds."""


def array_of(value: Any) -> Any:
    value = numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
    if value is None or isinstance(value, list):
        raise Error("a sequence or an optional value")
    return np.asarray(value)


def demand(found: Any, expected: Any, case: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype.kind in "OUS":
        assert (found == expected).all()
        return
    relative = max(case.rtol, SHORT.get(found.dtype.name, 0))
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        found.astype(wide), expected.astype(wide), rtol=relative, atol=max(case.atol, 1e-7, relative / 100)
    )


def run(case: Any, path: Path) -> None:
    path.write_bytes(case.model.SerializeToString())
    program = prepare(path)
    names = [input.name for input in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        feeds = {name: array_of(value) for name, value in zip(names, inputs, strict=False)}
        expected = list(map(array_of, outputs))
        found = program.run(feeds)
        for output, array in zip(case.model.graph.output, expected, strict=True):
            demand(found[output.name], array, case)


def operator_of(case: Any) -> str:
    """Return the operator that a case tests; an expanded case names it in its nodes, or only in its name."""
    if "_expanded" not in case.name:
        return str(case.model.graph.node[-1].op_type)
    names = [name for node in case.model.graph.node for name in node.output if "_test_" in name]
    if names:
        return str(names[0]).partition("_test_")[0]
    word = case.name.split("_")[1]
    return next(schema.name for schema in onnx.defs.get_all_schemas() if schema.name.lower() == word)


class Counts(NamedTuple):
    """What became of the cases: counts and reasons by operator, and the cases with another result."""

    passed: Counter[str]
    refused: dict[str, list[str]]
    wrong: list[str]

    def table(self) -> str:
        """Format the counts of each operator: passed, refused."""
        names = sorted({*self.passed, *self.refused})
        lines = [f"{name:32}{self.passed[name]:8}{len(self.refused.get(name, ())):8}" for name in names]
        return "\n".join([f"{'operator':32}{'passed':>8}{'refused':>8}", *lines])


def count_cases(folder: Path) -> Counts:
    from onnx.backend.test.case.node import collect_testcases

    counts = Counts(Counter(), defaultdict(list), [])
    for case in collect_testcases(None):
        operator = operator_of(case)
        try:
            run(case, folder / "model.onnx")
            counts.passed[operator] += 1
        except (Error, MemoryError) as error:
            counts.refused[operator].append(f"{case.name}: {error}")
        except AssertionError as error:
            counts.wrong.append(f"{case.name}: {error}")
    return counts


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")
def test_node_cases(tmp_path: Path, figures: Counter[str]) -> None:
    """With `-s`, a table of the operators is printed."""
    counts = count_cases(tmp_path)
    print(f"\n{counts.table()}")
    total = sum(map(len, counts.refused.values()))
    figures.update({"passed": counts.passed.total(), "refused": total, "wrong": len(counts.wrong)})
    figures.update({f"refused {name}": len(cases) for name, cases in sorted(counts.refused.items())})
    assert counts.wrong == []
    assert counts.passed.total() > 1700
    if onnx.__version__ == "1.23.2":
        assert {name: len(cases) for name, cases in counts.refused.items()} == {
            name: count for name, (count, _) in REFUSED.items()
        }
