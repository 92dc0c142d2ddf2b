"""The scatter nodes of a model, and those that are meant."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ir_scatter.analysis.scatter_node import Site
from ir_scatter.convert.engine import Engine
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Function, Node, OpKey
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.rewrites.conditions import Condition, judge


class Candidate(NamedTuple):
    """One scatter node as the file holds it.

    Attributes:
        node: in a function that of the definition.
        sites: the node seen by role, once for each signature of the function that it is in; where
            they do not look alike, what is known whatever the signature comes first.
    """

    node: Node
    sites: tuple[Site, ...]

    @property
    def key(self) -> OpKey | None:
        """Return its row's key, None if its opset does not contain it."""
        spec = self.sites[0].lookup.spec
        return None if spec is None else spec.key


def candidates(engine: Engine) -> list[Candidate]:
    """Return every scatter node, in the order of the file."""
    model, found = engine.model, []
    types = scatter_types(model.domain)
    for node in model.graph.walk(types):
        site = engine.site(node)
        if site is not None:
            found.append(Candidate(node, (site,)))
    for function in model.functions:
        found += _of_function(engine, function, types)
    return found


def _of_function(engine: Engine, function: Function, types: frozenset[str]) -> Iterator[Candidate]:
    walks = [list(instance.walk(types)) for instance in function.instances]
    for number, node in enumerate(function.definition.walk(types)):
        own = engine.site(node)
        sites = [engine.site(walk[number]) for walk in walks if number < len(walk)]
        known = [site for site in sites if site is not None]
        if own is None:
            continue
        if not known or any(_looks(site) != _looks(known[0]) for site in known):
            known.insert(0, own)
        yield Candidate(node, tuple(known))


def _looks(site: Site) -> object:
    """Return what decides the form of a node; what is not known to be like another one is like no other."""
    if site.lookup.spec is None or site.signature is None:
        return site
    array, proven = site.index_array, [judge(condition, site) for condition in Condition]
    return site.signature, None if array is None else array.tobytes(), proven


def matching(found: Sequence[Candidate], patterns: Sequence[str]) -> list[Candidate]:
    """Return the nodes that a pattern names: literally, or else as a glob.

    Raises:
        UsageError: a pattern names none.
    """
    chosen: set[int] = set()
    for pattern in patterns:
        named = {n for n, one in enumerate(found) if pattern in _names(one.node)}
        if not named:
            named = {
                n
                for n, one in enumerate(found)
                if any(fnmatchcase(name, pattern) for name in _names(one.node))
            }
        if not named:
            raise UsageError(f"no scatter node is named {pattern!r}; `ir-scatter inspect` lists them")
        chosen |= named
    return [one for number, one in enumerate(found) if number in chosen]


def _names(node: Node) -> tuple[str, str]:
    return node.name, node.scope
