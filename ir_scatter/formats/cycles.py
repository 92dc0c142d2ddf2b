"""Nodes that depend on themselves."""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def find_cycles(predecessors: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    """Return the groups of nodes that depend on each other, each sorted as the mapping is.

    Tarjan's algorithm without recursion: linear in nodes and edges, safe for long chains.
    """
    return [group for group in _components(predecessors) if _is_cyclic(group, predecessors)]


def _is_cyclic(group: list[Key], predecessors: Mapping[Key, Collection[Key]]) -> bool:
    return len(group) > 1 or group[0] in predecessors.get(group[0], ())


def _components(predecessors: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    order = {key: position for position, key in enumerate(predecessors)}
    number: dict[Key, int] = {}
    lowest: dict[Key, int] = {}
    open_nodes: list[Key] = []
    is_open: set[Key] = set()
    components: list[list[Key]] = []
    for root in predecessors:
        pending = [(root, iter(predecessors[root]))] if root not in number else []
        if pending:
            number[root] = lowest[root] = len(number)
            open_nodes.append(root)
            is_open.add(root)
        while pending:
            key, rest = pending[-1]
            following = next((other for other in rest if other in order), None)
            if following is None:
                pending.pop()
                if pending:
                    parent = pending[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[key])
                if lowest[key] == number[key]:
                    components.append(_close(key, open_nodes, is_open, order))
            elif following not in number:
                number[following] = lowest[following] = len(number)
                open_nodes.append(following)
                is_open.add(following)
                pending.append((following, iter(predecessors[following])))
            elif following in is_open:
                lowest[key] = min(lowest[key], number[following])
    return components


def _close(key: Key, open_nodes: list[Key], is_open: set[Key], order: Mapping[Key, int]) -> list[Key]:
    group = [open_nodes.pop()]
    while group[-1] != key:
        group.append(open_nodes.pop())
    is_open.difference_update(group)
    return sorted(group, key=order.__getitem__)
