"""Work on many files in several processes, in the order of the files."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Options = TypeVar("Options")
Result = TypeVar("Result")


def in_processes(
    work: Callable[[Item, Options], Result], items: Sequence[Item], options: Options, jobs: int
) -> Iterator[tuple[Item, Result | None]]:
    """Yield every item with its result, None where the process that worked on it ended.

    When a process ends the pool is lost: it is started again, and the items that were under way
    are tried one at a time, so that only the guilty one is given up.
    """
    # A fork has all that is imported here, but not the threads that may hold a lock.
    can_fork = hasattr(os, "fork") and threading.active_count() == 1
    context, done = get_context("fork" if can_fork else "spawn"), 0
    while done < len(items):
        with ProcessPoolExecutor(jobs, context) as pool:
            futures: list[Future[Result]] = [pool.submit(work, item, options) for item in items[done:]]
            try:
                for future in futures:
                    result = future.result()
                    yield items[done], result
                    done += 1
            except BrokenProcessPool:
                jobs_now, jobs = jobs, 1
                if jobs_now == 1:
                    yield items[done], None
                    done += 1
