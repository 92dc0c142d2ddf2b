"""What is written for a Scan whose outputs come from replaced nodes.

onnxruntime runs a Scan only if it knows of every output of the body how many dimensions it has. It
sees that of a scatter node from its data; behind a Reshape to a computed shape it may see nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from onnx import ValueInfoProto

from ir_scatter.core.fragment import Patch
from ir_scatter.core.model import Graph, Model, Value
from ir_scatter.core.shapes import UNKNOWN_DIM
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import FunctionKey, GraphIndex, function_key
from ir_scatter.formats.onnx.places import Place
from ir_scatter.formats.onnx.types import DEFAULT_DOMAINS, tensor_message, write_type

_SCAN = "Scan"

_Names = set[str]
_Uses = Mapping[GraphIndex, Sequence[OnnxGraph]]


def keep_ranks(model: Model, places: Iterable[Place], patches: Iterable[Patch]) -> None:
    """Write how many dimensions an output of a Scan's body has, where a replaced node may hide it.

    A shape that the file has stays. Sizes are left open: they may be those of certain inputs alone.

    Args:
        model: as it was read.
        places: the graphs of the copy.
        patches: what was replaced.
    """
    assert isinstance(model.graph, OnnxGraph)
    mains: dict[FunctionKey | None, tuple[Graph, ...]] = {None: (model.graph,)}
    keys = dict.fromkeys(map(function_key, model.source.functions))
    mains |= {key: function.instances for key, function in zip(keys, model.functions, strict=True)}
    found = {key: _index_of(graphs[0]) for key, graphs in mains.items()}
    if not any(index.has_any(frozenset({_SCAN})) for index in found.values()):
        return
    hidden = _Hidden(found, filter(_is_hiding, patches))
    if not hidden.outputs:
        return
    uses = _by_index(graph for graphs in mains.values() for graph in graphs)
    for place in places:
        for name in hidden.outputs.get(place.index, ()):
            output = next(one for one in place.graph.output if one.name == name)
            _write_rank(output, [graph.find(name) for graph in uses[place.index]])


def _is_hiding(patch: Patch) -> bool:
    """Tell whether the shape of the result is anything but that of an input of the node."""
    result, graph = patch.fragment.result, patch.node.graph
    assert isinstance(graph, OnnxGraph)
    data = result.inputs[0] if result.inputs else None
    is_given = data is not None and patch.fragment.number_given(data) is not None
    known = graph.shared.operators.scatter | {patch.node.type}
    return not is_given or bool(result.domain) or result.type not in known


class _Hidden:
    """Follows from the replaced nodes to the outputs of bodies of Scans.

    Attributes:
        outputs: the names of those that are reached, by the body.
    """

    def __init__(self, graphs: Mapping[FunctionKey | None, GraphIndex], patches: Iterable[Patch]) -> None:
        self.outputs: dict[GraphIndex, list[str]] = {}
        self._positions: dict[GraphIndex, set[int]] = defaultdict(set)
        for patch in patches:
            self._positions[_index_of(patch.node.graph)].add(patch.node.handle)
        self._functions: set[FunctionKey | None] = set()
        known = -1
        while len(self._functions) > known:  # a function may call others that come later
            known = len(self._functions)
            self._functions |= {
                key
                for key, index in graphs.items()
                if not self._follow(index, set()).isdisjoint(index.outputs)
            }

    def _follow(self, index: GraphIndex, around: Collection[str]) -> _Names:
        """Return the names of a graph that are reached, those around it included."""
        names = set(around)
        for position, node in enumerate(index.nodes):
            is_reached = position in self._positions.get(index, ()) or not names.isdisjoint(node.input)
            is_reached |= bool(self._functions) and function_key(node) in self._functions
            for body in index.bodies.get(position, {}).values():
                inner = self._follow(body, names | body.inputs.keys() if is_reached else names)
                outputs = [name for name in body.outputs if name in inner]
                if outputs and node.op_type == _SCAN and node.domain in DEFAULT_DOMAINS:
                    self.outputs[body] = outputs
                is_reached |= bool(outputs)
            if is_reached:
                names.update(filter(None, node.output))
        return names


def _by_index(graphs: Iterable[Graph]) -> _Uses:
    """Return every graph, and every body in it, by what the file says."""
    found: dict[GraphIndex, list[OnnxGraph]] = defaultdict(list)
    waiting = list(graphs)
    while waiting:
        graph = waiting.pop()
        assert isinstance(graph, OnnxGraph)
        found[graph.index].append(graph)
        waiting += [body for at in graph.index.bodies for body in graph.bodies_of(graph.node(at)).values()]
    return found


def _write_rank(output: ValueInfoProto, values: Sequence[Value | None]) -> None:
    """Write of an output what all uses of its graph agree on, if the file says nothing."""
    ranks = {None if value is None or value.shape is None else len(value.shape) for value in values}
    rank = ranks.pop() if len(ranks) == 1 else None
    if rank is None:
        return
    message = tensor_message(output.type)
    if message is None:
        types = {value.element_type for value in values if value is not None}
        known = types.pop() if len(types) == 1 and output.type.WhichOneof("value") is None else None
        write_type(output.type, None if known is None else known.onnx_number, (UNKNOWN_DIM,) * rank)
    elif not message.HasField("shape"):
        message.shape.SetInParent()
        for _ in range(rank):
            message.shape.dim.add()


def _index_of(graph: Graph) -> GraphIndex:
    assert isinstance(graph, OnnxGraph)
    return graph.index
