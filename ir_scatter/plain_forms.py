"""Nodes that look like one that was seen before, recognized before their values are made."""

from collections.abc import Hashable
from functools import cache

from ir_scatter.forms import Form
from ir_scatter.model import OpKey
from ir_scatter.ops import SPECS
from ir_scatter.ops.spec import Role
from ir_scatter.site import Site, are_plain

_WRITTEN = frozenset({Role.DATA, Role.INDICES, Role.UPDATES})


class PlainForms:
    """Knows nodes that differ in nothing that matters: in their names, and in plain indices.

    Plain are few constant indices that are in range, not negative and all different. An input of the
    model is nothing more than its type and shape. Any other indices take a closer look.
    """

    def __init__(self) -> None:
        self._sizes: dict[Hashable, int | None] = {}

    def form_of(self, site: Site) -> Form | None:
        """Return the form of a node with plain indices; None for any other node."""
        spec, node = site.lookup.spec, site.node
        if spec is None:
            return None
        indices, spelled = _ports(spec.key)
        form = node.graph.forms.of(node.handle, spelled)
        if form is None or len(form.sources) <= indices:
            return None
        if form.sources[indices] == "input":
            return form
        if form.sources[indices] != "constant":
            return None
        if form not in self._sizes:
            limits = site.limits or [None]
            self._sizes[form] = limits[0] if len(limits) == 1 else None
        size, numbers = self._sizes[form], node.graph.forms.numbers(node.handle, indices)
        return form if numbers and size is not None and are_plain(numbers, size) else None


@cache
def _ports(key: OpKey) -> tuple[int, frozenset[int]]:
    """Return the input of the indices, and those whose numbers belong to the form: the axis."""
    ports = SPECS[key].ports
    spelled = frozenset(number for number, port in enumerate(ports) if port.role not in _WRITTEN)
    indices = SPECS[key].port_index(Role.INDICES)
    assert indices is not None
    return indices, spelled
