"""Which outputs of a model depend on a node."""

from collections.abc import Collection

from ir_scatter.errors import Error
from ir_scatter.graphs.plan import wire
from ir_scatter.model import Model, Node
from ir_scatter.wiring import Call, Choice, Key, Nested, Repeat, Wiring


def downstream_outputs(model: Model, scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the outputs that depend on nodes, as `evaluate_model` calls them.

    A node inside a body stands for the node around it, and one of a function for its calls.
    """
    if not scopes:
        return frozenset()
    try:
        wiring = wire(model)
        walk = _Walk(wiring, scopes)
        return frozenset(output.name for output in wiring.outputs if walk.depends(output.key))
    except Error:
        return frozenset()


class _Walk:
    """Follows values back to where they come from; without recursion, as chains are long."""

    def __init__(self, wiring: Wiring, scopes: Collection[str]) -> None:
        self.wiring = wiring
        self.scopes = scopes
        self._known: dict[Key, bool] = {}

    def depends(self, key: Key) -> bool:
        """Tell whether a value depends on one of the nodes."""
        pending, opened = [key], set[Key]()
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            link = self.wiring.link(current)
            if link is None or self._is_meant(link.node):
                self._known[current] = link is not None
                pending.pop()
                continue
            sources = [source for source in (*link.inputs, *self._captured(link.node)) if source is not None]
            missing = [source for source in sources if source not in self._known]
            if missing and current not in opened:
                opened.add(current)
                pending += missing
                continue
            self._known[current] = any(self._known.get(source, False) for source in sources)
            pending.pop()
        return self._known[key]

    def _is_meant(self, node: Node) -> bool:
        inside = f"{node.scope}:"
        return any(scope == node.scope or scope.startswith(inside) for scope in self.scopes)

    def _captured(self, node: Node) -> tuple[Key, ...]:
        nested = self.wiring.nested(node)
        return tuple(key for body in _bodies(nested) for key in body.captured)


def _bodies(nested: Nested | None) -> list[Wiring]:
    if isinstance(nested, Choice):
        return [branch.body for branch in nested.branches.values()]
    return [nested.body] if isinstance(nested, Call | Repeat) else []
