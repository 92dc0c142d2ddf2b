"""Jobs and executors: a job is a call of one of our functions by name, and an executor runs jobs somewhere.

The module that defines such a function registers it. A process that does jobs for others must first import
all these modules: the worker is told which module does that.

`submit(job, needs)` returns a `Future` at once. The caller submits all its work and then reads the results in
any order; the executor decides whether this process, several processes or other machines do it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ir_scatter.core.errors import Error

_Function = TypeVar("_Function", bound=Callable[..., Any])

TABLE: dict[str, Callable[..., Any]] = {}
"""All that can be asked for: functions by name, as the modules that define them registered them."""


def register(name: str) -> Callable[[_Function], _Function]:
    """Return a decorator that makes a function of a module a job by this name."""

    def enter(function: _Function) -> _Function:
        assert TABLE.setdefault(name, function) is function, f"two functions are the job {name!r}"
        return function

    return enter


class NotDone(Error):
    """A job was not done: it `ended` its process, or its model did not arrive."""

    def __init__(self, message: str, *, ended: bool = False) -> None:
        super().__init__(message)
        self.ended = ended


class Gone(Error):
    """The scheduler is gone; this job was not done, although earlier ones were."""


class Job(NamedTuple):
    """A function of the table and its arguments: numbers, words, arrays, and records of this package.

    Attributes:
        model: the path of a model that it reads, which is sent with the job; "" if it reads none.
        machine: the name of the machine that must do it; "" for any.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    model: str = ""
    machine: str = ""


class Future(Protocol):
    """The future result of a job."""

    @property
    def machine(self) -> str:
        """The name of the machine that did the job, "" for this machine."""

    def done(self) -> bool:
        """Return whether `result` returns without waiting."""

    def result(self) -> Any:
        """Wait for the job; return the function's result, or raise its error.

        Raises:
            NotDone: the job ended its process, or could not start.
            Gone: the job will never be done.
        """


class Executor(Protocol):
    """Does jobs."""

    def submit(self, job: Job, needs: Sequence[str] = ()) -> Future:
        """Accept a job; `needs` are the runners that its machine must have."""

    def close(self) -> None:
        """End running jobs; the caller no longer needs their results."""


def perform(job: Job) -> Any:
    """Do a job here."""
    return TABLE[job.name](*job.arguments)
