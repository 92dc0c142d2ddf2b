"""How much of what is exhaustive or drawn is tried: a part by default, all of it by `pytest -m long`, and of campaigns
a hundred times that with HYPOTHESIS_PROFILE=nightly."""

import os
import random
from collections.abc import Iterable
from typing import Any

import pytest

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
_WHOLE = pytest.param(True, id="whole", marks=[] if NIGHTLY else [pytest.mark.long])

in_part_and_whole = pytest.mark.parametrize(
    "is_whole", [_WHOLE] if NIGHTLY else [pytest.param(False, id="part"), _WHOLE]
)
"""Gives a test the argument `is_whole`: false in the default profile, where a part stands for all."""


def cases(count: int, is_whole: bool = True) -> range:
    """The numbers of the cases of a campaign: so many, or a fifth of them for a part."""
    return range(count * 100 if NIGHTLY else count if is_whole else -(-count // 5))


def thinned(parameters: Iterable[Any], step: int) -> list[Any]:
    """Every `step`-th parameter of a test as it is; the others for the long profile only."""
    rows = [parameter if isinstance(parameter, tuple) else (parameter,) for parameter in parameters]
    return [
        pytest.param(*row, marks=[] if number % step == 0 else [pytest.mark.long])
        for number, row in enumerate(rows)
    ]


def generator(campaign: str, number: int) -> random.Random:
    """The source of chance of one case: the same in every run, whichever cases ran before."""
    return random.Random(f"{campaign} {number}")
