"""Computes every type and reduction in a process of its own: strange arrays first, or plain ones.

What is found for an element type is kept, so the first array of a type may spoil all others.
Prints the cases that are wrong, and how many there were.
"""

import sys
from typing import Any

import numpy as np

from ir_scatter import evaluate, evaluate_detailed
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.ops.spec import Reduction, Role
from tests.ops import naive_scatter
from tests.ops.scatter_cases import ROWS
from tests.ops.strange_arrays import FORMS, plain

Array = Any


def same(found: Array, expected: Array) -> bool:
    if found.dtype.hasobject:
        return bool(found.tolist() == expected.tolist())
    if found.dtype.kind in "biuc":
        return np.array_equal(found, expected)
    return np.array_equal(found.astype(np.float64), expected.astype(np.float64), equal_nan=True)


def values(kind: Any) -> Array:
    if kind.hasobject:
        return np.array(["a", "b", "c", "d", "e"], object)
    if kind.kind == "u" and kind.itemsize == 8:
        return np.array([2**63 + 5, 7, 2**63 + 9, 3, 2**64 - 1], kind)
    if kind == np.float64:
        return np.array([1 + 2.0**-40, 1, 2.0**-45, 3, 5], kind)
    return np.array([1, 0, 1, 1, 0] if kind.kind == "b" else [2, 1, 3, 1, 0]).astype(kind)


def main(order: str) -> None:
    forms = [*FORMS.values(), plain] if order == "strange" else [plain, *FORMS.values()]
    wrong, count = [], 0
    for name in ("ScatterElementsUpdate-12", "ScatterElements-18", "ScatterNDUpdate-15"):
        spec = ROWS[name]
        port = spec.port(Role.DATA)
        assert port is not None
        for word, reduction in spec.reductions.items():
            excluded = spec.reduction_excludes.get(reduction, frozenset())
            for row in sorted(port.element_types - excluded):
                kind = dtype(ELEMENT_TYPES[row])
                if kind is None or (kind.hasobject and reduction is not Reduction.NONE):
                    continue
                if kind.name == "float8_e8m0fnu" and reduction is Reduction.SUB:
                    continue  # it has no negative numbers and no zero
                given = values(kind)
                indices = np.array([0, 1, 0])
                if "ND" in name:
                    indices = indices[:, None]
                arguments: Any = {} if "ND" in name else {"axis": 0}
                data, updates = given[:2], given[2:]
                expected = naive_scatter.scatter(
                    spec.key.type, data, indices, updates, reduction=word, **arguments
                )
                for form in forms:
                    parts = {"data": form(data), "indices": form(indices), "updates": form(updates)}
                    found = evaluate(name, **parts, **arguments, reduction=word)
                    detailed = evaluate_detailed(name, **parts, **arguments, reduction=word)
                    is_right = found.dtype == parts["data"].dtype and same(found, expected)
                    is_right = is_right and same(detailed.values, expected)
                    is_right = is_right and not any(
                        np.may_share_memory(found, part) for part in parts.values()
                    )
                    count += 1
                    if not is_right:
                        wrong.append(f"{name} {word} {row} {form.__name__}: {found} {expected}")
    print(count)
    print("\n".join(wrong))


if __name__ == "__main__":
    main(sys.argv[1])
