"""Traces values upstream: proves that a value is all zeros, or that it consists of model inputs.

Inputs of bodies and functions are traced to the values that they receive in all iterations and calls
(`Inflows`).
"""

from collections.abc import Callable
from typing import TypeAlias

from ir_scatter.analysis.constants import MAX_NODES, Facts
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, find

Inflows: TypeAlias = Callable[[Value], list[Value] | None]
"""A function that returns the values that a body input receives: [] for an input of the model, None if
unknown.
"""

_MOST_READ = 1 << 20
"""Limit of elements of a constant that are read; more would cost too much for one note."""


def _row(value: Value) -> tuple[Node, GeneralOp] | None:
    node = None if value.constant is not None else value.producer
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return None if node is None or op is None else (node, op)


def no_inflows(_: Value) -> list[Value] | None:
    """Return [] for an input: `Inflows` for the main graph, whose inputs are those of the model."""
    return []


def is_all_zeros(facts: Facts, value: Value, inflows: Inflows = no_inflows) -> bool:
    """Return whether all elements are proven zero: they come from zero constants and zero fills only."""
    pending, visited = [value], {value}
    while pending:
        current = pending.pop()
        sources = [] if _is_zero_fill(facts, current) else _moved_sources(current, inflows)
        if sources is None or len(visited) > MAX_NODES:
            return False
        pending += [source for source in sources if source not in visited]
        visited.update(sources)
    return True


def _is_zero_fill(facts: Facts, value: Value) -> bool:
    if value.constant is not None:
        return _holds_zeros(facts, value)
    producer = _row(value)
    if producer is None or not producer[1].fills:
        return False
    fill = Attributes(producer[0].attributes).value("value", 0)
    return not bool((fill != 0).any()) if hasattr(fill, "any") else fill == 0


def _moved_sources(value: Value, inflows: Inflows) -> list[Value] | None:
    """Return the values whose elements a value consists of, None if it also has other elements."""
    if value.constant is not None:
        return None
    producer = _row(value)
    if producer is None:
        return inflows(value) or None
    node, op = producer
    source = node.inputs[0].value if node.inputs and op.moves == (0,) and not op.fills else None
    return None if source is None else [source]


def _holds_zeros(facts: Facts, value: Value) -> bool:
    count = element_count(value.shape)
    array = None if count is None or count > _MOST_READ else facts.array(value)
    return array is not None and array.size > 0 and not bool((array != 0).any())


def comes_from_inputs(facts: Facts, value: Value, inflows: Inflows = no_inflows) -> bool:
    """Return whether equal elements of model inputs give equal elements of a value.

    This is proven through moves of elements, concatenation, and arithmetic with single numbers, as they treat
    all elements alike:

        ids + 1, Reshape (ids), Concat (ids, more_ids)      yes
        TopK (ids), NonZero (mask)                          no: the operator computes new elements
        values that a loop computes for its next iteration  no, for the same reason
        ids + [[0], [100]]                                  no: a constant makes equal elements different
    """
    pending, visited, has_input = [value], {value}, False
    while pending:
        current = pending.pop()
        if current.is_input or (current.constant is None and current.producer is None):
            sources = inflows(current)
            has_input = has_input or sources == []
        else:
            sources = _uniform_sources(facts, current)
        if sources is None or len(visited) > MAX_NODES:
            return False
        for source in sources:
            if source not in visited:
                visited.add(source)
                pending.append(source)
    return has_input


def _uniform_sources(facts: Facts, value: Value) -> list[Value] | None:
    """Return the inputs whose elements a value moves, or changes all in the same way.

    None if it also has other elements.
    """
    producer = _row(value)
    if producer is None:
        return None
    node, op = producer
    if op.is_elementwise or (op.is_pointwise and op.moves != (0,)):
        return [source for source in _values(node) if source is not None and not _is_number(facts, source)]
    if op.moves == ():
        return None
    values, ports = _values(node), op.moved_inputs(len(node.inputs))
    return [source for number in ports if number < len(values) and (source := values[number]) is not None]


def _values(node: Node) -> list[Value | None]:
    return [port.value for port in node.inputs]


def _is_number(facts: Facts, value: Value) -> bool:
    """Return whether a value is a single number that depends on constants or shapes only."""
    if element_count(facts.shape(value)) != 1:
        return False
    if facts.array(value) is not None:
        return True
    producer = _row(value)
    while producer is not None and producer[1].moves == (0,) and producer[0].inputs:
        source = producer[0].inputs[0].value
        if source is None:
            break
        producer = _row(source)
    return producer is not None and producer[1].reads_shapes_only
