"""Facts about values of a model: shapes, element types, and elements that are computed from constants."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import Shape, agree, element_count, is_static, narrow, static
from ir_scatter.core.tensors import FEW, Constant, few_numbers
from ir_scatter.ops.general import find_analysed
from ir_scatter.ops.general_bounds import Interval
from ir_scatter.ops.lookup import find, is_scatter, opset_number
from ir_scatter.ops.spec import Role

if TYPE_CHECKING:
    from ir_scatter.analysis.propagation import Bodies, Propagation
    from ir_scatter.core.arrays import Array

T = TypeVar("T")

MAX_CONSTANT_ELEMENTS = 1 << 26
"""Default limit of elements of a constant that is read: 512 MB of int64."""

MAX_COMPUTED = 1 << 23
"""Limit of elements per model that are computed from constants: computations upstream of indices are
small."""

MAX_NODES = 10_000
"""Limit of values that are visited upstream of one value; exporters write about a dozen upstream of
indices."""


class Facts:
    """Facts about the values of one model, each computed once.

    Shapes and types stored in the file are used, unless the file contradicts itself. Without `trusts_stored`,
    all shapes and types are inferred from the inputs of the model instead.

    Attributes:
        given: the user's conditions on the inputs of the model, such as "position in 0..15".
        max_elements: constants with more elements are not read.
        skipped: constants that were not read because of this limit.
        given_up: values that were not computed, as that would need too many nodes or elements.
        bounds: caches of `ranges.bounds_of`; the one for True assumes that all indices are legal.
    """

    def __init__(
        self,
        max_elements: int = MAX_CONSTANT_ELEMENTS,
        model: Model | None = None,
        *,
        trusts_stored: bool = True,
        propagates: bool = False,
        bodies: "Bodies" = "always",
        given: Sequence[str] = (),
    ) -> None:
        self.max_elements = max_elements
        self.model = model
        self.given = tuple(given)
        self._propagating: Facts | None = None
        self._propagation: Propagation | None = None
        if model is not None and (propagates or not trusts_stored or model.contradictions):
            from ir_scatter.analysis import propagation  # imported here, as only few models need it

            self._propagation = propagation.Propagation(
                model, self.array, trusts_stored=trusts_stored, bodies=bodies
            )
        self.skipped: set[Constant] = set()
        self.given_up: set[Value] = set()
        self._results: dict[Callable[[Facts], object], object] = {}
        self._budget = MAX_COMPUTED
        self._shapes: dict[Value, Shape] = {}
        self._arrays: dict[Value, Array | None] = {}
        self.bounds: dict[bool, dict[Value, tuple[Interval, ...] | None]] = {False: {}, True: {}}

    def shape(self, value: Value) -> Shape:
        """Return the shape of a value: the stored one if static, else the one inferred from upstream."""
        if self._propagation is not None and value not in self._shapes:
            return self._propagation.info(value).shape
        path: list[Value] = []
        while value not in self._shapes:
            source = shape_source(value)
            self._shapes[value] = value.shape  # ends a cycle
            if source is None:
                break
            path.append(value)
            value = source
        shape = self._shapes[value]
        for value in reversed(path):
            shape = narrow(shape, value.shape) if agree(shape, value.shape) else shape
            self._shapes[value] = shape
        return shape

    def element_type(self, value: Value) -> ElementType | None:
        if self._propagation is None or value in self._shapes:
            return value.element_type
        return self._propagation.info(value).element_type

    def is_vague(self, value: Value) -> bool:
        """Return whether a runtime may infer a more precise shape than this library did."""
        info = None if self._propagation is None else self._propagation.info(value)
        return info is not None and (info.vague or info.shape is None)

    def is_dynamic(self, value: Value) -> bool | None:
        """Return whether a shape depends on the inputs of a run; None if unknown.

        A stored dynamic dimension may still follow from constants, or this library may lack the shape rule.
        """
        if is_static(self.shape(value)):
            return False
        facts = self.with_propagation()
        if not facts.propagates or is_static(facts.shape(value)):
            return False if facts.propagates else None
        return None if facts.is_vague(value) else True

    @property
    def propagates(self) -> bool:
        """Whether shapes and types are inferred from the inputs of the model, not only read from the file."""
        return self._propagation is not None

    def with_propagation(self) -> "Facts":
        """Return facts with inferred shapes, even if the file does not contradict itself."""
        if self.propagates:
            return self
        self._propagating = self._propagating or Facts(
            self.max_elements, self.model, propagates=True, given=self.given
        )
        return self._propagating

    def result_of(self, analysis: "Callable[[Facts], T]") -> T:
        """Return the result of an analysis of this model; each analysis runs once."""
        if analysis not in self._results:
            self._results[analysis] = analysis(self)
        return cast("T", self._results[analysis])

    def trust(self, value: Value) -> None:
        """Use the stored shape and type of a value, without inference."""
        self._shapes[value] = value.shape
        if self._propagation is not None:
            self._propagation.trust(value)

    def array(self, value: Value) -> "Array | None":
        """Return the elements of a value that is computed from constants only, else None; do not modify them.

        It evaluates general operators on constants: Convert, Unsqueeze, Concat, ShapeOf of a static shape,
        and others.
        """
        if value not in self._arrays and not follow(
            value, self._arrays, self._sources, self._elements, MAX_NODES
        ):
            self.given_up.add(value)
        return self._arrays[value]

    def forget(self, value: Value) -> None:
        """Drop the cached elements and bounds of a value, after more of its producers became known."""
        self._arrays.pop(value, None)
        for cache in self.bounds.values():
            cache.pop(value, None)

    def whole_numbers(self, value: Value) -> "Array | None":
        """Return the elements of an integer value that is computed from constants, else None."""
        array = self.array(value)
        if array is None:
            return None
        from ir_scatter.core.arrays import whole_numbers

        return whole_numbers(array)

    def _sources(self, value: Value) -> list[Value]:
        """Return the inputs that must be computed before a value; [] if there is nothing to compute."""
        node = None if value.constant is not None else value.producer
        op = None if node is None else find_analysed(node.domain, node.type)
        if node is None or op is None or op.reads_shapes_only or node.bodies:
            return []
        sources = [port.value for port in node.inputs if port.value is not None]
        has_input = any(
            source.is_input or (source.constant is None and source.producer is None) for source in sources
        )
        return [] if has_input else sources

    def _elements(self, value: Value) -> "Array | None":
        """Return the elements of a constant, or of a value whose inputs are in the cache."""
        constant = value.constant
        if constant is None:
            return self._compute(value)
        if (element_count(constant.shape) or 0) > self.max_elements:
            self.skipped.add(constant)
            return None
        return constant.load()

    def _compute(self, value: Value) -> "Array | None":
        """Run the kernel of a value's producer on cached inputs; None if that is not possible."""
        node = value.producer
        op = None if node is None else find_analysed(node.domain, node.type)
        if node is None or op is None or node.bodies:
            return None
        fetch = self._placeholder if op.reads_shapes_only else self._arrays.get
        inputs = [None if port.value is None else fetch(port.value) for port in node.inputs]
        if any(array is None and port.is_present for array, port in zip(inputs, node.inputs, strict=True)):
            return None
        from ir_scatter.ops import general_kernels

        limit = min(self.max_elements, self._budget)
        try:
            outputs = general_kernels.compute(
                op,
                node.domain,
                inputs,
                node.attributes,
                opset=opset_number(node),
                output_count=len(node.outputs),
                element_limit=limit,
            )
        except general_kernels.OutputTooLarge:
            self.given_up.add(value)
            return None
        except general_kernels.UnsupportedCase:
            return None
        self._budget -= sum(array.size for array in outputs)
        return outputs[value.output] if value.output < len(outputs) else None

    def _placeholder(self, source: Value) -> "Array | None":
        """Return an array of a value's shape that takes no memory, for operators that read shapes only."""
        import numpy

        shape = static(self.shape(source))
        try:
            return None if shape is None else numpy.broadcast_to(numpy.zeros((), numpy.bool_), shape)
        except ValueError:  # NumPy cannot represent the shape
            return None

    def numbers(self, value: Value) -> list[int] | None:
        """Return the integers of a short stored constant, without importing NumPy.

        None for a long constant, for one in another encoding, and for computed values; see `array` for these.
        """
        constant = value.constant
        if constant is None or constant.element_type is None or self.max_elements < FEW:
            return None
        return few_numbers(constant.element_type, constant.shape, constant.view)

    def origin(self, value: Value) -> Constant | None:
        """Return the constant at the end of the chain of first inputs upstream of a value, else None."""
        for _ in range(MAX_NODES):
            sources = self._sources(value)
            if not sources:
                break
            value = sources[0]
        return value.constant


def shape_source(value: Value) -> Value | None:
    """Return the input of a value's producer whose shape the value has, None if there is none.

    A static stored shape needs no such input, except at scatter nodes: their specification gives the shape.
    """
    type = value.producer_type
    if value.constant is not None or (type and not is_scatter(type) and is_static(value.shape)):
        return None
    node = value.producer
    if node is None:
        return None
    lookup = find(node.domain, node.type, node.opset)
    if lookup is not None:
        index = lookup.spec.port_index(Role.DATA) if lookup.spec else None
    else:
        op = None if is_static(value.shape) else find_analysed(node.domain, node.type)
        index = 0 if op is not None and op.keeps_shape else None
    return None if index is None or index >= len(node.inputs) else node.inputs[index].value
