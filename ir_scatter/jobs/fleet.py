"""The executor that runs jobs on several machines, connected through a Dask scheduler.

The scheduler only forwards messages and keeps the list of workers. This client assigns a job as soon as a
machine has a free slot. So a job runs on a machine with the device that it needs, large files are sent once,
and jobs of a lost machine are sent to another one.
"""

import asyncio
import errno
import logging
import os
import secrets
import stat
import time
from bisect import insort
from collections.abc import Sequence
from concurrent.futures import Future as Promise
from concurrent.futures import InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from distributed import rpc

from ir_scatter.core import errors
from ir_scatter.core.errors import Absent, UsageError
from ir_scatter.core.files import read_regular
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import counted, listed
from ir_scatter.jobs import Gone, Job, NotDone, perform
from ir_scatter.jobs.machine import ANNOUNCED, OPERATION, Machine, read_announcement
from ir_scatter.jobs.security import Address, demand_reachable
from ir_scatter.jobs.store import Finished, forget_hashes, known_hash, pieces
from ir_scatter.jobs.wire import INLINE_BYTES, Head, RequestRefused, SentFile, decode, encode, hash_of
from ir_scatter.reading import files_beside

_AHEAD = 2
"""Jobs sent to a machine per slot: one runs, and the next one is already there when it ends."""
_WATCH = 0.5
"""Seconds between two requests for the list of workers."""
_DEATHS = 2
"""A job is given up after this many machines were lost while it ran."""
_ATTEMPTS = 4
"""Maximum attempts to send a job whose files change, or are removed on the machine to make room."""
_RETURN = 120.0
"""Seconds that a job waits for a suitable machine after the last one was lost."""
_SILENCE = 60.0
"""Seconds without an answer after which the scheduler is treated as lost."""
_FAREWELL = 5.0
"""Time limit, in seconds, to notify workers that the client disconnects."""
_SLOW, _BAR = 0.5, 30
"""A machine is marked as slow below this share of the median rate; length of a progress bar in characters."""


@dataclass(eq=False)
class _Task(Promise[Any]):
    """A submitted job and its future result; tasks are numbered in the order of submission."""

    number: int
    job: Job
    needs: tuple[str, ...]
    machine: str = ""
    deaths: int = 0
    breaks: int = 0
    """How often the connection broke while the job ran, although the scheduler was not lost."""
    without: dict[str, str] = field(default_factory=dict)
    """Machines that have no room for the job's files, with their error messages."""

    def __post_init__(self) -> None:
        super().__init__()

    def fits(self, machine: Machine) -> bool:
        is_there = self.job.machine in {"", machine.name} and machine.name not in self.without
        return is_there and all(map(machine.offers, self.needs))

    def finish(self, result: Any) -> None:
        with suppress(InvalidStateError):  # a machine that seemed lost has already given the result
            self.set_result(result)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.set_exception(error)


@dataclass(eq=False)
class _Member:
    """A connected machine: the address of its worker, and the tasks that it runs."""

    address: str
    machine: Machine
    tasks: dict[_Task, None] = field(default_factory=dict)
    sent_hashes: set[str] = field(default_factory=set)
    """Hashes of the data that was sent to the machine."""
    slots: list["asyncio.Task[None]"] = field(default_factory=list)

    def stop(self) -> None:
        for slot in self.slots:
            slot.cancel()


@dataclass
class Share:
    """The jobs that one machine has run; `rate` is in jobs per second since its first job began."""

    jobs: int = 0
    bytes: int = 0
    began: float = field(default_factory=time.monotonic)
    last: float = 0.0

    @property
    def rate(self) -> float:
        return self.jobs / max(self.last - self.began, 1e-9)


class Fleet:
    """Executor for the machines of a Dask scheduler.

    Every unfinished task is in `_open`. One lock guards adding a task and ending the event loop. The end
    fails all tasks that were added before, and later ones are refused. So no caller waits forever.
    """

    def __init__(self, address: Address, *, results_folder: Path | None = None, resume: bool = False) -> None:
        """Connect to a scheduler.

        Args:
            address: the address of the scheduler.
            results_folder: a folder for results, so that a later run can reuse them.
            resume: whether to reuse the results in that folder.

        Raises:
            UsageError: the address or certificates are invalid.
            Absent: the scheduler does not answer, or has no usable machine.
        """
        demand_reachable(address)
        self.address, self.gone = address.text, ""
        self.shares, self.strangers = dict[str, Share](), dict[str, str]()
        self._connection = address.security().get_connection_args("client")
        self._finished = Finished(results_folder, resume=resume)
        self._members, self._seen = dict[str, _Member](), dict[str, tuple[Machine, float]]()
        self._waiting = list[_Task]()
        self._name, self._count, self._done = secrets.token_hex(8), 0, 0
        self._lock, self._open = Lock(), dict[_Task, bool]()
        """Unfinished tasks; True: the event loop handles it, False: a thread of this process does."""
        self._has_ended = self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()
        self._here = ThreadPoolExecutor(max(2 * len(self._members), 1))
        if not self._members:
            self.close()
            raise Absent(self.gone or "; ".join(self.strangers.values()) or f"{self.address} has no workers")

    # Machines

    @property
    def machines(self) -> list[Machine]:
        """All machines seen so far, in the order of their names; lost ones may return, and are included."""
        return [machine for _, (machine, _) in sorted(self._seen.copy().items())]

    def demand(self, runner: str) -> None:
        """Check that some machine has a runner: "lab-arc/openvino:GPU", or "openvino:GPU" on any machine.

        Raises:
            UsageError: no machine has this name.
            Absent: no machine has the device.
        """
        host, name = split(runner)
        machines = self.machines
        if host and host not in {machine.name for machine in machines}:
            names = [machine.name for machine in machines]
            guess = did_you_mean(host, names)
            raise UsageError(f"{runner}: there is no machine {host!r}{guess}, expected {', '.join(names)}")
        candidates = [machine for machine in machines if host in {"", machine.name}]
        if not any(machine.offers(name) for machine in candidates):
            runners = sorted({name for machine in candidates for name in machine.runners})
            who = host or f"none of {counted(len(machines), 'machine')}"
            verb = "has no" if host else "has"
            raise Absent(f"{who} {verb} {name}; there is {', '.join(runners) or 'nothing'}")

    def __str__(self) -> str:
        """Return the progress, and below it a bar for each machine: its share of all jobs."""
        counts = [share.jobs for _, share in sorted(self.shares.items()) if share.jobs]
        bars = [("#" * round(_BAR * count / max(self._count, 1))).ljust(_BAR, ".") for count in counts]
        lines = [f"\n  {bar} {line}" for bar, line in zip(bars, self.share_lines(), strict=False)]
        return f"{self._done} of {self._count} jobs{''.join(lines)}"

    def share_lines(self) -> list[str]:
        """Return a line for each machine with the number of its jobs and its rate; slow ones are marked."""
        shares = {name: share for name, share in sorted(self.shares.items()) if share.jobs}
        rates = sorted(share.rate for share in shares.values())
        median = rates[len(rates) // 2] if rates else 0.0
        return [
            f"{name} {share.jobs}, {share.rate:.3g}/s{' (slow)' if share.rate < _SLOW * median else ''}"
            for name, share in shares.items()
        ]

    # Jobs

    def submit(self, job: Job, needs: Sequence[str] = ()) -> _Task:
        """Accept a job and return its future result.

        If no single machine has all needed runners, the job runs in this process, and its models run on the
        machines that have the runners.

        Raises:
            UsageError: a machine that the job names does not exist.
            Absent: no machine has a needed runner.
        """
        for runner in needs:
            self.demand(f"{job.machine}/{runner}" if job.machine else runner)
        with self._lock:
            task = _Task(self._count, job, tuple(needs))
            self._count += 1
        task.add_done_callback(self._count_done)
        if any(map(task.fits, self.machines)):
            self._give_to_loop(task)
        else:
            self._give_to_thread(task)
        return task

    def forget(self) -> None:
        """Delete the stored results, unless the connection was lost: then another run can resume."""
        if not self.gone:
            self._finished.forget()

    def close(self) -> None:
        """Disconnect without waiting for running jobs; their futures then raise `Gone`."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(self._leaving.set)
        self._thread.join()
        self._here.shutdown(wait=False, cancel_futures=True)
        self._fail_open(is_closed=True)

    def _give_to_loop(self, task: _Task) -> None:
        """Queue a task for the machines; fail it if the event loop has ended."""
        with self._lock:
            is_open = not self._has_ended
            if is_open:
                self._open[task] = True
        if not is_open:
            task.fail(self._reason())
            return
        assert self._loop is not None
        with suppress(RuntimeError):  # the event loop has ended since, and failed all open tasks
            self._loop.call_soon_threadsafe(self._enter, task)

    def _give_to_thread(self, task: _Task, *, is_alone: bool = False) -> None:
        """Run a task in a thread of this process; fail it if the fleet is closed.

        With `is_alone` the thread is a new one, as all threads of the pool may be waiting for this task.
        """
        with self._lock:
            is_open = not self._is_closed
            if is_open and not task.done():
                self._open[task] = False
        if not is_open:
            task.fail(self._reason())
            return
        if is_alone:
            Thread(target=_do_here, args=(task,), daemon=True).start()
            return
        with suppress(RuntimeError):  # the fleet has been closed since, which fails all open tasks
            self._here.submit(_do_here, task)

    def _fail_open(self, *, is_closed: bool) -> None:
        """Accept no more tasks, and fail those that can never finish."""
        with self._lock:
            self._has_ended, self._is_closed = True, self._is_closed or is_closed
            lost = [task for task, is_of_loop in self._open.items() if is_of_loop or self._is_closed]
        for task in lost:  # without the lock, which a callback of the task may need
            task.fail(self._reason())

    def _reason(self) -> Gone:
        return Gone(self.gone or "the fleet was closed")

    def _count_done(self, task: Promise[Any]) -> None:
        assert isinstance(task, _Task)
        with self._lock:
            self._done += 1
            self._open.pop(task, None)

    # The thread of the event loop

    def _run(self) -> None:
        """Run the event loop; whenever it ends, fail its open tasks."""
        try:
            with asyncio.Runner() as runner:
                runner.run(self._watch())
        except Exception as error:
            self.gone = self.gone or f"{self.address} cannot be watched: {type(error).__name__}: {error}"
        finally:
            self._fail_open(is_closed=False)
            self._ready.set()

    async def _watch(self) -> None:
        """Update the list of machines regularly, until the scheduler is lost or the client disconnects."""
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._changed, self._leaving = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            async with rpc(self.address, connection_args=self._connection) as self._scheduler:
                leaving = asyncio.create_task(self._leaving.wait())
                while not leaving.done():
                    look = asyncio.create_task(self._look())
                    both = {look, leaving}
                    await asyncio.wait(both, timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
                    if not look.done():
                        look.cancel()
                        if leaving.done():
                            break
                        self.gone = f"the scheduler at {self.address} did not answer for {_SILENCE:g} seconds"
                        return
                    look.result()
                    self._ready.set()
                    await asyncio.wait({leaving}, timeout=_WATCH)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._leave(), _FAREWELL)
        except OSError:
            self.gone = f"the scheduler at {self.address} is lost"
        except Exception as error:
            self.gone = f"the connection to {self.address} broke: {type(error).__name__}: {error}"
        finally:
            self._fail_open(is_closed=False)
            self._ready.set()

    async def _leave(self) -> None:
        """Ask the workers to end the jobs of this client."""
        for member in self._members.values():
            member.stop()
            if member.tasks:
                message = {"op": OPERATION, "ask": "leave", "client": self._name}
                await self._scheduler.broadcast(msg=message, workers=[member.address], on_error="ignore")

    async def _look(self) -> None:
        workers = (await self._scheduler.identity())["workers"]
        for address in set(self._members) - set(workers):
            self._lose(self._members.pop(address))
        for address, worker in workers.items():
            if address not in self._members and worker["status"] == "running":
                self._add_member(address, worker)
        now = time.monotonic()
        machines = [member.machine for member in self._members.values()]
        self._seen |= {machine.name: (machine, now) for machine in machines}
        while self._waiting:  # stop at the first task that can be done; later ones are checked after it
            task = self._waiting[0]
            if any(when > now - _RETURN for machine, when in self._seen.values() if task.fits(machine)):
                break
            del self._waiting[0]
            reasons = [f"{name}: {why}" for name, why in task.without.items()]
            nobody = f"no machine is left with {listed(list(task.needs)) or 'room'}"
            task.fail(NotDone("; ".join(reasons) or nobody))

    def _add_member(self, address: str, worker: dict[str, Any]) -> None:
        """Start to assign jobs to a new worker, if it runs this library."""
        try:
            machine = read_announcement(worker.get(ANNOUNCED))
        except RequestRefused as error:
            self.strangers[address] = f"{worker['name']} {error}"
            return
        member = self._members[address] = _Member(address, machine)
        assert self._loop is not None
        for _ in range(_AHEAD * machine.slots):
            member.slots.append(self._loop.create_task(self._work(member)))

    def _lose(self, member: _Member) -> None:
        """Requeue the tasks of a lost machine; give up tasks that ran on _DEATHS lost machines.

        After its first loss a task runs alone on a machine, so that a second loss can be blamed on it.
        """
        member.stop()
        for task in member.tasks:
            task.deaths += 1
            if task.deaths < _DEATHS:
                self._enter(task)
            else:
                ended = f"{counted(_DEATHS, 'machine')} ended during this job"
                reason = f"{ended}, the last one was {member.machine.name}"
                task.fail(NotDone(reason, ended=True))

    def _enter(self, task: _Task) -> None:
        """Queue a task for the next suitable machine; it fails if the event loop ends (`_fail_open`)."""
        insort(self._waiting, task, key=lambda task: task.number)
        self._changed.set()

    async def _next(self, member: _Member) -> _Task:
        """Wait for a task that a machine can run; a task that was lost once runs alone (`_lose`)."""
        while True:
            task = next((task for task in self._waiting if task.fits(member.machine)), None)
            is_blocked = any(task.deaths for task in member.tasks)
            is_blocked = is_blocked or bool(task and task.deaths and member.tasks)
            if task is not None and not is_blocked:
                self._waiting.remove(task)
                member.tasks[task] = None
                return task
            self._changed.clear()
            await self._changed.wait()

    async def _work(self, member: _Member) -> None:
        """Send a machine jobs one after the other, until it is lost."""
        share = self.shares.setdefault(member.machine.name, Share())
        while True:
            task = await self._next(member)
            try:
                await self._have_done(member, task, share)
            except OSError as error:  # if the scheduler is lost, `_watch` finds out and reports it
                await asyncio.sleep(_WATCH)
                task.breaks += 1
                del member.tasks[task]
                if task.breaks < _ATTEMPTS:
                    self._enter(task)
                else:
                    task.fail(NotDone(f"the connection to {member.machine.name} broke: {error}"))
                    self._changed.set()
                continue
            except Exception as error:
                task.fail(error)
            del member.tasks[task]
            if member.machine.name in task.without:
                self._enter(task)
                continue
            share.jobs, share.last = share.jobs + 1, time.monotonic()
            self._changed.set()

    async def _have_done(self, member: _Member, task: _Task, share: Share) -> None:
        """Send one job to a machine and finish its task; if the machine has no room for it, only note that.

        Raises:
            NotDone: the machine could not run the job.
            RuntimeError: the answer shows a bug in this library.
        """
        name = member.machine.name
        for _ in range(_ATTEMPTS):
            try:
                parcel = await asyncio.to_thread(_pack, task.job)
            except OSError:  # run the job in this process: it reports best which file cannot be read
                self._give_to_thread(task, is_alone=True)
                return
            if (stored := self._finished.get(parcel.key)) is not None:
                await asyncio.to_thread(_settle, task, stored)
                return
            parts = {hash: data for hash, data in parcel.small.items() if hash not in member.sent_hashes}
            share.bytes += sum(map(len, parts.values())) + len(parcel.payload)
            job = {"client": self._name, "head": parcel.head.as_text(), "payload": parcel.payload}
            answer = await self._ask(member, ask="job", parts=parts, **job)
            if answer["status"] == "missing":
                member.sent_hashes.difference_update(answer["hashes"])
                answer = await self._ship(member, parcel, answer["hashes"], share)
            match answer["status"]:
                case "done" | "raised":
                    task.machine = name
                    member.sent_hashes.update(parcel.small)
                    if answer["status"] == "done":
                        await asyncio.to_thread(self._finished.put, parcel.key, answer["result"])
                    await asyncio.to_thread(_settle, task, answer["result"], answer["status"])
                    return
                case "no room":
                    task.without[name] = answer["message"]
                    return
                case "ended":
                    raise NotDone(answer["message"], ended=True)
                case "refused":
                    raise NotDone(f"{name} refuses the job: {answer['message']}")
                case "bug":
                    raise RuntimeError(f"on {name}: {answer['message']}")
                case "changed":
                    forget_hashes()
        raise NotDone(f"the model changes while it is sent to {name}")

    async def _ship(
        self, member: _Member, parcel: "_Parcel", hashes: Sequence[str], share: Share
    ) -> dict[str, Any]:
        """Upload data that a machine lacks, in pieces.

        Return {"status": "again"} after success, otherwise the failure: {"status": "changed"} or the worker's
        answer.
        """
        for hash in hashes:
            token, offset, size = secrets.token_hex(8), 0, parcel.head.wanted[hash]
            for data in pieces(parcel.large.get(hash) or parcel.small[hash]):
                about = {"hash": hash, "token": token, "offset": offset, "size": size}
                answer = await self._ask(member, ask="piece", data=data, **about)
                if answer["status"] != "ok":
                    return answer
                offset += len(data)
                share.bytes += len(data)
            if offset != size:
                return {"status": "changed"}
        return {"status": "again"}

    async def _ask(self, member: _Member, **question: Any) -> dict[str, Any]:
        """Send a request to a machine and return the answer; repeat it after a broken connection."""
        message = {"op": OPERATION, **question}
        while True:
            answers = await self._scheduler.broadcast(
                msg=message, workers=[member.address], on_error="ignore"
            )
            if answers:
                answer: dict[str, Any] = answers[member.address]
                return answer
            await asyncio.sleep(2 * _WATCH)  # if the machine is lost, `_watch` cancels this


def _do_here(task: _Task) -> None:
    try:
        task.finish(perform(task.job))
    except BaseException as error:
        task.fail(error)


def _settle(task: _Task, result: bytes, status: str = "done") -> None:
    """Finish a task with its encoded result; for status "raised", fail it with the encoded error."""
    value = decode(result)
    if status == "done":
        task.finish(value)
    else:
        kind, message = value
        task.fail(getattr(errors, kind, errors.Error)(message))


class _Parcel(NamedTuple):
    """A job ready to be sent.

    Small files and arrays are part of the message; large ones are only sent if the worker lacks them.
    """

    head: Head
    payload: bytes
    small: dict[str, bytes]
    large: dict[str, str | bytes]
    """Large data by hash: the path of a file, or the bytes of an array."""

    @property
    def key(self) -> str:
        return hash_of(self.head.as_text().encode() + self.payload)


def _pack(job: Job) -> _Parcel:
    """Encode a job with the current files of its model.

    Raises:
        OSError: a file cannot be read.
    """
    files, small, large = list[SentFile](), dict[str, bytes](), dict[str, str | bytes]()
    names = [job.model, *(path for path, _ in files_beside(job.model))] if job.model else []
    for name in names:
        path = os.path.abspath(name)
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe can be read only once, and here
            raise OSError(errno.EINVAL, "it is not a regular file")
        size = status.st_size
        if size < INLINE_BYTES:
            data = read_regular(path, INLINE_BYTES)
            hash, size = hash_of(data), len(data)
            small[hash] = data
        else:
            hash = known_hash(path)
            large[hash] = path
        files.append(SentFile(path, hash, size))
    payload, arrays = encode(job.arguments, paths={job.model} if os.path.isabs(job.model) else ())
    sizes = tuple((hash, len(data)) for hash, data in arrays.items())
    return _Parcel(Head(job.name, os.getcwd(), tuple(files), sizes), payload, small, {**large, **arrays})


def split(runner: str) -> tuple[str, str]:
    """Split the name of a runner: "lab/openvino:GPU" -> ("lab", "openvino:GPU").

    For a name without a machine the first item is "".
    """
    host, slash, name = runner.partition("/")
    return (host, name) if slash else ("", runner)
