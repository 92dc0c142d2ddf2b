"""Jobs and executors: a job is a call of a registered function by name, and an executor runs jobs somewhere.

The module that defines such a function registers it under a name. A process that runs jobs for others must
first import all these modules; a worker gets the name of a module that imports them (`all_jobs`).

`submit(job, needs)` returns a `Future` at once. The caller submits all jobs and then reads the results in any
order. The executor decides whether this process, several processes or other machines run them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ir_scatter.core.errors import Error

_Function = TypeVar("_Function", bound=Callable[..., Any])

TABLE: dict[str, Callable[..., Any]] = {}
"""All functions that a job can call, by registered name."""


def register(name: str) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as a job under this name."""

    def enter(function: _Function) -> _Function:
        assert TABLE.setdefault(name, function) is function, f"two functions are registered as job {name!r}"
        return function

    return enter


class NotDone(Error):
    """Error: a job has no result, because it `ended` its process, or because it could not be started."""

    def __init__(self, message: str, *, ended: bool = False) -> None:
        super().__init__(message)
        self.ended = ended


class Gone(Error):
    """Error: the connection to the scheduler is lost, so this job has no result.

    Earlier jobs may have results.
    """


class Job(NamedTuple):
    """The name of a registered function and its arguments: numbers, strings, arrays and records.

    Attributes:
        model: the path of a model that the function reads, which is sent with the job; "" if there is none.
        machine: the name of the machine that must run the job; "" for any.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    model: str = ""
    machine: str = ""


class Future(Protocol):
    """The future result of a job."""

    @property
    def machine(self) -> str:
        """The name of the machine that ran the job, "" for this machine."""

    def done(self) -> bool:
        """Return whether `result` returns without waiting."""

    def result(self) -> Any:
        """Wait for the job; return the function's result, or raise its error.

        Raises:
            NotDone: the job ended its process, or could not start.
            Gone: the job will never run.
        """


class Executor(Protocol):
    """Runs jobs, here or on other machines."""

    def submit(self, job: Job, needs: Sequence[str] = ()) -> Future:
        """Accept a job and return its future result.

        `needs` are the names of runners that the machine must have.
        """

    def close(self) -> None:
        """Stop running jobs; their results are lost."""


def perform(job: Job) -> Any:
    """Call the function of a job in this process."""
    return TABLE[job.name](*job.arguments)
