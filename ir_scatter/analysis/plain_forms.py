"""Nodes that look like one that was seen before, recognized before their values are made."""

from dataclasses import dataclass
from functools import cache

from ir_scatter.analysis.scatter_node import Site
from ir_scatter.core.forms import Form, are_plain
from ir_scatter.core.model import OpKey
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Role

_WRITTEN = frozenset({Role.DATA, Role.INDICES, Role.UPDATES})


@dataclass(frozen=True, slots=True, eq=False)
class PlainForm:
    """What nodes have in common that cannot be told apart; one object for each form of a model.

    Attributes:
        size: what constant indices count on; None if they cannot be plain.
    """

    size: int | None


class PlainForms:
    """Knows nodes that differ in nothing that matters: in their names, and in plain indices.

    Plain are few constant indices that are in range, not negative and all different. An input of the
    model is nothing more than its type and shape. Any other indices take a closer look.
    """

    def __init__(self) -> None:
        self._known: dict[Form, PlainForm] = {}

    def find(self, site: Site) -> PlainForm | None:
        """Return the form of a node with plain indices; None for any other node."""
        spec, node = site.lookup.spec, site.node
        if spec is None:
            return None
        indices, spelled = _ports(spec.key)
        forms = node.graph.forms
        form = forms.of(node.handle, spelled)
        if form is None or len(form.inputs) <= indices:
            return None
        source = form.inputs[indices][0]
        known = self._known.get(form)
        if known is None:
            known = self._known[form] = PlainForm(_size(site) if source == "constant" else None)
        if source == "input":
            return known
        numbers = None if known.size is None else forms.numbers(node.handle, indices)
        return known if numbers and known.size is not None and are_plain(numbers, known.size) else None


def _size(site: Site) -> int | None:
    """Return what the indices of a site count on, None if there is no such number."""
    limits = site.limits or [None]
    return limits[0] if len(limits) == 1 else None


@cache
def _ports(key: OpKey) -> tuple[int, frozenset[int]]:
    """Return the input of the indices, and those whose numbers belong to the form: the axis."""
    ports = SPECS[key].ports
    spelled = frozenset(number for number, port in enumerate(ports) if port.role not in _WRITTEN)
    indices = SPECS[key].port_index(Role.INDICES)
    assert indices is not None
    return indices, spelled
