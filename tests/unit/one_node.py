"""A case of an operator as a model of one node."""

from pathlib import Path

import numpy as np

from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.model import ONNX
from ir_scatter.formats.base import IR, ONNX_FORMAT, OneInput, OneNode
from ir_scatter.ops.spec import Role
from tests.formats.ir_files import write_one
from tests.unit.case import Case


def write(case: Case, folder: Path, *, is_constant: bool = False) -> Path:
    """Write a model; its axis is a constant, and so is everything else on request."""
    spec, attributes, inputs = case.spec, dict(case.attributes), list[OneInput | None]()
    known = {
        Role.DATA: (case.data, case.element_type), Role.UPDATES: (case.updates, case.element_type),
        Role.INDICES: (case.indices, case.index_type), Role.AXIS: (np.array(case.axis), case.index_type),
    }  # fmt: skip
    for port in spec.ports:
        array, type = known[port.role]
        fixed = is_constant or port.role is Role.AXIS
        if array is not None:
            type = from_dtype(array.dtype) or type  # a broken case may have another one
        inputs.append(None if array is None else OneInput(port.role.value, type, array, is_constant=fixed))
    if spec.axis is not None and spec.axis.attribute is not None:
        attributes[spec.axis.attribute] = case.axis
    node = OneNode(spec.key.type, spec.opsets[-1], attributes, inputs, case.element_type, case.data.shape)
    return write_one(ONNX_FORMAT if spec.key.domain == ONNX else IR, node, folder)
