"""The rewrites: one file each, found by scanning this folder, and the shortest way between two rows."""

import pkgutil
from collections import deque
from dataclasses import replace
from functools import cache
from importlib import import_module

from ir_scatter.core.model import OpKey
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.rewrite import Rewrite


@cache
def all_rewrites() -> tuple[Rewrite, ...]:
    """Return every rewrite, with its module's docstring as its documentation."""
    found: list[Rewrite] = []
    for module_info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        documentation = (module.__doc__ or "").strip()
        rewrites = getattr(module, "REWRITES", ())
        found.extend(replace(rewrite, documentation=documentation) for rewrite in rewrites)
    return tuple(found)


@cache
def route(source: OpKey, target: OpKey, opset: int | None = None) -> tuple[Rewrite, ...] | None:
    """Return the shortest way from one row to another, None if there is none.

    Args:
        source: where from.
        target: where to; the same row where a rewrite has another form of it.
        opset: that of the ONNX model that is written; rows on the way must be valid in it.
    """
    is_usable = _always if opset is None else lambda spec: opset in spec.opsets
    previous: dict[OpKey, tuple[Rewrite, ...]] = {}
    pending: deque[tuple[OpKey, tuple[Rewrite, ...]]] = deque([(source, ())])
    while pending:
        key, way = pending.popleft()
        for rewrite in _from(key):
            known = rewrite.target.key
            if known in previous or not is_usable(rewrite.target):
                continue
            previous[known] = (*way, rewrite)
            if known == target:
                return previous[known]
            pending.append((known, previous[known]))
    return None


def _always(_: OpSpec) -> bool:
    return True


@cache
def _from(key: OpKey) -> tuple[Rewrite, ...]:
    return tuple(rewrite for rewrite in all_rewrites() if rewrite.source.key == key)


@cache
def leads_to(source: OpKey, target: OpKey, opset: int | None = None) -> bool:
    """Tell whether there is a way from one row to another, or to another form of the same row."""
    if source == target:
        return any(rewrite.target.key == target for rewrite in _from(source))
    return route(source, target, opset) is not None
