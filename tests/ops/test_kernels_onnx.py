"""The kernels against the test cases that the onnx package holds for its own backends."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from onnx import defs, helper

from ir_scatter import evaluate

PORTS = {"past_cache": "data", "update": "updates", "write_indices": "indices"}


def test_backend_cases() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("scatter", "scatterelements", "scatternd", "tensorscatter"):
            import_module(f"onnx.backend.test.case.node.{name}")
    every: Any = import_module("onnx.backend.test.case.node")._NodeTestCases
    found = [case for case in every if "scatter" in case.name]
    assert len(found) >= 19
    for case in found:
        node = case.model.graph.node[0]
        schema = defs.get_schema(node.op_type, case.model.opset_import[0].version)
        attributes = {row.name: helper.get_attribute_value(row) for row in node.attribute}
        words = {name: value.decode() for name, value in attributes.items() if isinstance(value, bytes)}
        ports = [PORTS.get(port.name, port.name) for port in schema.inputs]
        (inputs, outputs), *_ = case.data_sets
        given = dict(zip(ports, inputs, strict=False))
        operator: Any = f"{node.op_type}-{schema.since_version}"
        result = evaluate(operator, **given, **attributes | words)
        assert result.dtype == outputs[0].dtype, case.name
        assert np.array_equal(result, outputs[0]), case.name
