"""Work on many files in several processes, in the order of the files."""

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
    done = 0
    while done < len(items):
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
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
