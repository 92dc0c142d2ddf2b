"""Bounds rules where ends are no numbers."""

import pytest

from ir_scatter.ops.general_bounds import ANY, Bounds, BoundsCase, clamped


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        ("0", "inf", Bounds(0, 9)),
        ("-inf", "3.5", Bounds(-5, 4)),
        ("20", "30", Bounds(20, 20)),
        ("-30", "-20", Bounds(-20, -20)),
        ("7", "2", Bounds(2, 2)),
        ("-inf", "inf", Bounds(-5, 9)),
        ("nan", "3", ANY),
        ("inf", "3", Bounds(3, 3)),
        ("0", "-inf", ANY),
    ],
)
def test_ends_may_be_infinite(low: str, high: str, found: Bounds) -> None:
    case = BoundsCase([Bounds(-5, 9)], [(3,)], {"min": low, "max": high}, is_onnx=False, output=0)
    assert clamped(case) == found
