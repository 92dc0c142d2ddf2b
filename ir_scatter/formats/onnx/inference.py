"""Types and shapes that the file does not say, or says wrongly."""

from collections.abc import Mapping
from math import prod

import onnx
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Shape
from ir_scatter.formats.onnx.attributes import Bindings
from ir_scatter.formats.onnx.child import InferenceBudget
from ir_scatter.formats.onnx.copy import Copier
from ir_scatter.formats.onnx.definitions import Definitions
from ir_scatter.formats.onnx.index import GraphIndex, graphs_of, sorted_positions
from ir_scatter.formats.onnx.scope import NOTHING, Inferred
from ir_scatter.formats.onnx.tensors import SEEN_BY_INFERENCE
from ir_scatter.formats.onnx.types import text, write_type

_IR_VERSION = 10
"""Of what is inferred: initializers need not be inputs, functions may have overloads."""


class Inference:
    """Infers the graphs of one model.

    Attributes:
        is_wanted: False if nobody will ask for a type.
        count: how many were inferred, or were to be.
        cut_short: of how many of them not all was looked at, because it would have taken too long.
    """

    def __init__(self, ir_version: int, *, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self._ir_version = ir_version
        self.count = self.cut_short = 0
        self._budget = InferenceBudget()

    def main_graph(
        self,
        index: GraphIndex,
        opsets: Mapping[str, int],
        definitions: Definitions,
        input_shapes: Mapping[str, Shape],
    ) -> Inferred:
        """Infer the main graph and the bodies in it.

        Args:
            index: the graph.
            opsets: the versions by domain.
            definitions: the functions of the model.
            input_shapes: shapes of inputs that replace the file's.
        """
        if not self.is_wanted:
            return NOTHING
        model = ModelProto()
        try:
            Copier(self._ir_version).fill(model.graph, index)
            for value_info in model.graph.input:
                _override(value_info, input_shapes)
            return self._run(model, index, opsets, definitions)
        except Exception:
            # Names that are not UTF-8, more than protobuf can hold: the stored types remain.
            return NOTHING

    def instance(
        self,
        index: GraphIndex,
        opsets: Mapping[str, int],
        definitions: Definitions,
        arguments: Mapping[str, Value | None],
        bindings: Bindings,
    ) -> Inferred:
        """Infer one use of a function.

        Args:
            index: its definition.
            opsets: its versions by domain.
            definitions: the functions of the model.
            arguments: its inputs as the call gives them.
            bindings: its attributes as the call gives them.
        """
        if not self.is_wanted:
            return NOTHING
        model = ModelProto()
        try:
            given = {name: value for name, value in arguments.items() if value is not None}
            constants = _small_constants(given)
            Copier(self._ir_version, bindings, constants).fill(model.graph, index)
            del model.graph.input[:]
            model.graph.initializer.extend(constants.values())
            for name, value in given.items():
                if name not in constants:
                    _write_input(model.graph.input.add(name=name), value)
            return self._run(model, index, opsets, definitions)
        except Exception:
            # As above.
            return NOTHING

    def _run(
        self,
        model: ModelProto,
        index: GraphIndex,
        opsets: Mapping[str, int],
        definitions: Definitions,
    ) -> Inferred:
        model.ir_version = _IR_VERSION
        domains = set().union(*(graph.domains for graph in index.all_graphs())) - {"ai.onnx"}
        for domain in sorted({*opsets, *domains}, key=repr):
            model.opset_import.add(domain=domain, version=opsets.get(domain, 1))
        left_out = definitions.left_out
        model.functions.extend(definitions.needed_by(index))
        result, is_late = self._budget.infer(model)
        self.count += 1
        self.cut_short += is_late or definitions.left_out > left_out
        return NOTHING if result is None else _read_back(result.graph, index)


def _override(value_info: ValueInfoProto, input_shapes: Mapping[str, Shape]) -> None:
    name, number = text(value_info.name), value_info.type.tensor_type.elem_type
    if number and name in input_shapes:
        write_type(value_info.type, number, input_shapes[name])


def _small_constants(given: Mapping[str, Value]) -> dict[str, TensorProto]:
    """Return the arguments that inference may see the contents of."""
    found = {}
    for name, value in given.items():
        constant = value.constant
        if constant is None or prod(constant.shape) > SEEN_BY_INFERENCE:
            continue
        array = constant.load()
        if array is not None:
            found[name] = onnx.numpy_helper.from_array(array, name)
    return found


def _write_input(target: ValueInfoProto, value: Value) -> None:
    if value.element_type is not None:
        write_type(target.type, value.element_type.onnx_number, value.shape)


def _read_back(graph: GraphProto, index: GraphIndex) -> Inferred:
    """Collect what inference wrote into a graph and into the bodies of its nodes."""
    types: dict[str, TypeProto] = {}
    for group in (graph.input, graph.output, graph.value_info):
        types.update((known.name, known.type) for known in group if known.HasField("type"))
    bodies = {}
    for copied, position in enumerate(sorted_positions(index) if index.bodies else ()):
        inside = index.bodies.get(position, {})
        for attribute in graph.node[copied].attribute if inside else ():
            for name, body in graphs_of(attribute):
                if name in inside:
                    bodies[position, name] = _read_back(body, inside[name])
    return Inferred(types, bodies)
