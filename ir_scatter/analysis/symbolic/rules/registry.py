"""The rules of all operators by name, and the facts of a node's output by the rule of its operator.

A rule has the name of the operator's row in `ops/general.py`: OpenVINO's name, or ONNX's if only ONNX has it.
Without a rule, elements are unknown, and dimensions come from the file or are new symbols.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query
from ir_scatter.analysis.symbolic.linear import ONE, Linear
from ir_scatter.analysis.symbolic.numbers import TensorNumbers, between
from ir_scatter.analysis.symbolic.rules.shared import rank_of

Rule: TypeAlias = Callable[[NodeCase], Generator[Query, Any, Any]]


DIMS: dict[str, Rule] = {}


NUMBERS: dict[str, Rule] = {}


def operator_name(case: NodeCase) -> str:
    openvino, _, onnx = case.op.type.partition("/")
    return openvino or onnx


def rule_for_dims(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        DIMS.update(dict.fromkeys(names, rule))
        return rule

    return register


def rule_for_numbers(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        NUMBERS.update(dict.fromkeys(names, rule))
        return rule

    return register


def dims_of_output(case: NodeCase) -> Generator[Query, Any, Dims]:
    """Return the symbolic dimensions of a node's output; None if no rule gives them."""
    rule = DIMS.get(operator_name(case))
    if rule is not None:
        numbers: Dims = yield from rule(case)
        return numbers
    if case.op.keeps_shape:
        return (yield from case.dims(0))
    if case.op.is_elementwise and case.op.aligns_last(case.node.attributes):
        return (yield from broadcast_dims(case))
    return None


def numbers_of_output(case: NodeCase) -> Generator[Query, Any, TensorNumbers | None]:
    """Return the facts about the elements of a node's output; None if no rule gives them."""
    rule = NUMBERS.get(operator_name(case))
    if case.op.is_elementwise and not case.op.aligns_last(case.node.attributes):
        return None
    if rule is not None:
        numbers: TensorNumbers | None = yield from rule(case)
        return numbers
    if case.op.makes == "boolean":
        dims = yield from case.output_dims()
        return TensorNumbers(between(0, 1), rank=rank_of(dims))
    return None


def broadcast_dims(case: NodeCase) -> Generator[Query, Any, Dims]:
    shapes: list[tuple[Linear, ...]] = []
    for port in range(len(case.node.inputs)):
        if case.value(port) is not None:
            shape = yield from case.dims(port)
            if shape is None:
                return None
            shapes.append(shape)
    if not shapes:
        return None
    rank = max(len(shape) for shape in shapes)
    output = case.node.outputs[case.output]
    result = []
    for axis in range(rank):
        sizes = {shape[axis - rank + len(shape)] for shape in shapes if axis >= rank - len(shape)} - {ONE}
        if len(sizes) <= 1:
            result.append(sizes.pop() if sizes else ONE)
            continue
        constants = [size for size in sizes if size.is_constant]
        result.append(constants[0] if constants else case.walker.size(output, axis))
    return tuple(result)
