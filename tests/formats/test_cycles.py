"""Groups of nodes that depend on each other."""

from collections.abc import Mapping
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from ir_scatter.formats.cycles import find_cycles
from tests.operations import executed_lines

GRAPHS = st.dictionaries(st.integers(0, 12), st.lists(st.integers(0, 15), max_size=5), max_size=13)


def reachable(graph: Mapping[int, list[int]], start: int) -> set[int]:
    """Return the nodes of the graph that a node depends on, itself only if it is in a cycle."""
    found: set[int] = set()
    pending = list(graph[start])
    while pending:
        node = pending.pop()
        if node in graph and node not in found:
            found.add(node)
            pending.extend(graph[node])
    return found


@given(GRAPHS)
def test_groups_are_those_of_mutual_reachability(graph: dict[int, list[int]]) -> None:
    depends = {node: reachable(graph, node) for node in graph}
    groups = {
        tuple(other for other in graph if other in depends[node] and node in depends[other])
        for node in graph
        if node in depends[node]
    }
    found = find_cycles(graph)
    assert {tuple(group) for group in found} == groups
    assert len(found) == len(groups)


def chain(length: int) -> dict[bytes, list[bytes]]:
    """Each node depends on the next: the search goes to the end before it closes anything."""
    return {b"%d" % node: [b"%d" % (node + 1)] for node in range(length)}


def test_a_chain_takes_steps_in_proportion_to_its_length() -> None:
    """Four times as long a chain would take 16 times as many steps if each looked at all others."""
    short, long = (executed_lines(partial(find_cycles, chain(n))) for n in (1_000, 4_000))
    assert long < 4 * short + 100
    assert find_cycles(chain(160_000)) == []
