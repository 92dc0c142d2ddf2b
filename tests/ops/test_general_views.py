"""Which nodes give one input unchanged: held against what their kernels compute."""

from typing import Any

import numpy as np
import pytest

from ir_scatter.core.arrays import Array
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import UNKNOWN_DIM
from ir_scatter.ops import general_kernels
from ir_scatter.ops.general import find
from ir_scatter.ops.general_views import ViewCase

_DATA = np.arange(8, dtype=np.int64).reshape(4, 2) + 10
_WIDE = _DATA.reshape(1, 4, 2)
_NO_END = 2**63 - 1


def _i(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


_OPENVINO: list[tuple[str, list[Array], dict[str, Any]]] = [
    ("Reshape", [_DATA, _i(2, 4)], {"special_zero": "false"}),
    ("Squeeze", [_WIDE, _i(0)], {}),
    ("Unsqueeze", [_DATA, _i(1)], {}),
    ("Transpose", [_DATA, _i(0, 1)], {}),
    ("Transpose", [_DATA, _i(1, 0)], {}),
    ("Transpose", [_WIDE, _i(1, 0, 2)], {}),
    ("Transpose", [_WIDE, _i(0, 2, 1)], {}),
    ("Convert", [_DATA], {"destination_type": "i64"}),
    ("Tile", [_DATA, _i(1, 1)], {}),
    ("Tile", [_DATA, _i(1, 2)], {}),
    ("Broadcast", [_DATA, _i(4, 2)], {"mode": "numpy"}),
    ("Broadcast", [_DATA, _i(3, 4, 2)], {"mode": "numpy"}),
    ("Slice", [_DATA, _i(0), _i(9), _i(1), _i(0)], {}),
    ("Slice", [_DATA, _i(0), _i(3), _i(1), _i(0)], {}),
    ("Slice", [_DATA, _i(3), _i(-9), _i(-1), _i(0)], {}),
    ("StridedSlice", [_DATA, _i(0, 0), _i(4, 2), _i(1, 1)], {"begin_mask": "0,0", "end_mask": "0,0"}),
    ("StridedSlice", [_DATA, _i(0, 0), _i(4, 1), _i(1, 1)], {"begin_mask": "0,0", "end_mask": "0,0"}),
    ("Gather", [_DATA, _i(0, 1, 2, 3), _i(0)], {}),
    ("Gather", [_DATA, _i(0, 1, 3, 2), _i(0)], {}),
    ("Gather", [_WIDE, np.array(0, np.int64), _i(0)], {}),
    ("Add", [_DATA, _i(0)], {"auto_broadcast": "numpy"}),
    ("Add", [_i(0), _DATA], {"auto_broadcast": "numpy"}),
    ("Add", [_DATA, _i(0, 1)], {"auto_broadcast": "numpy"}),
    ("Subtract", [_i(0), _DATA], {"auto_broadcast": "numpy"}),
    ("Multiply", [_DATA, _i(1)], {"auto_broadcast": "numpy"}),
    ("Divide", [_DATA, _i(1)], {"auto_broadcast": "numpy"}),
    ("Divide", [_DATA, _i(2)], {"auto_broadcast": "numpy"}),
    ("Concat", [_DATA, np.zeros((0, 2), np.int64)], {"axis": "0"}),
    ("Concat", [_DATA, _DATA], {"axis": "0"}),
    ("Select", [np.array(True), _DATA, _i(0)], {"auto_broadcast": "numpy"}),
]
_ONNX: list[tuple[str, list[Array], dict[str, Any]]] = [
    ("Identity", [_DATA], {}),
    ("Flatten", [_WIDE], {"axis": 2}),
    ("Transpose", [_DATA], {"perm": [0, 1]}),
    ("Transpose", [_DATA], {}),
    ("Expand", [_DATA, _i(1, 2)], {}),
    ("Slice", [_DATA, _i(0, 0), _i(4, 2)], {}),
    ("Slice", [_DATA, _i(0), _i(4), _i(0), _i(2)], {}),
    ("Gather", [_DATA, _i(0, 1)], {"axis": 1}),
    ("Gather", [_DATA, _i(0, 1)], {"axis": 0}),
    ("Where", [np.array(False), _i(0), _DATA], {}),
    ("Max", [_DATA], {}),
    ("Max", [_DATA, _DATA[::-1]], {}),
]


@pytest.mark.parametrize(
    ("domain", "type", "inputs", "attributes"),
    [*((OPENVINO, *case) for case in _OPENVINO), *(("", *case) for case in _ONNX)],
)
def test_a_view_gives_the_elements_of_its_input(
    domain: str, type: str, inputs: list[Array], attributes: dict[str, Any]
) -> None:
    op = find(domain, type)
    assert op is not None
    assert op.view is not None
    (result,) = general_kernels.compute(
        op, domain, inputs, attributes, opset=18, output_count=1, element_limit=1 << 20
    )
    types, of_data = ["i64"] * len(inputs), [array.size == _DATA.size for array in inputs]
    shapes = [array.shape for array in inputs]
    case = ViewCase(
        shapes, types, result.shape, "i64",
        lambda port: None if of_data[port] else inputs[port], attributes, 0, domain != OPENVINO,
    )  # fmt: skip
    view = op.view(case)
    is_same = any(
        is_data and np.array_equal(array.reshape(-1), result.reshape(-1))
        for is_data, array in zip(of_data, inputs, strict=True)
    )
    assert (view is not None) is is_same
    assert view is None or (of_data[view.port] and not view.when)


@pytest.mark.parametrize(
    ("shape", "axis", "is_view"), [((4, 2), 0, True), ((4, 2), 1, False), ((1, 4), 1, True)]
)
def test_a_part_along_the_outermost_dimension_is_a_range(
    shape: tuple[int, ...], axis: int, is_view: bool
) -> None:
    op = find(OPENVINO, "Split")
    assert op is not None
    assert op.view is not None
    part = tuple(dim // 2 if place == axis else dim for place, dim in enumerate(shape))
    case = ViewCase(
        [shape, ()], ["f32", "i64"], part, "f32", lambda port: _i(axis) if port else None, {}, 0, False
    )
    assert (op.view(case) is not None) is is_view


def test_what_is_not_known_is_a_condition() -> None:
    op = find(OPENVINO, "Convert")
    assert op is not None
    assert op.view is not None
    view = op.view(ViewCase([None], [""], None, "f32", lambda _: None, {}, 0, False))
    assert view is not None
    assert view.when == "the element type stays the same"


_OPEN = (UNKNOWN_DIM, 2)
_ALL_OF_TWO = {"begin_mask": "1,1", "end_mask": "1,1"}


@pytest.mark.parametrize(
    ("domain", "type", "more", "attributes", "is_view"),
    [
        (OPENVINO, "StridedSlice", [_i(9, 9), _i(1, 1), _i(1, 1)], _ALL_OF_TWO, True),
        (OPENVINO, "StridedSlice", [_i(9, 9), _i(1, 1), _i(1, -1)], _ALL_OF_TWO, False),
        (OPENVINO, "StridedSlice", [_i(9), _i(1), _i(1)], {**_ALL_OF_TWO, "ellipsis_mask": "1"}, False),
        (OPENVINO, "StridedSlice", [_i(0, 0), _i(_NO_END, 1), _i(1, 1)], {"end_mask": "0,1"}, True),
        (
            OPENVINO,
            "StridedSlice",
            [_i(0, 1), _i(1, 1), _i(1, 1)],
            {"begin_mask": "1", "end_mask": "1,1"},
            False,
        ),
        (OPENVINO, "Slice", [_i(0), _i(_NO_END), _i(1), _i(0)], {}, True),
        (OPENVINO, "Slice", [_i(1), _i(_NO_END), _i(1), _i(0)], {}, False),
        (OPENVINO, "Slice", [_i(0), _i(2**31 - 1), _i(1), _i(0)], {}, False),
        ("", "Slice", [_i(0), _i(_NO_END), _i(0), _i(1)], {}, True),
        ("", "Slice", [_i(0), _i(_NO_END)], {}, True),
        ("", "Slice", [], {"starts": [0], "ends": [_NO_END], "axes": [0]}, True),
        ("", "Slice", [], {"starts": [0], "ends": [4], "axes": [0]}, False),
    ],
)
def test_a_slice_without_an_end_is_a_view_of_any_size(
    domain: str, type: str, more: list[Array], attributes: dict[str, Any], is_view: bool
) -> None:
    op = find(domain, type)
    assert op is not None
    assert op.view is not None
    arrays = [None, *more]
    case = ViewCase(
        [_OPEN, *(array.shape for array in more)], ["i64"] * len(arrays), _OPEN, "i64", arrays.__getitem__,
        attributes, 0, domain != OPENVINO,
    )  # fmt: skip
    view = op.view(case)
    assert (view is not None and not view.when) is is_view
