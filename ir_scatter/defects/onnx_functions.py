"""Defects with model-local functions of ONNX, which OpenVINO does not inline."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ir_scatter.analysis.reachability import UseKind, reachability_of
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.model import ONNX, Function, Graph, Model, Node
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, meets
from ir_scatter.ops.lookup import scatter_types

_OPERATOR_DOMAINS = frozenset({"", "com.microsoft", "org.openvinotoolkit", "mmdeploy"})
"""Domains of operators that OpenVINO's frontend implements; it ignores functions with their names."""


class _Calls(NamedTuple):
    """The calls of local functions in a model.

    Attributes:
        bodies: the called functions, by their graphs.
        main: the main graph, and its bodies that contain scatter nodes.
        nodes: (node, function) for each call in the main graph and its bodies.
    """

    bodies: Mapping[Graph, Function]
    main: frozenset[Graph]
    nodes: Mapping[Node, Function]


@Defect(
    "DEV117",
    "local-functions-refused",
    ("openvino:CPU", "openvino:GPU", "openvino:fold"),
    Symptom.REFUSED,
    strikes=Stage.READ,
    probes=(
        Probe("elements", "ScatterElements-18", (4,), [2], (1,), 0, in_function=True),
        Probe("tuples", "ScatterND-16", (4,), [[2]], (1,), None, in_function=True),
    ),
    near=(Probe("inlined", "ScatterElements-18", (4,), [2], (1,), 0),),
    avoid="inline the functions",
    stays=True,
)
def local_functions_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's ONNX frontend has no conversion for calls of model-local functions.

    "No conversion rule found for operations: own.F": the whole model is refused, even if the call is in a
    branch that is not taken. A call is removed before if no node reads its outputs. If the function's domain
    is one of the frontend's own, the frontend ignores the function and computes its operator of that name, if
    it has one.
    """
    model = scatter.facts.model
    if scatter.node.domain != ONNX or model is None or not model.functions:
        return None
    calls = _calls_of(model)
    function = calls.bodies.get(scatter.node.graph)
    if function is not None:
        return meets(f"the node is in function {function.name}", [_has_no_operator(function)])
    if scatter.node.graph not in calls.main:
        return None  # in a function that is never called
    reachability = scatter.facts.result_of(reachability_of)
    for node, called in calls.nodes.items():
        if reachability is None or reachability.reach(node).uses != UseKind.UNREAD:
            return meets(f"{node.name} calls function {called.name}", [_has_no_operator(called)])
    return None


def _has_no_operator(function: Function) -> Ternary:
    domain = function.name.rpartition("::")[0]
    is_elsewhere = domain not in _OPERATOR_DOMAINS
    return Ternary(is_elsewhere or None, "OpenVINO has no operator of that name")


@lru_cache(1)
def _calls_of(model: Model) -> _Calls:
    calls = dict(_called_in(model.graph, model))
    pending, bodies = [*calls.values()], dict[Graph, Function]()
    called = set[str]()
    while pending:
        function = pending.pop()
        if function.name in called:
            continue
        called.add(function.name)
        for graph in (function.definition, *function.instances):
            bodies[graph] = function
            bodies |= {node.graph: function for node in graph.walk(scatter_types(ONNX))}
            pending += [callee for _, callee in _called_in(graph, model)]
    main = frozenset({model.graph, *(node.graph for node in model.graph.walk(scatter_types(ONNX)))})
    return _Calls(bodies, main, calls)


def _called_in(graph: Graph, model: Model) -> Iterator[tuple[Node, Function]]:
    """Yield the nodes of a graph and its bodies that call a function of the model."""
    functions = {function.name: function for function in model.functions}
    for node in graph.walk():
        key = f"{node.domain}::{node.type}" if node.domain else node.type
        callees = [
            function for name, function in functions.items() if name == key or name.startswith(f"{key}:")
        ]
        yield from ((node, callee) for callee in callees[:1])
