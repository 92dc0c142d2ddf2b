"""Python values as ONNX messages."""

import ml_dtypes
import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, numpy_helper

from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.fragment import NewConstant
from ir_scatter.core.model import Value
from ir_scatter.formats.onnx.tensors import make_attribute, make_tensor
from tests.formats.onnx_patches import Sketch, patched, read, table


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5)])
def test_constants_of_every_type(name: str, shape: tuple[int, ...]) -> None:
    type = ELEMENT_TYPES[name]
    numpy_type = dtype(type)
    if numpy_type is None or type.onnx_number is None:
        return
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2
    is_text = type.kind == "string"
    array = np.asarray(numbers.astype(str) if is_text else numbers, numpy_type)
    label, source = "constant", table()
    value = Value(label, type, shape, constant=NewConstant(label, type, array))
    sketch = Sketch()
    sketch.add("scatter", "ScatterElements", *sketch.given, value)
    written, _ = patched(read(source), "ScatterElements", sketch.fragment())
    tensor = ModelProto.FromString(written).graph.node[0].attribute[0].t
    assert (tensor.data_type, tuple(tensor.dims)) == (type.onnx_number, shape)
    assert tensor.HasField("raw_data") is not is_text
    found = numpy_helper.to_array(tensor)
    assert found.dtype == array.dtype
    assert (found.tolist() == array.tolist()) if is_text else (found.tobytes() == array.tobytes())


def test_arrays_in_any_layout() -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    assert numpy_helper.to_array(make_tensor(array)).tolist() == array.tolist()


@pytest.mark.parametrize(
    ("value", "type", "field", "expected"),
    [
        (3, AttributeProto.INT, "i", 3),
        (True, AttributeProto.INT, "i", 1),
        (np.int32(3), AttributeProto.INT, "i", 3),
        (0.5, AttributeProto.FLOAT, "f", 0.5),
        (np.float32(0.5), AttributeProto.FLOAT, "f", 0.5),
        ("größer", AttributeProto.STRING, "s", "größer".encode()),
        (b"\xff", AttributeProto.STRING, "s", b"\xff"),
        ([1, 2], AttributeProto.INTS, "ints", [1, 2]),
        ((), AttributeProto.INTS, "ints", []),
        ([1, 0.5], AttributeProto.FLOATS, "floats", [1, 0.5]),
        (["a", "b"], AttributeProto.STRINGS, "strings", [b"a", b"b"]),
    ],
)
def test_attributes(value: object, type: int, field: str, expected: object) -> None:
    attribute = make_attribute("a", value)
    assert (attribute.name, attribute.type) == ("a", type)
    found = getattr(attribute, field)
    assert (list(found) if isinstance(expected, list) else found) == expected


def test_an_array_is_a_tensor() -> None:
    attribute = make_attribute("a", np.array([1.5], ml_dtypes.bfloat16))
    assert (attribute.type, attribute.t.data_type) == (AttributeProto.TENSOR, TensorProto.BFLOAT16)
    assert attribute.t.raw_data == b"\xc0\x3f"


@pytest.mark.parametrize("value", [None, [1, "a"], {}, np.array([1], "datetime64[s]")])
def test_what_no_attribute_is_made_of(value: object) -> None:
    with pytest.raises(TypeError, match="expected"):
        make_attribute("a", value)


def test_a_constant_is_of_the_type_that_it_says() -> None:
    with pytest.raises(TypeError, match="an array of float64, expected one of i64"):
        make_tensor(np.array([1.5]), ELEMENT_TYPES["i64"])
