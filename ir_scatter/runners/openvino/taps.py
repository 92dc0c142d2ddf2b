"""Adds the inputs and outputs of tapped nodes to an OpenVINO model as model outputs, in the child process.

A tap is a request for the inputs and the output of one node (`runners.base.Tap`). A value in a body is
exported level by level, as an output of the surrounding If, Loop or TensorIterator.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.process import Failure, shortened
from ir_scatter.core.shapes import static
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import Tap
from ir_scatter.runners.engine import IN_BODY, Loaded, TappedSize, TapRun, Value
from ir_scatter.runners.openvino.inputs import partial_shape, to_array, type_name

_CONSTANT = "Constant"
_LOOP = "Loop"
_RESULT = "Result"
_BODIES_OF = {
    "If": {"then_body": "get_then_body", "else_body": "get_else_body"},
    _LOOP: {"body": "get_function"},
    "TensorIterator": {"body": "get_body"},
}
_BODY_NAMES = {"then_branch": "then_body", "else_branch": "else_body", "body": "body"}
"""OpenVINO's names of the bodies, by ONNX name."""

_BODY_IN_SCOPE = re.compile(rf":({'|'.join((*_BODY_NAMES, *_BODY_NAMES.values()))})/")


_NUMBERED_NAME = re.compile(r"(.*)~(\d{6})", re.DOTALL)
"""Pattern of the names that `_name_after` returns: stem and number."""


class Owner(NamedTuple):
    """An If, Loop or TensorIterator, with the name of one of its bodies, such as "then_body"."""

    node: Any
    kind: str
    body: Any


class Place(NamedTuple):
    """A node, and the If and loop nodes around it, outermost first."""

    node: Any
    owners: tuple[Owner, ...]


class Places:
    """The nodes of a model by scope, and by the names of their first outputs."""

    def __init__(self, model: Any) -> None:
        self._by_scope: dict[str, Place] = {}
        self._by_output: dict[str, list[Place]] = {}
        for scope, place in walk(model):
            self._by_scope.setdefault(scope, place)
            if place.node.get_type_name() != _RESULT and place.node.get_output_size():
                for name in place.node.output(0).get_names():
                    self._by_output.setdefault(name, []).append(place)

    def find(self, scope: str, output: str, *, is_any_type: bool = False) -> "Place | str":
        """Return the place of a tapped node, or the reason why there is none.

        The node must be a scatter node unless `is_any_type` is set.
        """
        if not output:
            places = [self._by_scope[scope]] if scope in self._by_scope else []
            description = "of this name"
        else:
            kinds = [_BODY_NAMES.get(kind, kind) for kind in _BODY_IN_SCOPE.findall(scope)]
            same = self._by_output.get(output, ())
            places = [place for place in same if [owner.kind for owner in place.owners] == kinds]
            description = f"for the output {output!r}"
        if len(places) != 1:
            return f"OpenVINO has {f'{len(places)} nodes' if places else 'no node'} {description}"
        type = places[0].node.get_type_name()
        return (
            places[0] if is_any_type or type in scatter_types(OPENVINO) else f"OpenVINO converts it to {type}"
        )


def walk(model: Any, scope: str = "", owners: tuple[Owner, ...] = ()) -> Iterator[tuple[str, Place]]:
    """Yield every node of a model with its scope, including nodes in bodies."""
    for node in model.get_ops():
        name = scope + node.get_friendly_name()
        yield name, Place(node, owners)
        for kind, body in bodies_of(node):
            yield from walk(body, f"{name}:{kind}/", (*owners, Owner(node, kind, body)))


def bodies_of(node: Any) -> "list[tuple[str, Any]]":
    """Return the bodies of a node as (name, model) pairs."""
    methods = _BODIES_OF.get(node.get_type_name(), {})
    # Earlier releases do not expose the bodies of an If.
    return [(kind, getattr(node, method)()) for kind, method in methods.items() if hasattr(node, method)]


def add_taps(model: Any, taps: Sequence[Tap], feeds: Sequence[str], *, bodies: bool) -> Loaded:
    """Return a copy of a model with additional outputs: the inputs and outputs of tapped nodes.

    The key of a tapped value is the number of its model output, or "constant" and a number. `feeds` are the
    names in the feed, one for each Parameter.
    """
    model = model.clone()
    tapper, places = _Tapper(model, feeds), Places(model)
    for tap in taps:
        place = places.find(tap.scope, tap.output, is_any_type=tap.outputs_only)
        if isinstance(place, Place) and place.owners and not bodies:
            place = IN_BODY
        tapper.loaded.taps.append(
            place if isinstance(place, str) else tapper.tap(place, has_inputs=not tap.outputs_only)
        )
    if tapper.added:
        from openvino import opset8

        # add_outputs would keep the order of nodes, which is wrong for nodes that loops now read
        model.add_results([opset8.result(output) for output in tapper.added])
    model.validate_nodes_and_infer_types()
    for key, size in tapper.loaded.sizes.items():
        shape = static(partial_shape(model.output(int(key)).get_partial_shape()))
        tapper.loaded.sizes[key] = size._replace(shape=shape)
    return tapper.loaded


def shape_model(model: Any, numbers: Sequence[int]) -> Any:
    """Return a model whose outputs are the shapes of some outputs of another model."""
    import openvino
    from openvino import opset8

    results = model.get_results()
    shapes = [opset8.result(opset8.shape_of(results[number].input_value(0)).output(0)) for number in numbers]
    return openvino.Model(shapes, model.get_parameters())


class _Tapper:
    def __init__(self, model: Any, feeds: Sequence[str]) -> None:
        self.loaded = Loaded(model)
        self._model = model
        self._feeds = feeds
        self.added: list[Any] = []
        self._exported: dict[tuple[Any, ...], Any] = {}
        self._numbers = {
            _key(result.input_value(0)): number
            for number, result in reversed([*enumerate(model.get_results())])
        }

    def tap(self, place: Place, *, has_inputs: bool = True) -> list[TapRun] | str:
        if any(_never_runs(owner.node) for owner in place.owners):
            return []  # the CPU plugin crashes on stacked outputs of a loop without iterations
        try:
            sources = place.node.input_values() if has_inputs else ()
            inputs = [self._input(place, source) for source in sources]
            output = self._value(place, place.node.output(0))
            markers: list[Value] = [
                (self._output(self._marker(place.owners[: depth + 1])), _loops(place.owners[:depth]))
                for depth, owner in enumerate(place.owners)
                if owner.kind != "body"
            ]
            counts: list[Value] = [
                (self._output(self._count(place.owners[: depth + 1])), _loops(place.owners[:depth]))
                for depth, owner in enumerate(place.owners)
                if owner.kind == "body"
            ]
        except Failure as failure:
            return failure.message
        except AttributeError as error:  # an older release
            return f"this release cannot pass it out of the body: {shortened(str(error))}"
        return [TapRun([*inputs], output, markers, counts)]

    def _input(self, place: Place, source: Any) -> Value:
        """Return the value of a node's input. An input that depends only on constants is folded here.

        The GPU plugin computes wrong numbers for an output that it folds, if it is f64 or in a branch.
        """
        array = _fold(source)
        return self._value(place, source) if array is None else self._constant(array)

    def _constant(self, array: Any) -> Value:
        key = f"constant {len(self.loaded.constants)}"
        self.loaded.constants[key] = array
        return key, 0

    def _value(self, place: Place, source: Any) -> Value:
        """Return a tapped value; constants and model inputs need no output."""
        node = source.get_node()
        if node.get_type_name() == _CONSTANT:
            return self._constant(to_array(node.get_tensor_view(), copy=False))
        if node.get_type_name() == "Parameter" and not place.owners:
            return self._feeds[self._model.get_parameter_index(node)], None
        loops = _loops(place.owners)
        key = self._output(self._export(place.owners, source))
        self.loaded.sizes[key] = TappedSize(type_name(source.get_element_type()), None, loops)
        return key, loops

    def _output(self, output: Any) -> str:
        """Add a model output for an output of a node, unless there is one; return its number."""
        key = _key(output)
        if key not in self._numbers:
            self._numbers[key] = len(self._model.get_results()) + len(self.added)
            self.added.append(output)
        return str(self._numbers[key])

    def _marker(self, owners: tuple[Owner, ...]) -> Any:
        """Return a main-graph output that is 1 if a branch was executed, else 0.

        Each body computes it as 1 - (whether the other branch is executed). A body without a computation
        would lose all outputs but the first on the GPU plugin.
        """
        from openvino import opset8

        key = ("marker", *_keys(owners))
        if key not in self._exported:
            branch, one, parameters, results = owners[-1], _constant(np.ones([1], np.int32)), [], []
            truth = opset8.convert(branch.node.input_value(0), "i32")
            truth = opset8.reshape(truth, _constant(np.ones([1], np.int64)), special_zero=False)
            other = opset8.subtract(one, truth) if branch.kind == "then_body" else truth
            for _, body in bodies_of(branch.node):
                parameters.append(opset8.parameter([1], np.int32))
                body.add_parameters(parameters[-1:])
                results.append(opset8.result(opset8.subtract(one, parameters[-1])))
                _add_result(body, results[-1])
            branch.node.set_input(other.output(0), *parameters)
            self._exported[key] = self._export(owners[:-1], branch.node.set_output(*results))
        return self._exported[key]

    def _count(self, owners: tuple[Owner, ...]) -> Any:
        """Return a main-graph output with the number of iterations of the innermost loop.

        A stacked output may be longer: OpenVINO allocates the maximum number of iterations and does not
        initialise unused parts. So the loop carries a counter, which starts at 0.
        """
        from openvino import opset8

        key = ("count", *_keys(owners))
        if key not in self._exported:
            owner = owners[-1]
            old = opset8.parameter([1], np.int64)
            new = opset8.result(opset8.add(old, _constant(np.ones([1], np.int64))))
            owner.body.add_parameters([old])
            _add_result(owner.body, new)
            owner.node.set_merged_input(old, _constant(np.zeros([1], np.int64)), new.output(0))
            total = owner.node.get_iter_value(new.output(0), -1)
            self._exported[key] = self._export(owners[:-1], total)
        return self._exported[key]

    def _export(self, owners: tuple[Owner, ...], source: Any) -> Any:
        """Pass a value through all surrounding bodies to the main graph; return the output there."""
        from openvino import opset8

        if not owners:
            return source
        key = (*_key(source), *_keys(owners))
        if key not in self._exported:
            owner, outside = owners[-1], owners[:-1]
            if owner.kind == "body":  # stack the values of all iterations on a new first axis
                row = opset8.unsqueeze(source, _constant(np.zeros([1], np.int64))).output(0)
                result = opset8.result(row)
                _add_result(owner.body, result)
                stacked = owner.node.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0)
                self._exported[key] = self._export(outside, stacked)
            else:
                placeholder = _placeholder_like(source, is_in_loop=_loops(outside) > 0)
                self._exported[key] = self._out_of_branch(outside, owner, source, placeholder)
        return self._exported[key]

    def _out_of_branch(self, outside: tuple[Owner, ...], branch: Owner, value: Any, placeholder: Any) -> Any:
        """Add an If output with a value of one branch; it is `placeholder` if the other one is executed."""
        from openvino import opset8

        results = []
        for kind, body in bodies_of(branch.node):
            results.append(opset8.result(value if kind == branch.kind else placeholder))
            _add_result(body, results[-1])
        return self._export(outside, branch.node.set_output(*results))


def _add_result(body: Any, result: Any) -> None:
    """Add a Result to a body, with a name that sorts after the names of all other Results.

    The GPU plugin assigns the outputs of an If to those of its body in alphabetical order.
    """
    last = max((other.get_friendly_name() for other in body.get_results()), default="")
    result.set_friendly_name(_name_after(last))
    body.add_results([result])


def _name_after(name: str) -> str:
    """Return the next name in alphabetical order: "result" -> "result~000000" -> "result~000001"."""
    counted = _NUMBERED_NAME.fullmatch(name)
    stem, number = (counted[1], int(counted[2]) + 1) if counted else (name, 0)
    return f"{stem}~{number:06}"


def _fold(source: Any) -> Any:
    """Return the array of a value that depends only on constants; None for other values and for Constants."""
    import openvino
    from openvino import opset8
    from openvino.passes import ConstantFolding, Manager

    pending, visited = [source.get_node()], set[str]()
    if pending[0].get_type_name() == _CONSTANT:
        return None
    while pending:
        node = pending.pop()
        if node.get_name() in visited or node.get_type_name() == _CONSTANT:
            continue
        visited.add(node.get_name())
        if not node.get_input_size() or node.get_type_name() in _BODIES_OF:
            return None
        pending += [value.get_node() for value in node.input_values()]
    model = openvino.Model([opset8.result(source)], []).clone()
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    folded = model.get_results()[0].input_value(0).get_node()
    return to_array(folded.get_tensor_view()) if folded.get_type_name() == _CONSTANT else None


def _never_runs(node: Any) -> bool:
    """Return whether a node is a loop whose trip count is the constant 0."""
    return bool(node.get_type_name() == _LOOP and node.get_num_iterations() == 0)


def _placeholder_like(source: Any, *, is_in_loop: bool) -> Any:
    """Return a zero placeholder with the type and rank of a value.

    In a loop it also has the shape of the value, because loops stack it.
    """
    import openvino

    shape = source.get_partial_shape()
    dims = [0] if shape.rank.is_dynamic else [0] * len(shape)
    if is_in_loop:
        if shape.is_dynamic:
            raise Failure("unsupported", f"in a branch inside a loop, and the shape {shape} is not static")
        dims = [dim.get_length() for dim in shape]
    tensor = openvino.Tensor(source.get_element_type(), openvino.Shape(dims))
    if tensor.get_byte_size() and type_name(source.get_element_type()) != "string":
        tensor.data.reshape(-1).view(np.uint8)[:] = 0
    return openvino.op.Constant(tensor).output(0)


def _constant(array: Any) -> Any:
    from openvino import opset8

    return opset8.constant(array).output(0)


def _loops(owners: Sequence[Owner]) -> int:
    return sum(owner.kind == "body" for owner in owners)


def _key(output: Any) -> tuple[str, int]:
    """Return a key that identifies an output within its model: (name of the node, number)."""
    return output.get_node().get_name(), output.get_index()


def _keys(owners: Sequence[Owner]) -> list[str]:
    return [f"{owner.node.get_name()}:{owner.kind}" for owner in owners]
