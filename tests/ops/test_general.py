"""The rows of general operators, against ONNX's own schemas; their shape rules, against its inference."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ir_scatter.core.model import ONNX, OPENVINO
from ir_scatter.ops.general import ROWS, Arithmetic, GeneralOp, constraints_of, find, output_shapes
from ir_scatter.ops.general_kernels import compute
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, same
from ir_scatter.ops.lookup import scatter_types

MOST_INPUTS: dict[str, int] = {}
for _schema in onnx.defs.get_all_schemas_with_history():
    MOST_INPUTS[_schema.name] = max(_schema.max_input, MOST_INPUTS.get(_schema.name, 0))
OF_ONNX = [row.type_in(ONNX) for row in ROWS if row.type_in(ONNX) and not row.domain]
OF_ONNXRUNTIME = (
    "Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh", "SimplifiedLayerNormalization",
)  # fmt: skip
MOST_INPUTS |= dict.fromkeys(OF_ONNXRUNTIME, 2)
OF_OPENVINO = [row.type_in(OPENVINO) for row in ROWS if row.type_in(OPENVINO)]


def test_an_operator_has_one_row() -> None:
    assert len(set(OF_ONNX)) == len(OF_ONNX)
    assert len({type.lower() for type in OF_OPENVINO}) == len(OF_OPENVINO)
    assert all(row.type_in(ONNX) or row.type_in(OPENVINO) for row in ROWS)


def test_operators_of_another_domain_are_found_there_alone() -> None:
    rows = [row for row in ROWS if row.domain]
    assert len({(row.domain, row.type) for row in rows}) == len(rows) > 50
    for row in rows:
        assert find(row.domain, row.type_in(row.domain)) is row
    assert find("com.example", "FusedMatMul") is None is find(ONNX, "FusedMatMul")
    assert find("com.microsoft", "MatMul") is None is find("com.microsoft", "ScatterND")


def test_onnx_rows_name_operators_and_inputs_that_exist() -> None:
    for type in OF_ONNX:
        assert max((one.port for one in constraints_of(ONNX, type)), default=-1) < MOST_INPUTS[type], type


def test_rows_are_found_as_their_dialect_writes_them() -> None:
    found = [find(OPENVINO, type.upper()) for type in OF_OPENVINO]
    assert [row and row.type_in(OPENVINO) for row in found] == OF_OPENVINO
    assert constraints_of(ONNX, "Gather") == constraints_of("ai.onnx", "Gather") != ()
    assert constraints_of(ONNX, "gather") == constraints_of("com.example", "Gather") == ()


MADE: dict[Arithmetic, Any] = {
    Arithmetic.SUM: lambda left, right: left + right,
    Arithmetic.DIFFERENCE: lambda left, right: left - right,
    Arithmetic.PRODUCT: lambda left, right: left * right,
    Arithmetic.NEGATION: lambda left: -left,
}


@pytest.mark.parametrize("domain", [ONNX, OPENVINO])
@pytest.mark.parametrize("row", [row for row in ROWS if row.arithmetic], ids=lambda row: row.type)
def test_rows_say_what_is_made_of_whole_numbers(row: GeneralOp, domain: str) -> None:
    if not row.type_in(domain):
        return
    numbers = [np.array([7, -7, 8, 5, 1]), np.array([2, 3, -3, 7, 1])]
    inputs = numbers[: 1 if row.shape is same else 2]
    (found,) = compute(row, domain, inputs, {}, opset=18)
    assert row.arithmetic is not None
    if row.arithmetic is Arithmetic.REMAINDER:
        assert ((found - numbers[0]) % numbers[1] == 0).all()
    elif row.arithmetic is Arithmetic.CHOICE:
        assert any((found == given).any() for given in inputs)
    else:
        assert found.tolist() == MADE[row.arithmetic](*inputs).tolist()


SHAPES: list[tuple[str, list[tuple[int, ...]], Mapping[str, Any]]] = [
    ("MatMul", [(2, 3, 4), (4, 5)], {}),
    ("MatMul", [(4,), (2, 4, 5)], {}),
    ("MatMul", [(7, 1, 3, 4), (2, 4, 5)], {}),
    ("MatMul", [(3, 4), (4,)], {}),
    ("Gemm", [(4, 3), (5, 4), (5,)], {"transA": 1, "transB": 1}),
    ("Conv", [(2, 6, 9, 8), (4, 3, 3, 2)], {"group": 2, "strides": [2, 3], "pads": [1, 0, 1, 2]}),
    ("Conv", [(2, 3, 9), (4, 3, 3)], {"dilations": [2]}),
    ("Conv", [(2, 3, 9), (4, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2]}),
    ("MaxPool", [(1, 2, 7, 9)], {"kernel_shape": [2, 3], "strides": [2, 2]}),
    ("MaxPool", [(1, 2, 7, 9)], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", [(1, 1, 2, 2)], {"kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", [(1, 2, 7)], {"kernel_shape": [3], "pads": [1, 1]}),
    ("GlobalMaxPool", [(2, 3, 4, 5)], {}),
    ("ArgMax", [(2, 3, 4)], {"axis": -2, "keepdims": 0}),
    ("ArgMin", [(2, 3, 4)], {"axis": 2}),
    ("Sigmoid", [(2, 3)], {}),
    ("Sum", [(2, 1, 3), (4, 1), (3,)], {}),
    ("LayerNormalization", [(2, 3), (3,)], {}),
]


@pytest.mark.parametrize(("type", "shapes", "attributes"), SHAPES)
def test_shapes_are_those_of_onnx(
    type: str, shapes: list[tuple[int, ...]], attributes: Mapping[str, Any]
) -> None:
    infos = {f"i{number}": shape for number, shape in enumerate(shapes)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in infos.items()]
    out = helper.make_tensor_value_info("out", TensorProto.UNDEFINED, None)
    graph = helper.make_graph(
        [helper.make_node(type, list(infos), ["out"], **attributes)], "g", inputs, [out]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type.tensor_type
    found = output_shapes(ONNX, type, ShapeCase(shapes, lambda port: None, attributes))
    assert found is not None
    assert found[0] == tuple(dim.dim_value for dim in inferred.shape.dim)


@pytest.mark.parametrize(
    ("domain", "type", "shapes", "numbers", "attributes", "expected"),
    [
        (ONNX, "ReduceMean", [(2, 3, 4), (1,)], {1: [1]}, {}, (2, 1, 4)),
        (OPENVINO, "ReduceMean", [(2, 3, 4), (2,)], {1: [0, -1]}, {"keep_dims": "false"}, (3,)),
        (OPENVINO, "ReduceMean", [(2, 3, 4), (1,)], {1: [2]}, {"keep_dims": "true"}, (2, 3, 1)),
        (ONNX, "ReduceMean", [(2, 3, 4), (1,)], {}, {}, None),
        (ONNX, "ReduceL2", [(2, 3)], {}, {"axes": [0], "keepdims": 0}, (3,)),
        (OPENVINO, "TopK", [(2, 9), (1,)], {1: [4]}, {"axis": "1"}, (2, 4)),
        (OPENVINO, "OneHot", [(2, 3), ()], {1: [7]}, {"axis": "0"}, (7, 2, 3)),
        (OPENVINO, "MatMul", [(4, 3), (5, 4)], {}, {"transpose_a": "true", "transpose_b": "true"}, (3, 5)),
        (OPENVINO, "GroupConvolution", [(1, 6, 9), (2, 5, 3, 4)], {},
         {"strides": "1", "pads_begin": "1", "pads_end": "0"}, (1, 10, 7)),
        (OPENVINO, "ScaledDotProductAttention", [(2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 7)], {}, {}, (2, 3, 4, 7)),
    ],
)  # fmt: skip
def test_shapes_with_numbers(
    domain: str,
    type: str,
    shapes: list[tuple[int, ...]],
    numbers: Mapping[int, list[int]],
    attributes: Mapping[str, str],
    expected: tuple[int, ...] | None,
) -> None:
    found = output_shapes(domain, type, ShapeCase(shapes, numbers.get, attributes))
    assert found is not None
    assert found[0] == expected


@pytest.mark.parametrize(
    ("type", "shapes", "pairs", "least"),
    [
        ("MatMul", [(2, 3), (4, 5)], [(3, 4)], []),
        ("Conv", [(1, 5, 9), (4, 3, 3)], [(5, 3)], []),
        ("Conv", [(1, 3, 2), (4, 3, 5)], [], [(2, 5)]),
        ("Conv", [(1, 3), (4, 3, 5)], [], []),
        ("Sum", [(2, 3), (2, 4)], [(3, 4)], []),
        ("Mystery", [(2, 3)], None, None),
    ],
)
def test_shapes_that_do_not_fit(
    type: str,
    shapes: list[tuple[int, ...]],
    pairs: list[tuple[int, int]] | None,
    least: list[tuple[int, int]] | None,
) -> None:
    case = ShapeCase(shapes, lambda port: None, {})
    if pairs is None:
        assert output_shapes(ONNX, type, case) is None
        return
    with pytest.raises(ShapesDiffer) as raised:
        output_shapes(ONNX, type, case)
    assert (raised.value.pairs, raised.value.least) == (pairs, least)


@pytest.mark.openvino
def test_openvino_has_the_operators() -> None:
    """One process must not import OpenVINO twice: the names are read in another."""
    pytest.importorskip("openvino")
    code = (
        "import importlib, json, pkgutil, openvino\n"
        "names = [m.name for m in pkgutil.iter_modules(openvino.__path__) if m.name.startswith('opset')]\n"
        "print(json.dumps([n for m in names for n in dir(importlib.import_module('openvino.' + m))]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=120)
    known = {name.replace("_", "").lower() for name in json.loads(done.stdout)}
    assert {type.lower() for type in OF_OPENVINO} - known == {"reverse", "rms", "xor"}  # RMS is internal
    scatters = {type.lower() for type in scatter_types(OPENVINO)}
    # SliceScatter is a Slice that writes: it has no indices
    assert {name for name in known if "scatter" in name} == scatters | {"slicescatter"}


def test_the_reference_evaluator_is_imported_by_its_first_kernel_only() -> None:
    code = (
        "import sys, numpy as np\n"
        "import ir_scatter.evaluate.model\n"
        "from ir_scatter.ops.general import find_computed\n"
        "from ir_scatter.ops.general_kernels import compute\n"
        "for type in ('Sigmoid', 'Softmax', 'LinearRegressor'):\n"
        "    x = np.ones((2, 3), np.float32)\n"
        "    attributes = {'coefficients': [1.0, 2.0, 3.0]} if type == 'LinearRegressor' else {}\n"
        "    compute(find_computed('', type), '', [x], attributes, opset=1 if attributes else 20)\n"
        "    print('onnx.reference' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=120)
    assert done.stdout.split() == [b"False", b"False", b"True"]
