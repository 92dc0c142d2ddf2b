"""Work that is counted, not timed: the lines of Python that run, which no other process changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def executed_lines(work: Callable[[], object]) -> int:
    """Run `work`; return how many lines of Python were executed. It runs about 30 times slower."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
