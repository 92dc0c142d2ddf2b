"""What values are made of: zeros alone, or inputs of the model as they are given.

Inputs of bodies and functions are followed to what flows in (`Inflows`), over all iterations of a loop.
"""

from collections.abc import Callable
from typing import TypeAlias

from ir_scatter.analysis.constants import MAX_NODES, Facts
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, find

Inflows: TypeAlias = Callable[[Value], list[Value] | None]
"""Returns what flows into an input of a body, nothing for an input of the model; None if it is not known."""

_MOST_READ = 1 << 20
"""At most this many elements of a constant are read: more would be read for one note."""


def _row(value: Value) -> tuple[Node, GeneralOp] | None:
    node = None if value.constant is not None else value.producer
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return None if node is None or op is None else (node, op)


def of_main_graph(_: Value) -> list[Value] | None:
    """Return nothing: inputs of the main graph are those of the model."""
    return []


def is_all_zeros(facts: Facts, value: Value, inflows: Inflows = of_main_graph) -> bool:
    """Tell whether a value certainly holds zeros alone: a constant, a fill, or what is only moved of them."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        sources = [] if _is_zero_fill(facts, current) else _moved_of(current, inflows)
        if sources is None or len(seen) > MAX_NODES:
            return False
        pending += [source for source in sources if source not in seen]
        seen.update(sources)
    return True


def _is_zero_fill(facts: Facts, value: Value) -> bool:
    if value.constant is not None:
        return _holds_zeros(facts, value)
    producer = _row(value)
    if producer is None or not producer[1].fills:
        return False
    fill = Attributes(producer[0].attributes).value("value", 0)
    return not bool((fill != 0).any()) if hasattr(fill, "any") else fill == 0


def _moved_of(value: Value, inflows: Inflows) -> list[Value] | None:
    """Return the values that one is only moved of, None if it holds other numbers."""
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


def is_fed(facts: Facts, value: Value, inflows: Inflows = of_main_graph) -> bool:
    """Tell whether a value is made of inputs of the model, as they are given.

    What a loop computes and carries on is not as it is given.

    They may be moved, put side by side, or computed with single numbers: what is done to all elements alike
    makes no two of them different. What operators choose, as TopK and NonZero do, is not as it is given, nor
    is what constants tell apart, such as the offset of each row.
    """
    pending, seen, has_input = [value], {value}, False
    while pending:
        current = pending.pop()
        if current.is_input or (current.constant is None and current.producer is None):
            sources = inflows(current)
            has_input = has_input or sources == []
        else:
            sources = _alike(facts, current)
        if sources is None or len(seen) > MAX_NODES:
            return False
        for source in sources:
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return has_input


def _alike(facts: Facts, value: Value) -> list[Value] | None:
    """Return the values whose elements one holds, or computes with numbers; None if it holds others."""
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
    """Tell whether a value is one number that does not depend on inputs, or on their shapes alone."""
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
