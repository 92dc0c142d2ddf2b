"""What values are made of: zeros alone, or inputs of the model as they are given."""

from ir_scatter.analysis.constants import MAX_NODES, Facts
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.ops.attributes import Attributes
from ir_scatter.ops.general import GeneralOp, find

_MOST_READ = 1 << 20
"""At most this many elements of a constant are read: more would be read for one note."""


def _row(value: Value) -> tuple[Node, GeneralOp] | None:
    node = None if value.constant is not None else value.producer
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return None if node is None or op is None else (node, op)


def is_all_zeros(facts: Facts, value: Value) -> bool:
    """Tell whether a value certainly holds zeros alone: a constant, a fill, or what is only moved of them."""
    for _ in range(MAX_NODES):
        if value.constant is not None:
            return _holds_zeros(facts, value)
        producer = _row(value)
        if producer is None:
            return False
        node, op = producer
        if op.fills:
            fill = Attributes(node.attributes).value("value", 0)
            return not bool((fill != 0).any()) if hasattr(fill, "any") else fill == 0
        source = node.inputs[0].value if node.inputs and op.moves == (0,) else None
        if source is None:
            return False
        value = source
    return False


def _holds_zeros(facts: Facts, value: Value) -> bool:
    count = element_count(value.shape)
    array = None if count is None or count > _MOST_READ else facts.array(value)
    return array is not None and array.size > 0 and not bool((array != 0).any())


def is_fed(facts: Facts, value: Value) -> bool:
    """Tell whether a value of the main graph is made of inputs of the model, as they are given.

    They may be moved, put side by side, or computed with single numbers: what is done to all elements alike
    makes no two of them different. What operators choose, as TopK and NonZero do, is not as it is given, nor
    is what constants tell apart, such as the offset of each row.
    """
    pending, seen, has_input = [value], {value}, False
    while pending:
        current = pending.pop()
        if current.is_input or (current.constant is None and current.producer is None):
            has_input = True
            continue
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
