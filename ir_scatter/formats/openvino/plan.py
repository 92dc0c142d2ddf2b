"""What a fragment comes to in an IR: layers and edges, before they have ids."""

from collections.abc import Mapping
from typing import NamedTuple

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode
from ir_scatter.core.model import Value


class Source(NamedTuple):
    """What feeds an input: an input of the replaced node, or a port of a new layer.

    Attributes:
        given: the number of the replaced node's input; None for a new layer.
        layer: the number of the new layer.
        port: its output port.
    """

    given: int | None
    layer: int = 0
    port: int = 0


class NewLayer(NamedTuple):
    """A layer to write, with its number among those of the fragment.

    Attributes:
        label: the end of its name.
        made: what it is made of.
        sources: what feeds it.
    """

    label: str
    made: NewNode | NewConstant
    sources: tuple[Source, ...]


class Plan(NamedTuple):
    """A fragment as layers: the new ones, and what feeds the one that keeps its place.

    Attributes:
        layers: producers before consumers, without the result.
        result: the node that takes the place of the replaced one.
        sources: what feeds it.
    """

    layers: tuple[NewLayer, ...]
    result: NewNode
    sources: tuple[Source, ...]


def make_plan(fragment: Fragment) -> Plan:
    """Put the constants of a fragment before the nodes that read them first, and number all.

    Raises:
        NotEditable: a new node leaves an input out, for which an IR has no form.
    """
    layers: list[NewLayer] = []
    places: dict[int, Source] = {}
    sources: tuple[Source, ...] = ()
    for new in fragment.news:
        for value in new.inputs:
            constant = None if value is None else value.constant
            if value is None or id(value) in places or fragment.number_given(value) is not None:
                continue
            if isinstance(constant, NewConstant):
                places[id(value)] = Source(None, len(layers), 0)
                layers.append(NewLayer(constant.label, constant, ()))
        sources = tuple(_source(fragment, value, places) for value in _present(new))
        if new is not fragment.result:
            places[id(new.output)] = Source(None, len(layers), len(sources))
            layers.append(NewLayer(new.label, new, sources))
    return Plan(tuple(layers), fragment.result, sources)


def _present(new: NewNode) -> list[Value]:
    found = [value for value in new.inputs if value is not None]
    if len(found) < len(new.inputs):
        raise NotEditable(f"the new {new.type} '{new.label}' leaves an input out, expected all of them")
    return found


def _source(fragment: Fragment, value: Value, places: Mapping[int, Source]) -> Source:
    number = fragment.number_given(value)
    return places[id(value)] if number is None else Source(number)
