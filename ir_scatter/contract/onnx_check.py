"""Writes a contract as an ONNX model: the inputs in its conditions, and one boolean output per condition.

    position in 0..15        output "position in 0..15": ReduceMin (position) >= 0 and ...

Inputs without elements satisfy conditions on their elements.
"""

from collections.abc import Mapping
from typing import Any

from ir_scatter.analysis.symbolic.linear import Linear, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.proofs import leaves
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import input_of, simplified
from ir_scatter.contract.check import different
from ir_scatter.contract.result import Contract
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Bounds

_OPSET, _IR_VERSION = 18, 8
_ENDS = -(2**58), 2**58
"""Elements beyond these numbers are replaced by them, so that sums of several fit into i64."""
_OPEN = {SymbolKind.LEAST, SymbolKind.GREATEST}


class _Builder:
    """Collects the nodes of the ONNX model; every value except inputs is an i64 scalar."""

    def __init__(self) -> None:
        from onnx import helper

        self.helper = helper
        self.nodes: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.types: dict[str, ElementType] = {}
        self._constants: dict[tuple[int, ...], str] = {}
        self.initializers: list[Any] = []

    def node(self, type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"value_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(type, inputs, [name], **attributes))
        return name

    def constant(self, *numbers: int, is_scalar: bool = True) -> str:
        key = (*numbers, -1 if is_scalar else -2)
        if key not in self._constants:
            from onnx import TensorProto

            name = f"constant_{len(self._constants)}"
            shape = [] if is_scalar else [len(numbers)]
            tensor = self.helper.make_tensor(name, TensorProto.INT64, shape, list(numbers))
            self.initializers.append(tensor)
            self._constants[key] = name
        return self._constants[key]

    def input(self, symbol: Symbol, walker: Walker) -> str:
        value = _input(symbol, walker)
        name = walker.name(value)
        if name not in self.inputs:
            declared = walker.inputs[value]
            type, shape = declared.element_type, declared.shape
            if type is None or not type.onnx_number:
                raise UsageError(f"{name} is of a type that ONNX does not have")
            self.types[name] = type
            dims = None if shape is None else [
                (dim.symbol or f"{name}_{axis}") if isinstance(dim, Bounds) else dim
                for axis, dim in enumerate(shape)
            ]  # fmt: skip
            self.inputs[name] = self.helper.make_tensor_value_info(name, type.onnx_number, dims)
        return name

    def flat(self, symbol: Symbol, walker: Walker) -> str:
        """Return the elements of a symbol's tensor, or of the column of it, as a 1-D tensor of i64."""
        elements = self._whole(symbol, walker)
        if symbol.axis >= 0:
            elements = self.node("Gather", [elements, self.constant(symbol.axis)], axis=-1)
        return self.node("Reshape", [elements, self.constant(-1, is_scalar=False)])

    def _whole(self, symbol: Symbol, walker: Walker) -> str:
        """Return an input as i64, clipped to `_ENDS`."""
        from onnx import TensorProto

        name, type = self.input(symbol, walker), self.types[walker.name(_input(symbol, walker))]
        if type.kind == "float":
            wide = self.node("Cast", [name], to=TensorProto.DOUBLE)
            ends = [self.node("Cast", [self.constant(end)], to=TensorProto.DOUBLE) for end in _ENDS]
            return self.node("Cast", [self.node("Clip", [wide, *ends])], to=TensorProto.INT64)
        if type.name == "u64":
            name = self.node(
                "Min", [name, self.node("Cast", [self.constant(_ENDS[1])], to=TensorProto.UINT64)]
            )
        wide = self.node("Cast", [name], to=TensorProto.INT64)
        return self.node("Clip", [wide, *[self.constant(end) for end in _ENDS]]) if type.bits > 32 else wide

    def symbol(self, symbol: Symbol, walker: Walker) -> str:
        if symbol.dividend is not None:
            return self._quotient(symbol, walker)
        if symbol.kind is SymbolKind.SIZE:
            shape = self.node("Shape", [self.input(symbol, walker)])
            return self.node("Gather", [shape, self.constant(symbol.axis)], axis=0)
        if symbol.kind is SymbolKind.COUNT:
            positions = self.node("NonZero", [self.input(symbol, walker)])
            return self.node("Gather", [self.node("Shape", [positions]), self.constant(1)], axis=0)
        # an element is added, so that nothing is reduced over no elements: `expression` ignores it then
        elements = self.flat(symbol, walker)
        first = self.node("Slice", [elements, *[self.constant(n, is_scalar=False) for n in (0, 1)]])
        is_empty = self.node("Equal", [self.node("Size", [first]), self.constant(0)])
        filler = self.node("Where", [
            self.node("Reshape", [is_empty, self.constant(1, is_scalar=False)]),
            self.constant(0, is_scalar=False),
            self.node("Reshape", [
                self.node("ReduceSum", [first], keepdims=0), self.constant(1, is_scalar=False)
            ]),
        ])  # fmt: skip
        joined = self.node("Concat", [elements, filler], axis=0)
        reduce = "ReduceMin" if symbol.kind is SymbolKind.LEAST else "ReduceMax"
        return self.node(reduce, [joined], keepdims=0)

    def _quotient(self, symbol: Symbol, walker: Walker) -> str:
        assert symbol.dividend is not None
        dividend, divisor = self.expression(symbol.dividend, walker), self.constant(symbol.divisor)
        if symbol.truncates:
            return self.node("Div", [dividend, divisor])
        rest = self.node("Mod", [dividend, divisor], fmod=0)
        return self.node("Div", [self.node("Sub", [dividend, rest]), divisor])

    def expression(self, expression: Linear, walker: Walker) -> str:
        total = self.constant(expression.constant)
        for monomial, coefficient in sorted(expression.terms, key=lambda term: str(term[1])):
            term = self.constant(coefficient)
            for symbol in monomial:
                term = self.node("Mul", [term, self.symbol(symbol, walker)])
            total = self.node("Add", [total, term])
        return total

    def holds(self, condition: Linear, walker: Walker) -> str:
        result = self.node("GreaterOrEqual", [self.expression(condition, walker), self.constant(0)])
        for symbol in leaves(condition):
            if symbol.kind in _OPEN and self.types[walker.name(_input(symbol, walker))].kind == "float":
                result = self.node("And", [result, self._is_finite(symbol, walker)])
        for symbol in leaves(condition):
            if symbol.kind in _OPEN:
                size = self.node("Size", [self.input(symbol, walker)])
                result = self.node("Or", [result, self.node("Equal", [size, self.constant(0)])])
        return result

    def _is_finite(self, symbol: Symbol, walker: Walker) -> str:
        """Return whether no element of an input is NaN or infinite."""
        from onnx import TensorProto

        wide = self.node("Cast", [self.input(symbol, walker)], to=TensorProto.FLOAT)
        wrong = self.node("Or", [self.node("IsNaN", [wide]), self.node("IsInf", [wide])])
        count = self.node("ReduceSum", [self.node("Cast", [wrong], to=TensorProto.INT64)], keepdims=0)
        return self.node("Equal", [count, self.constant(0)])


def _input(symbol: Symbol, walker: Walker) -> Value:
    value = input_of(symbol, walker)
    assert value is not None
    return value


def onnx_model(contract: Contract) -> Any:
    """Return an `onnx.ModelProto` with a boolean output for each condition, named like the condition.

    Raises:
        UsageError: there are no conditions on inputs, or an input has a type that ONNX does not have.
    """
    from onnx import TensorProto, helper

    builder, outputs = _Builder(), dict[str, Any]()
    for requirement in different(contract.requirements):
        name = requirement.text
        if name in outputs:
            continue
        result = builder.holds(simplified(requirement.condition, requirement.walker), requirement.walker)
        builder.nodes.append(helper.make_node("Identity", [result], [name]))
        outputs[name] = helper.make_tensor_value_info(name, TensorProto.BOOL, [])
    if not outputs:
        raise UsageError(
            f"{contract.path}: its inputs need not satisfy anything, so there is no check to write"
        )
    graph = helper.make_graph(
        builder.nodes, "contract", [*builder.inputs.values()], [*outputs.values()], builder.initializers
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="ir_scatter")


def outcomes(model: Any, feeds: Mapping[str, Any]) -> dict[str, bool]:
    """Run a check model with ONNX's reference implementation; return the outcome of each condition."""
    from onnx.reference import ReferenceEvaluator

    names = [output.name for output in model.graph.output]
    inputs = {each.name: feeds[each.name] for each in model.graph.input}
    return dict(zip(names, map(bool, ReferenceEvaluator(model).run(None, inputs)), strict=True))
