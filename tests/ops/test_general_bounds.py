"""Bounds rules where ends are no numbers."""

import pytest

from ir_scatter.ops.general_bounds import ANY, BoundsCase, Interval, clamped


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        ("0", "inf", Interval(0, 9)),
        ("-inf", "3.5", Interval(-5, 4)),
        ("20", "30", Interval(20, 20)),
        ("-30", "-20", Interval(-20, -20)),
        ("7", "2", Interval(2, 2)),
        ("-inf", "inf", Interval(-5, 9)),
        ("nan", "3", ANY),
        ("inf", "3", Interval(3, 3)),
        ("0", "-inf", ANY),
    ],
)
def test_ends_may_be_infinite(low: str, high: str, found: Interval) -> None:
    case = BoundsCase([Interval(-5, 9)], [(3,)], {"min": low, "max": high}, is_onnx=False, output=0)
    assert clamped(case) == found
