"""Which outputs of a model depend on a node."""

from collections.abc import Callable, Collection

from ir_scatter.compare.scopes import printed
from ir_scatter.errors import Error
from ir_scatter.graphs.plan import wire
from ir_scatter.model import Model
from ir_scatter.wiring import Call, Choice, Key, Link, Nested, Repeat, Source, Wiring

_Depends = Callable[[Key | None], bool]


def downstream_outputs(model: Model, scopes: Collection[str]) -> frozenset[str]:
    """Return the names of the outputs that depend on nodes, as `evaluate_model` calls them.

    Args:
        model: as it was read.
        scopes: the nodes as `validate` prints them; they may be in bodies and functions.
    """
    if not scopes:
        return frozenset()
    try:
        main = wire(model)
        depends = _Graph(frozenset(scopes), main, frozenset(), frozenset()).depends
        return frozenset(output.name for output in main.outputs if depends(output.key))
    except Error:
        return frozenset()


class _Graph:
    """A graph of which some inputs, and some values around it, depend on one of the nodes."""

    def __init__(
        self, scopes: frozenset[str], wiring: Wiring, inputs: frozenset[int], captured: frozenset[Key]
    ) -> None:
        self._scopes, self._wiring = scopes, wiring
        given = {input.key: number in inputs for number, input in enumerate(wiring.inputs)}
        self._known: dict[Key, bool] = given | {key: key in captured for key in wiring.captured}

    def outputs(self) -> list[bool]:
        """Tell of each output whether it depends on one of the nodes."""
        return [self.depends(output.key) for output in self._wiring.outputs]

    def depends(self, key: Key) -> bool:
        """Tell whether a value depends on one of the nodes; without recursion, as chains are long."""
        pending, opened = [key], set[Key]()
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            link = self._wiring.link(current)
            if link is None or printed(link.node.scope, self._scopes) is not None:
                self._known[current] = link is not None
                continue
            nested = self._wiring.nested(link.node)
            sources = [key for key in (*link.inputs, *_captured(nested)) if key is not None]
            missing = [source for source in sources if source not in self._known]
            if missing and current not in opened:
                opened.add(current)
                pending += missing
                continue
            self._enter(link, nested, current)
        return self._known[key]

    def _enter(self, link: Link, nested: Nested | None, current: Key) -> None:
        """Enter the outputs of a node whose inputs are known."""

        def known(key: Key | None) -> bool:
            return key is not None and self._known.get(key, False)

        if nested is None:
            found = [any(map(known, link.inputs))] * len(link.outputs)
        elif isinstance(nested, Call):
            found = self._call(link, nested, known)
        elif isinstance(nested, Choice):
            found = self._choice(link, nested, known)
        else:
            found = self._repeat(link, nested, known)
        for key, depends in zip(link.outputs, found, strict=False):
            if key is not None:
                self._known.setdefault(key, depends)
        self._known.setdefault(current, any(found))

    def _body(self, wiring: Wiring, inputs: frozenset[int], known: _Depends) -> list[bool]:
        captured = frozenset(key for key in wiring.captured if known(key))
        return _Graph(self._scopes, wiring, inputs, captured).outputs()

    def _call(self, link: Link, call: Call, known: _Depends) -> list[bool]:
        inputs = (
            number
            for number, outer in enumerate(call.inputs)
            if outer is not None and outer < len(link.inputs) and known(link.inputs[outer])
        )
        found = self._body(call.body, frozenset(inputs), known)
        return [found[number] for number in call.outputs]

    def _choice(self, link: Link, choice: Choice, known: _Depends) -> list[bool]:
        """Either branch may be taken; if a node decides which, everything depends on it."""
        if known(link.inputs[choice.condition]):
            return [True] * len(link.outputs)
        branches = [self._call(link, branch, known) for branch in choice.branches.values()]
        return [any(pair) for pair in zip(*branches, strict=False)]

    def _repeat(self, link: Link, loop: Repeat, known: _Depends) -> list[bool]:
        """Go through the body until what one iteration hands to the next changes nothing any more."""
        control = [link.inputs[number] for number in (loop.trips, loop.condition) if number is not None]
        outer = [None if input.outer is None else link.inputs[input.outer] for input in loop.inputs]
        inputs = {number for number, key in enumerate(outer) if known(key)}
        while True:
            found = self._body(loop.body, frozenset(inputs), known)
            more = {
                number
                for number, input in enumerate(loop.inputs)
                if input.source is Source.CARRIED and input.successor is not None and found[input.successor]
            }
            if more <= inputs:
                break
            inputs |= more
        if any(map(known, control)) or (loop.goes_on is not None and found[loop.goes_on]):
            return [True] * len(link.outputs)
        initial = {
            input.successor
            for number, input in enumerate(loop.inputs)
            if input.source is Source.CARRIED and number in inputs
        }
        return [found[output.inner] or output.inner in initial for output in loop.outputs]


def _captured(nested: Nested | None) -> list[Key]:
    """Return what the bodies of a node take from the graph around it."""
    if isinstance(nested, Choice):
        bodies = [branch.body for branch in nested.branches.values()]
    else:
        bodies = [] if nested is None else [nested.body]
    return [key for body in bodies for key in body.captured]
