"""Executors on this machine: `Here` runs a job when its result is read, `Processes` in a process pool."""

import os
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ir_scatter.core.parameters import Spelling, current_spelling, use_spelling
from ir_scatter.jobs import TABLE, Job, NotDone, perform

if TYPE_CHECKING:
    from concurrent.futures import Future as Running
    from concurrent.futures import ProcessPoolExecutor


class Here:
    """Runs each job in this process, when its result is read."""

    def submit(self, job: Job, needs: Sequence[str] = ()) -> "_Later":
        return _Later(job)

    def close(self) -> None:
        """Do nothing: jobs only run within `result`."""


class _Later:
    machine = ""

    def __init__(self, job: Job) -> None:
        self._job = job

    def done(self) -> bool:
        return False

    def result(self) -> Any:
        return perform(self._job)


class Processes:
    """Runs jobs in a pool of processes.

    If one process ends, the whole pool is lost. A new pool then retries the unfinished jobs one at a time, so
    that only a job that ends its process again is given up.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._open: dict[_InProcess, None] = {}
        self._pool = _pool(count)

    def submit(self, job: Job, needs: Sequence[str] = ()) -> "_InProcess":
        future = _InProcess(self, job)
        self._open[future] = None
        future.running = self._begin(job)
        return future

    def result(self, future: "_InProcess") -> Any:
        from concurrent.futures.process import BrokenProcessPool

        while not future.has_died:
            try:
                result = future.running.result()
            except BrokenProcessPool:
                self._begin_again(BrokenProcessPool)
                continue
            except BaseException:
                self._open.pop(future, None)
                raise
            self._open.pop(future, None)
            return result
        raise NotDone("its process ended", ended=True)

    def _begin_again(self, broken: type[Exception]) -> None:
        lost = [future for future in self._open if isinstance(future.running.exception(), broken)]
        if self._count == 1:
            lost[0].has_died = True
            del self._open[lost.pop(0)]
        self._count = 1
        self.close()
        self._pool = _pool(1)
        for future in lost:
            future.running = self._begin(future.job)

    def _begin(self, job: Job) -> "Running[Any]":
        """Submit the function itself, not its name.

        It is pickled by its module, so that a spawned process imports that module.
        """
        return self._pool.submit(TABLE[job.name], *job.arguments)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class _InProcess:
    machine = ""
    has_died = False

    def __init__(self, executor: Processes, job: Job) -> None:
        self.executor, self.job = executor, job
        self.running: Running[Any]

    def done(self) -> bool:
        return self.running.done()

    def result(self) -> Any:
        return self.executor.result(self)


def _pool(count: int) -> "ProcessPoolExecutor":
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A forked process has all modules imported, but a lock that another thread holds would stay locked in it.
    if hasattr(os, "fork") and threading.active_count() == 1:
        return ProcessPoolExecutor(count, get_context("fork"), initializer=_end_with_parent)
    from ir_scatter.core.process import safe_path
    from ir_scatter.jobs.spawn import SafeSpawn

    with safe_path():  # this starts the resource tracker process
        return ProcessPoolExecutor(count, SafeSpawn(), initializer=_begin, initargs=(current_spelling(),))


def _begin(spelling: Spelling) -> None:
    use_spelling(spelling)
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process of the pool when its parent is killed; ignore Ctrl-C."""
    import signal
    from multiprocessing import parent_process
    from multiprocessing.util import Finalize

    from ir_scatter.core.temporary import remove_process_folder

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    Finalize(None, remove_process_folder, exitpriority=0)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        remove_process_folder()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def local(count: int = 1) -> "closing[Here | Processes]":
    """Return an executor with `count` processes as a context manager; with 1 it runs jobs in this process."""
    return closing(Processes(count) if count > 1 else Here())
