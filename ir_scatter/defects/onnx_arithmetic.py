"""Defects: reductions and element types for which onnxruntime has no kernel."""

from collections.abc import Sequence

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.model import ONNX, Node
from ir_scatter.core.shapes import element_count
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, has_elements, meets
from ir_scatter.defects.element_types import are_there, element_type_is, type_name
from ir_scatter.defects.shared_memory import is_output, readers
from ir_scatter.ops.general import find
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import Layout, Reduction, Role

_READS = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.ATTRIBUTES, Fact.TYPES, Fact.SHAPES})
_HALVES, _UNORDERED = ("f16", "bf16"), ("bf16", "boolean")
_NOT_CACHED = ("f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "string")
_TO_F32 = "cast to f32 before the node and back after it"


def _probes(words: Sequence[str], types: Sequence[str]) -> tuple[Probe, ...]:
    def of(word: str, type: str) -> tuple[Probe, Probe]:
        written = {"reduction": word}
        return (
            Probe(
                f"elements-{word}-{type}", "ScatterElements-18", (1,), (1,), (1,), 0, type, attributes=written
            ),
            Probe(
                f"tuples-{word}-{type}", "ScatterND-18", (1,), (1, 1), (1,), None, type, attributes=written
            ),
        )

    return tuple(probe for word in words for type in types for probe in of(word, type))


def _cache(type: str) -> Probe:
    return Probe(type, "TensorScatter-24", (2, 4, 3), [1, 0], (2, 1, 3), -2, type)


def _met(scatter: ScatterNode, reductions: Sequence[Reduction], *types: str) -> Meeting | None:
    if scatter.node.domain != ONNX or scatter.reduction not in reductions:
        return None
    updates = scatter.updates
    if updates is None or element_count(updates.shape) == 0:
        return None  # without updates there is nothing to reduce
    reason = f"the reduction is {scatter.attribute('reduction')} of {' or '.join(types)}"
    conditions = [element_type_is(scatter, *types), has_elements(scatter), are_there(updates)]
    if type_name(scatter.data) == "f16":
        conditions.append(_is_computed_in_f16(scatter))
    return meets(reason, conditions, Role.DATA)


def _is_computed_in_f16(scatter: ScatterNode) -> Ternary:
    """Return whether onnxruntime computes an f16 node in f16; otherwise in f32, between two casts.

        i = Reshape (fed, shape)         # some input comes from a node of the same graph,
        y = ScatterND (x, i, new)        # no output of the graph, and f16 only from and to nodes
        z = Abs (y)                      # that are computed in f32 too: y is computed in f32

    Measured on 1.32.0. Nodes that move elements (Reshape, Gather, Transpose, Cast, scatter nodes) and nodes
    with bodies are computed in f16; for any other node it is unknown.
    """
    assert scatter.data is not None
    node, graph, facts = scatter.node, scatter.node.graph, scatter.facts
    sources = [port.value for port in node.inputs if port.value is not None]
    edges = [
        value
        for value in sources
        if value.producer is not None and value.producer.graph is graph and facts.array(value) is None
    ]
    producers = [value.producer for value in edges if facts.element_type(value) == scatter.data.element_type]
    consumers = [reader for value in node.outputs for reader in readers(graph).get(value, ())]
    neighbours = [*filter(None, producers), *consumers]
    is_kept = not edges or any(is_output(value, graph) for value in node.outputs)
    is_kept = is_kept or any(
        neighbour.graph is not graph or _stays_in_f16(neighbour) for neighbour in neighbours
    )
    return Ternary(True if is_kept else None, "onnxruntime does not compute the node in f32")


def _stays_in_f16(node: Node) -> bool:
    """Return whether onnxruntime surely has an f16 kernel for a node, as it has for data movement."""
    op = find(node.domain, node.type)
    is_scatter = find_scatter(node.domain, node.type, node.opset) is not None
    return is_scatter or bool(node.bodies) or (op is not None and op.moves != ())


@Defect(
    "DEV401",
    "arithmetic-of-halves-refused",
    ("onnxruntime",),
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=_probes(("add", "mul"), _HALVES),
    near=_probes(("add",), ("f32",)),
    avoid=_TO_F32,
)
def arithmetic_of_halves_refused(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime does not implement add and mul reductions for f16 and bf16: the run is refused."""
    return _met(scatter, (Reduction.SUM, Reduction.PROD), *_HALVES)


@Defect(
    "DEV402",
    "order-of-types-refused",
    ("onnxruntime",),
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=(*_probes(("max", "min"), _UNORDERED), *_probes(("max",), ("f16",))[1:]),
    near=(*_probes(("max",), ("f32",)), *_probes(("max",), ("f16",))[:1]),
    avoid=_TO_F32,
)
def order_of_types_refused(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime does not implement max and min reductions for bf16 and bool, nor for f16 in ScatterND."""
    more = ("f16",) if scatter.spec.layout is Layout.TUPLES else ()
    return _met(scatter, (Reduction.MAX, Reduction.MIN), *_UNORDERED, *more)


@Defect(
    "DEV403",
    "complex-refused",
    ("onnxruntime",),
    Symptom.REFUSED,
    strikes=Stage.LOAD,
    probes=(
        Probe("complex64", "ScatterElements-18", (3,), (1,), (1,), 0, "complex64"),
        Probe("complex128", "ScatterND-18", (3,), (1, 1), (1,), None, "complex128"),
    ),
    near=(Probe("f64", "ScatterND-18", (3,), (1, 1), (1,), None, "f64"),),
    avoid="scatter real and imaginary parts separately",
    stays=True,
    remains="onnxruntime does not load a model with complex numbers, whatever its operators",
    reads=_READS,
)
def complex_refused(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime has no kernels for complex numbers, which the specification allows."""
    if scatter.node.domain != ONNX:
        return None
    return meets("data is complex", [element_type_is(scatter, "complex64", "complex128")], Role.DATA)


@Defect(
    "DEV404",
    "types-of-caches-refused",
    ("onnxruntime",),
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=tuple(map(_cache, _NOT_CACHED)),
    near=(_cache("f16"),),
    avoid="convert it to ScatterElements, or keep the cache in f16",
    reads=_READS,
)
def types_of_caches_refused(scatter: ScatterNode) -> Meeting | None:
    """Onnxruntime has no TensorScatter kernel for strings, floats of at most 8 bits, and 4-bit integers."""
    if scatter.spec.layout is not Layout.SEQUENCE:
        return None
    is_refused = element_type_is(scatter, *_NOT_CACHED)
    name = type_name(scatter.data)
    meeting = meets(f"the cache is {name or 'of a small type'}", [is_refused], Role.DATA)
    return meeting and meeting._replace(probes=(name,) if name else ())
