"""All rewrites, found by scanning this folder, and the shortest route between two operator versions.

A row is one version of an operator in the table `ops.spec`; a route is a chain of rewrites from row to row.
"""

import pkgutil
from collections import deque
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from ir_scatter.core.model import OpKey

if TYPE_CHECKING:
    from ir_scatter.rewrites.base import Rewrite


@cache
def all_rewrites() -> "tuple[Rewrite, ...]":
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return tuple(rewrite for module in modules for rewrite in getattr(module, "REWRITES", ()))


@cache
def route(source: OpKey, target: OpKey, opset: int | None = None) -> "tuple[Rewrite, ...] | None":
    """Return the shortest chain of rewrites from one operator version to another; None without one.

    A version has a route to itself if a rewrite changes the form of its nodes. All versions on the route must
    be valid in `opset`, that of the written ONNX model.
    """
    previous: dict[OpKey, tuple[Rewrite, ...]] = {}
    pending: deque[tuple[OpKey, tuple[Rewrite, ...]]] = deque([(source, ())])
    while pending:
        key, way = pending.popleft()
        for rewrite in _from(key):
            reached = rewrite.target.key
            if reached in previous or (opset is not None and opset not in rewrite.target.opsets):
                continue
            previous[reached] = (*way, rewrite)
            if reached == target:
                return previous[reached]
            pending.append((reached, previous[reached]))
    return None


@cache
def _from(key: OpKey) -> "tuple[Rewrite, ...]":
    return tuple(rewrite for rewrite in all_rewrites() if rewrite.source.key == key)


@cache
def leads_to(source: OpKey, target: OpKey, opset: int | None = None) -> bool:
    """Return whether a route leads from one operator version to another, or to another form of itself."""
    if source == target:
        return any(rewrite.target.key == target for rewrite in _from(source))
    return route(source, target, opset) is not None
