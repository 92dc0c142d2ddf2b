"""How large a campaign is: its size in the default profile, a hundred times that in the long one."""

import os
import random

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
_FACTOR = 100 if LONG else 1


def cases(count: int) -> range:
    """The numbers of the cases of a campaign whose default size is `count`."""
    return range(count * _FACTOR)


def generator(campaign: str, number: int) -> random.Random:
    """The source of chance of one case: the same in every run, whichever cases ran before."""
    return random.Random(f"{campaign} {number}")
