"""How works are timed beside each other."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

ROUNDS = 7


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(repeats):
        result = work()
    taken = time.perf_counter() - start
    del result
    return taken / repeats


def medians(works: Sequence[Callable[[], object]], rounds: int = ROUNDS, repeats: int = 1) -> list[float]:
    """Time the works in turn, so that a noisy moment hits all of them."""
    times = [[seconds(work, repeats) for work in works] for _ in range(rounds)]
    return [median(column) for column in zip(*times, strict=True)]


def process(*arguments: str) -> tuple[float, int]:
    """Run a child process; return its seconds and its peak memory in KiB."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=False, "
        "stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, int(done.stdout)


def processes(*commands: Sequence[str], rounds: int = ROUNDS) -> list[tuple[float, float]]:
    """Run child processes in turn; return the medians of their seconds and of their peak memories."""
    runs = [[process(*command) for command in commands] for _ in range(rounds)]
    return [
        (median(time for time, _ in column), median(memory for _, memory in column))
        for column in zip(*runs, strict=True)
    ]
