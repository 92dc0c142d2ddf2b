"""The table of element types against OpenVINO's and ONNX's own."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from ir_scatter.core.element_types import (
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
    NUMERIC,
    OPENVINO_TYPES,
    ElementType,
    dtype,
    from_element_type,
    from_onnx_number,
    from_precision,
    is_element_type,
    onnx_types,
)

_ASK = """
import json, openvino
names = [name for name in dir(openvino.Type) if isinstance(getattr(openvino.Type, name), openvino.Type)]
found = {}
for name in names:
    type = getattr(openvino.Type, name)
    found[type.get_type_name()] = [
        type.bitwidth, type.is_real(), type.is_integral_number(), type.is_signed(), type.is_static()
    ]
print(json.dumps(found))
"""


@pytest.mark.openvino
def test_against_openvino() -> None:
    pytest.importorskip("openvino")
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    known = {name for name, facts in answer.items() if facts[-1]}
    assert known == OPENVINO_TYPES
    # OpenVINO counts nf4 among the integers, though its 16 values stand for real numbers
    for name in known - {"string", "nf4"}:
        bits, is_real, is_integral, is_signed, _ = answer[name]
        row = ELEMENT_TYPES[name]
        assert row.bits == bits or name == "boolean"
        assert (row.kind == "float") == is_real
        assert (name in INTEGERS) == is_integral
        if is_integral:
            assert (row.kind == "signed") == is_signed


def test_against_onnx() -> None:
    numbers = dict(TensorProto.DataType.items())
    numbers.pop("UNDEFINED")
    found = {row.onnx_name: row.onnx_number for row in ELEMENT_TYPES.values() if row.onnx_name}
    assert found == {name.lower(): number for name, number in numbers.items()}


@pytest.mark.parametrize("row", ELEMENT_TYPES.values(), ids=lambda row: row.name)
def test_dtypes_are_those_of_onnx(row: ElementType) -> None:
    if row.onnx_number is None or row.kind == "string":
        return
    try:
        expected = onnx.helper.tensor_dtype_to_np_dtype(row.onnx_number)
    except KeyError:
        pytest.skip("this onnx has no dtype for it")
    found = dtype(row)
    assert found == expected


@pytest.mark.parametrize("row", ELEMENT_TYPES.values(), ids=lambda row: row.name)
def test_every_name_leads_to_the_row(row: ElementType) -> None:
    for text in (row.name, row.name.upper(), row.name.capitalize()):
        assert from_element_type(text) is row
    if row.ir_name is not None:
        for text in (row.ir_name, row.ir_name.lower()):
            assert from_precision(text) is row
    if row.onnx_number is not None:
        assert from_onnx_number(row.onnx_number) is row
    if row.onnx_name is not None:
        assert onnx_types(row.onnx_name) == {row.name}


def test_words_for_what_is_not_known() -> None:
    for word in ("dynamic", "undefined", "DYNAMIC"):
        assert is_element_type(word)
        assert from_element_type(word) is None
    assert is_element_type("f32")
    assert not any(map(is_element_type, ("float", "complex64", "unspecified", "")))
    for word in ("UNSPECIFIED", "", "FLOAT", "float32"):
        assert from_precision(word) is None
    for number in (0, -1, 99):
        assert from_onnx_number(number) is None


@pytest.mark.parametrize(
    ("name", "elements", "size"),
    [
        ("f32", 3, 12), ("f64", 0, 0), ("boolean", 5, 5), ("u4", 3, 2), ("u4", 4, 2), ("i4", 1, 1),
        ("u1", 8, 1), ("u1", 9, 2), ("nf4", 5, 3), ("u2", 5, 2), ("u3", 3, 2), ("u6", 5, 4),
        ("f4e2m1", 7, 4), ("complex64", 2, 16),
    ],
)  # fmt: skip
def test_bytes(name: str, elements: int, size: int) -> None:
    assert ELEMENT_TYPES[name].byte_size(elements) == size


def test_bits_are_those_of_the_dtype() -> None:
    for row in ELEMENT_TYPES.values():
        found = dtype(row)
        if found is not None and row.bits >= 8:
            assert found.itemsize * 8 == row.bits
    assert dtype(ELEMENT_TYPES["string"]) == np.dtype(object)
    assert dtype(ELEMENT_TYPES["nf4"]) is None


def test_groups() -> None:
    assert (
        NUMERIC
        == FLOATS | INTEGERS
        == ELEMENT_TYPES.keys() - {"boolean", "string", "complex64", "complex128"}
    )
