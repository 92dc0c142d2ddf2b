"""Non-maximum suppression against a naive loop."""

from typing import Any

import numpy as np
import pytest

from ir_scatter.ops.general_kernels.boxes import suppress


def share(first: Any, second: Any, unit: float) -> float:
    sides = [
        min(first[axis + 2], second[axis + 2]) - max(first[axis], second[axis]) + unit for axis in (0, 1)
    ]
    areas = [(box[2] - box[0] + unit) * (box[3] - box[1] + unit) for box in (first, second)]
    if min(areas) <= 0:
        return 0.0
    common = max(sides[0], 0) * max(sides[1], 0)
    return float(common / (areas[0] + areas[1] - common))


def naive(boxes: Any, threshold: float, most: int, unit: float) -> list[int]:
    kept = list[int]()
    for place, box in enumerate(boxes):
        if len(kept) < most and all(share(boxes[other], box, unit) <= threshold for other in kept):
            kept.append(place)
    return kept


@pytest.mark.parametrize("unit", [0.0, 1.0])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize(
    ("count", "most"), [(0, 5), (1, 1), (63, 99), (64, 99), (65, 0), (200, 150), (200, 7)]
)
def test_as_a_naive_loop(count: int, most: int, threshold: float, unit: float) -> None:
    generator = np.random.default_rng([count, most, int(10 * threshold)])
    corners = generator.uniform(0, 20, (count, 2))
    sizes = generator.uniform(0, 6, (count, 2)) * (generator.uniform(size=(count, 1)) > 0.1)
    boxes = np.concatenate([corners, corners + sizes], 1)
    assert suppress(boxes, threshold, most, unit=unit) == naive(boxes, threshold, most, unit)
