"""Finds cycles in a directed graph."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def find_cycles(predecessors: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    """Return the groups of nodes that depend on each other, each in the order of the mapping.

    Tarjan's algorithm without recursion: linear in nodes and edges, safe for long chains.
    """
    order = {key: position for position, key in enumerate(predecessors)}
    number: dict[Key, int] = {}
    lowest: dict[Key, int] = {}
    open_nodes: dict[Key, None] = {}
    pending: list[tuple[Key, Iterator[Key]]] = []
    cycles: list[list[Key]] = []

    def enter(key: Key) -> None:
        number[key] = lowest[key] = len(number)
        open_nodes[key] = None
        pending.append((key, iter(predecessors[key])))

    for root in predecessors:
        if root not in number:
            enter(root)
        while pending:
            key, rest = pending[-1]
            following = next((candidate for candidate in rest if candidate in order), None)
            if following is None:
                pending.pop()
                if pending:
                    parent = pending[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[key])
                if lowest[key] == number[key]:
                    group = [open_nodes.popitem()[0]]
                    while group[-1] != key:
                        group.append(open_nodes.popitem()[0])
                    if len(group) > 1 or key in predecessors[key]:
                        cycles.append(sorted(group, key=order.__getitem__))
            elif following not in number:
                enter(following)
            elif following in open_nodes:
                lowest[key] = min(lowest[key], number[following])
    return cycles
