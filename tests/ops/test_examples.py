"""The examples that the documents print; where one contradicts its own text, the text counts."""

from typing import Any

import numpy as np
import pytest

from ir_scatter import IllegalCase, evaluate
from ir_scatter.ops.names import OperatorName

_CUBE = [
    [[1, 2, 3, 4], [5, 6, 7, 8], [8, 7, 6, 5], [4, 3, 2, 1]],
    [[1, 2, 3, 4], [5, 6, 7, 8], [8, 7, 6, 5], [4, 3, 2, 1]],
    [[8, 7, 6, 5], [4, 3, 2, 1], [1, 2, 3, 4], [5, 6, 7, 8]],
    [[8, 7, 6, 5], [4, 3, 2, 1], [1, 2, 3, 4], [5, 6, 7, 8]],
]
_SLICES = [
    [[5, 5, 5, 5], [6, 6, 6, 6], [7, 7, 7, 7], [8, 8, 8, 8]],
    [[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4]],
]

_SUM = {"data": [2, 3, 4, 6], "updates": [10, 20, 30, 40, 70, 60], "axis": [0], "reduction": "sum"}
_SQUARE = {"indices": [[1, 1], [0, 3]], "updates": [[11, 12], [13, 14]], "axis": [1]}
_EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]
_NINE = {
    "data": np.zeros((3, 3)), "indices": [[1, 0, 2], [0, 2, 1]], "updates": [[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]],
}  # fmt: skip
_FOUR = {"data": [1, 2, 3, 4], "indices": [[0], [2], [-3], [-3], [0]], "updates": [10, 20, 30, 40, 50]}

EXAMPLES: list[tuple[str, str, dict[str, Any], Any]] = [
    (
        "ScatterUpdate-3", "2; the document prints the first column of rows 1 and 2 unchanged",
        {
            "data": [[-1.0, 1.0, -1.0, 3.0, 4.0], [-1.0, 6.0, -1.0, 8.0, 9.0], [-1.0, 11.0, 1.0, 13.0, 14.0]],
            "indices": [0, 2], "updates": [[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]], "axis": [1],
        },
        [[1.0, 1.0, 1.0, 3.0, 4.0], [1.0, 6.0, 1.0, 8.0, 9.0], [1.0, 11.0, 2.0, 13.0, 14.0]],
    ),
    ("ScatterElementsUpdate-12", "1", {**_SUM, "indices": [1, 0, 0, -2, -1, 2]}, [52, 13, 104, 76]),
    (
        "ScatterElementsUpdate-12", "2", {**_SUM, "indices": [1, 0, 0, 2, 3, 2], "use_init_val": False},
        [50, 10, 100, 70],
    ),
    (
        "ScatterElementsUpdate-12", "3",
        {**_SQUARE, "data": np.zeros((3, 4), np.int32), "indices": [[1, 2], [0, 3]], "reduction": "none"},
        [[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]],
    ),
    (
        "ScatterElementsUpdate-12", "4", {**_SQUARE, "data": np.ones((3, 4), np.int32), "reduction": "sum"},
        [[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]],
    ),
    (
        "ScatterElementsUpdate-12", "5", {**_SQUARE, "data": np.full((3, 4), 2, np.int32), "reduction": "prod"},
        [[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]],
    ),
    (
        "ScatterNDUpdate-3", "1",
        {"data": _EIGHT, "indices": [[4], [3], [1], [7]], "updates": [9, 10, 11, 12]},
        [1, 11, 3, 10, 9, 6, 7, 12],
    ),
    (
        "ScatterNDUpdate-15", "first of the text; the document prints 4 at index 4",
        {
            "data": _EIGHT, "indices": [[4], [3], [1], [7], [-2], [-4]], "updates": [9, 10, 11, 12, 13, 14],
        },
        [1, 11, 3, 10, 14, 6, 13, 12],
    ),
    (
        "Scatter-9", "2",
        {"data": [[1.0, 2.0, 3.0, 4.0, 5.0]], "indices": [[1, 3]], "updates": [[1.1, 2.1]], "axis": 1},
        [[1.0, 1.1, 3.0, 2.1, 5.0]],
    ),
    *(
        (operator, "1", _NINE, [[2.0, 1.1, 0.0], [1.0, 0.0, 2.2], [0.0, 2.1, 1.2]])
        for operator in ("Scatter-9", "Scatter-11", "ScatterElements-11", "ScatterElements-18")
    ),
    *(
        (
            operator, "two slices", {"data": _CUBE, "indices": [[0], [2]], "updates": _SLICES},
            [_SLICES[0], _CUBE[1], _SLICES[1], _CUBE[3]],
        )
        for operator in ("ScatterND-11", "ScatterND-18", "ScatterNDUpdate-3")
    ),
    ("ScatterNDUpdate-15", "1; printed with indices [5]", {**_FOUR, "reduction": "none"}, [50, 40, 20, 4]),
    ("ScatterNDUpdate-15", "2; printed with indices [5]", {**_FOUR, "reduction": "sum"}, [61, 72, 23, 4]),
    ("ScatterNDUpdate-15", "3; printed with indices [5]", {**_FOUR, "reduction": "sub"}, [-59, -68, -17, 4]),
    ("ScatterNDUpdate-15", "4; printed with indices [5]", {**_FOUR, "reduction": "prod"}, [500, 2400, 60, 4]),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "example", "arguments", "expected"), EXAMPLES)
def test_an_example_gives_what_the_document_prints(
    operator: OperatorName, example: str, arguments: dict[str, Any], expected: Any
) -> None:
    assert np.array_equal(evaluate(operator, **arguments), expected)


def test_indices_of_the_printed_shape_are_refused() -> None:
    with pytest.raises(IllegalCase, match="k is 5, expected at most 1"):
        evaluate(
            "ScatterNDUpdate-15", data=[1, 2, 3, 4], indices=[0, 2, -3, -3, 0], updates=[10, 20, 30, 40, 50]
        )


@pytest.mark.parametrize(
    ("operator", "data", "indices", "updates", "axis"),
    [
        ("ScatterUpdate-3", (100, 256, 10, 15), (125, 20), (100, 125, 20, 10, 15), 1),
        ("ScatterElementsUpdate-3", (1000, 256, 7, 7), (125, 20, 7, 6), (125, 20, 7, 6), 0),
        ("ScatterElementsUpdate-12", (1000, 256, 7, 7), (125, 20, 7, 6), (125, 20, 7, 6), 0),
        ("ScatterNDUpdate-3", (100, 256, 10, 15), (25, 125, 3), (25, 125, 15), None),
        ("ScatterNDUpdate-15", (100, 256, 10, 15), (25, 125, 3), (25, 125, 15), None),
    ],
)
def test_examples_without_numbers_are_legal(
    operator: OperatorName, data: Any, indices: Any, updates: Any, axis: int | None
) -> None:
    """Their shapes are the document's, but for a first dimension of 1000 made 100 to save memory."""
    generator = np.random.default_rng(3)
    found = evaluate(
        operator,
        data=np.zeros(data, np.float32),
        indices=generator.integers(0, 10, indices),
        updates=np.ones(updates, np.float32),
        axis=axis,
    )
    assert found.shape == data
    assert found.max() == 1
