"""Which outputs of a node with bodies depend on other nodes or values, where nothing can be computed."""

from collections.abc import Callable, Collection, Sequence

from ir_scatter.core.dataflow import Call, Choice, Key, Nested, Repeat, Source, Wiring


# Paths to nodes: where values flow a node of a function has one for each call, to a reader only one.
def printed(scope: str, known: Collection[str]) -> str | None:
    """Return the path by which `validate` prints a node, None if it is no known one.

    Args:
        scope: the path through all calls: "call:own::Store/written".
        known: paths as they are printed: "own::Store/written".
    """
    if scope in known:
        return scope
    at = scope.find(":")
    while at >= 0:
        if scope[at + 1 :] in known:
            return scope[at + 1 :]
        at = scope.find(":", at + 1)
    return None


_Depends = Callable[[Key | None], bool]


def reached(
    nested: Nested,
    inputs: Sequence[Key | None],
    count: int,
    scopes: Collection[str],
    depends: _Depends,
) -> list[bool]:
    """Tell of each output of a node whether it depends on one of some nodes, or on some values.

    Args:
        nested: the bodies of the node.
        inputs: of the node.
        count: of its outputs.
        scopes: the nodes as `validate` prints them; they may be in bodies and functions.
        depends: tells it of the node's inputs, and of what its bodies take from outside.
    """
    if isinstance(nested, Call):
        return _call(inputs, nested, scopes, depends)
    if isinstance(nested, Choice):
        return _choice(inputs, nested, count, scopes, depends)
    return _repeat(inputs, nested, count, scopes, depends)


def _call(inputs: Sequence[Key | None], call: Call, scopes: Collection[str], depends: _Depends) -> list[bool]:
    open = (
        number
        for number, outer in enumerate(call.inputs)
        if outer is not None and outer < len(inputs) and depends(inputs[outer])
    )
    found = _body(call.body, frozenset(open), scopes, depends)
    return [found[number] for number in call.outputs]


def _choice(
    inputs: Sequence[Key | None], choice: Choice, count: int, scopes: Collection[str], depends: _Depends
) -> list[bool]:
    """Either branch may be taken; if a node decides which, everything depends on it."""
    if depends(inputs[choice.condition]):
        return [True] * count
    branches = [_call(inputs, branch, scopes, depends) for branch in choice.branches.values()]
    return [any(pair) for pair in zip(*branches, strict=False)]


def _repeat(
    inputs: Sequence[Key | None], loop: Repeat, count: int, scopes: Collection[str], depends: _Depends
) -> list[bool]:
    """Go through the body until what one iteration hands to the next changes nothing any more."""
    control = [inputs[number] for number in (loop.trips, loop.condition) if number is not None]
    outer = [None if input.outer is None else inputs[input.outer] for input in loop.inputs]
    open = {number for number, key in enumerate(outer) if depends(key)}
    while True:
        found = _body(loop.body, frozenset(open), scopes, depends)
        more = {
            number
            for number, input in enumerate(loop.inputs)
            if input.source is Source.CARRIED and input.successor is not None and found[input.successor]
        }
        if more <= open:
            break
        open |= more
    if any(map(depends, control)) or (loop.goes_on is not None and found[loop.goes_on]):
        return [True] * count
    initial = {
        input.successor
        for number, input in enumerate(loop.inputs)
        if input.source is Source.CARRIED and number in open
    }
    return [found[output.inner] or output.inner in initial for output in loop.outputs]


def _body(wiring: Wiring, inputs: frozenset[int], scopes: Collection[str], depends: _Depends) -> list[bool]:
    """Tell of each output of a body whether it depends on a node, or on what is given to the body."""
    known: dict[Key, bool] = {input.key: number in inputs for number, input in enumerate(wiring.inputs)}
    known |= {key: depends(key) for key in wiring.captured}
    return [_depends(output.key, wiring, known, scopes) for output in wiring.outputs]


def _depends(key: Key, wiring: Wiring, known: dict[Key, bool], scopes: Collection[str]) -> bool:
    """Tell whether a value in a body depends on one of the nodes; without recursion, as chains are long."""
    pending, opened = [key], set[Key]()
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
            continue
        link = wiring.link(current)
        if link is None or printed(link.node.scope, scopes) is not None:
            known[current] = link is not None
            continue
        nested = wiring.nested(link.node)
        sources = [key for key in (*link.inputs, *_captured(nested)) if key is not None]
        missing = [source for source in sources if source not in known]
        if missing and current not in opened:
            opened.add(current)
            pending += missing
            continue

        def tell(key: Key | None) -> bool:
            return key is not None and known.get(key, False)

        count = len(link.outputs)
        if nested is None:
            found = [any(map(tell, link.inputs))] * count
        else:
            found = reached(nested, link.inputs, count, scopes, tell)
        for output, depends in zip(link.outputs, found, strict=False):
            if output is not None:
                known.setdefault(output, depends)
        known.setdefault(current, any(found))
    return known[key]


def _captured(nested: Nested | None) -> list[Key]:
    """Return what the bodies of a node take from the graph around it."""
    if isinstance(nested, Choice):
        bodies = [branch.body for branch in nested.branches.values()]
    else:
        bodies = [] if nested is None else [nested.body]
    return [key for body in bodies for key in body.captured]
