"""Where work is done: a job is a function of ours by its name, with data; an engine does jobs somewhere.

The module that defines such a function registers it. A process that does jobs of others must import all
these modules first: the worker is told which module does.

`submit(job, needs)` gives a `Future` at once. Whoever has work to spread submits it and asks for the results
in the order that he wants; who does it, this process, several or other machines, he does not know.
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
    """A job was not done: it `ended` the process that was at it, or its model did not arrive."""

    def __init__(self, message: str, *, ended: bool = False) -> None:
        super().__init__(message)
        self.ended = ended


class Gone(Error):
    """Whoever hands jobs on is gone; this one was not done, and others were."""


class Job(NamedTuple):
    """A function of the table and what it is given: numbers, words, arrays, and records of ours.

    Attributes:
        model: the path of a model that it reads, which goes along to where it is done; "" if there is none.
        machine: the name of the one that is to do it; "" for any.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    model: str = ""
    machine: str = ""


class Future(Protocol):
    """What will come of a job."""

    @property
    def machine(self) -> str:
        """The name of the machine that did it, "" for this one."""

    def done(self) -> bool:
        """Tell whether the result is there, and need not be waited for."""

    def result(self) -> Any:
        """Return what the function returned, or raise what it raised, as soon as that is known.

        Raises:
            NotDone: it ended its process, or could not begin.
            Gone: nobody will do it.
        """


class Engine(Protocol):
    """Does jobs."""

    def submit(self, job: Job, needs: Sequence[str] = ()) -> Future:
        """Take a job; `needs` are the runners that must be where it is done."""

    def close(self) -> None:
        """End whatever is still at work; nobody asks for results any more."""


def perform(job: Job) -> Any:
    """Do a job here."""
    return TABLE[job.name](*job.arguments)
