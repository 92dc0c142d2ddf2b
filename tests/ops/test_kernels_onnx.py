"""The kernels against the test cases that the onnx package holds for its own backends."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from ir_scatter import evaluate

_ROLES = {"past_cache": "data", "update": "updates", "write_indices": "indices"}
_NAMES = [
    "scatter_without_axis", "scatter_with_axis", "scatter_elements_without_axis",
    "scatter_elements_with_axis", "scatter_elements_with_negative_indices",
    "scatter_elements_with_duplicate_indices", "scatter_elements_with_reduction_mul",
    "scatter_elements_with_reduction_max", "scatter_elements_with_reduction_min", "scatternd",
    "scatternd_add", "scatternd_multiply", "scatternd_max", "scatternd_min",
    "scatternd_max_with_element_indices", "scatternd_min_with_element_indices", "tensorscatter",
    "tensorscatter_circular", "tensorscatter_3d",
]  # fmt: skip


@cache
def backend_cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return {case.name: case for case in load_model_tests(kind="node") if "scatter" in case.name}


def row_of(type: str, opset: int) -> str:
    from onnx import defs

    return f"{type}-{defs.get_schema(type, opset).since_version}"


def test_every_case_of_the_package_is_listed() -> None:
    assert {f"test_{name}" for name in _NAMES} <= set(backend_cases())
    assert len(backend_cases()) >= len(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_a_backend_case(name: str) -> None:
    from onnx import helper

    case = backend_cases()[f"test_{name}"]
    node = case.model.graph.node[0]
    attributes = {row.name: helper.get_attribute_value(row) for row in node.attribute}
    attributes = {
        key: value.decode() if isinstance(value, bytes) else value for key, value in attributes.items()
    }
    operator = row_of(node.op_type, case.model.opset_import[0].version)
    ports = (
        ["past_cache", "update", "write_indices"]
        if "Tensor" in node.op_type
        else ["data", "indices", "updates"]
    )
    (inputs, outputs), *_ = case.data_sets
    given = {_ROLES.get(port, port): array for port, array in zip(ports, inputs, strict=False)}
    found = evaluate(operator, **given, **attributes)
    assert found.dtype == outputs[0].dtype
    assert np.array_equal(found, outputs[0])
