"""Does jobs on the machines of a Dask scheduler, which hands messages on and knows who is there.

What a machine does next is decided here, when it has room for it: so a job that needs a device goes to who
has it, large files travel once, and what a lost machine was at is known and goes elsewhere.
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
from ir_scatter.jobs.machine import ANNOUNCED, OPERATION, Machine, announced
from ir_scatter.jobs.security import Address, demand_reachable
from ir_scatter.jobs.store import Finished, forget_hashes, known_hash, pieces
from ir_scatter.jobs.wire import INLINE_BYTES, Head, Refused, Sent, decode, encode, hash_of
from ir_scatter.reading import files_beside

_AHEAD = 2
"""Jobs for each slot of a machine: one is at work, and the next is there when that is done."""
_WATCH = 0.5
"""Seconds between looks at who is there."""
_DEATHS = 2
"""A job that ended so many machines is not given to another one."""
_ATTEMPTS = 4
"""So often a job is sent whose files change, or go to make room."""
_RETURN = 120.0
"""Seconds that a job waits for a machine that has what it needs, when the last one has gone."""
_SILENCE = 60.0
"""Seconds without an answer after which a scheduler counts as gone."""
_FAREWELL = 5.0
"""Seconds that a scheduler may take to pass on that the client leaves."""
_SLOW, _BAR = 0.5, 30
"""A machine is slow that does less than this share of what the median does; a bar for all jobs is so long."""


@dataclass(eq=False)
class _Task(Promise[Any]):
    """A job on its way. `number` is its place in the order of jobs."""

    number: int
    job: Job
    needs: tuple[str, ...]
    machine: str = ""
    deaths: int = 0
    breaks: int = 0
    """Connections that broke while it was on its way, though the scheduler stayed."""
    without: dict[str, str] = field(default_factory=dict)
    """Machines that have no room for it, and what they said."""

    def __post_init__(self) -> None:
        super().__init__()

    def fits(self, machine: Machine) -> bool:
        is_there = self.job.machine in {"", machine.name} and machine.name not in self.without
        return is_there and all(map(machine.offers, self.needs))

    def finish(self, found: Any) -> None:
        with suppress(InvalidStateError):  # a machine that was taken to be lost was quicker
            self.set_result(found)

    def fail(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self.set_exception(error)


@dataclass(eq=False)
class _Member:
    """A machine that is there, by the address of its worker, and what it is at."""

    address: str
    machine: Machine
    tasks: dict[_Task, None] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of what was sent there."""
    slots: list["asyncio.Task[None]"] = field(default_factory=list)

    def stop(self) -> None:
        for slot in self.slots:
            slot.cancel()


@dataclass
class Share:
    """What a machine has done: `rate` is in jobs per second since its first one began."""

    jobs: int = 0
    bytes: int = 0
    began: float = field(default_factory=time.monotonic)
    last: float = 0.0

    @property
    def rate(self) -> float:
        return self.jobs / max(self.last - self.began, 1e-9)


class Fleet:
    """The machines of a scheduler.

    Every task that is not finished is in `_open`. A task enters it, and the loop ends, under one lock: the
    end fails each task that entered before, and a later one is refused. So no caller waits for ever.
    """

    def __init__(self, address: Address, *, kept: Path | None = None, resume: bool = False) -> None:
        """Connect.

        Args:
            address: of the scheduler.
            kept: a folder for what is finished, so that another run need not do it again.
            resume: whether to take what is there.

        Raises:
            UsageError: the address or certificates are no good.
            Absent: nobody answers, or no machine is there that could do something.
        """
        demand_reachable(address)
        self.address, self.gone = address.text, ""
        self.shares, self.strangers = dict[str, Share](), dict[str, str]()
        self._connection = address.security().get_connection_args("client")
        self._finished = Finished(kept, resume=resume)
        self._members, self._seen = dict[str, _Member](), dict[str, tuple[Machine, float]]()
        self._waiting = list[_Task]()
        self._name, self._count, self._done = secrets.token_hex(8), 0, 0
        self._lock, self._open = Lock(), dict[_Task, bool]()
        """Tasks that are not finished, and whether the loop will finish them, not a thread here."""
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

    # What is there

    @property
    def machines(self) -> list[Machine]:
        """The machines in the order of their names, those that went away, too: they may come back."""
        return [machine for _, (machine, _) in sorted(self._seen.copy().items())]

    def demand(self, runner: str) -> None:
        """Demand that a runner, "lab-arc/openvino:GPU" or "openvino:GPU", is somewhere.

        Raises:
            UsageError: there is no machine of the name.
            Absent: nobody has the device.
        """
        host, name = split(runner)
        machines = self.machines
        if host and host not in {one.name for one in machines}:
            known = [one.name for one in machines]
            guess = did_you_mean(host, known)
            raise UsageError(f"{runner}: there is no machine {host!r}{guess}, expected {', '.join(known)}")
        if not any(one.offers(name) for one in machines if host in {"", one.name}):
            there = sorted({name for one in machines if host in {"", one.name} for name in one.runners})
            who = host or f"none of {counted(len(machines), 'machine')}"
            verb = "has no" if host else "has"
            raise Absent(f"{who} {verb} {name}; there is {', '.join(there) or 'nothing'}")

    def __str__(self) -> str:
        """Return what has been done, and below that a bar for each machine: its share of all jobs."""
        jobs = [one.jobs for _, one in sorted(self.shares.items()) if one.jobs]
        bars = [("#" * round(_BAR * one / max(self._count, 1))).ljust(_BAR, ".") for one in jobs]
        lines = [f"\n  {bar} {line}" for bar, line in zip(bars, self.told(), strict=False)]
        return f"{self._done} of {self._count} jobs{''.join(lines)}"

    def told(self) -> list[str]:
        """Return what each machine has done, and which are slow."""
        shares = {name: one for name, one in sorted(self.shares.items()) if one.jobs}
        rates = sorted(one.rate for one in shares.values())
        middle = rates[len(rates) // 2] if rates else 0.0
        return [
            f"{name} {one.jobs}, {one.rate:.3g}/s{' (slow)' if one.rate < _SLOW * middle else ''}"
            for name, one in shares.items()
        ]

    # What is to be done

    def submit(self, job: Job, needs: Sequence[str] = ()) -> _Task:
        """Take a job. If it names machines, or needs several, it is done here, by runners that are there.

        Raises:
            UsageError, Absent: nobody has what it needs.
        """
        for one in needs:
            self.demand(f"{job.machine}/{one}" if job.machine else one)
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
        """Keep nothing of what is finished, unless somebody will have to go on."""
        if not self.gone:
            self._finished.forget()

    def close(self) -> None:
        """Leave; what is at work is not waited for, and whoever waits for it hears that."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._leaving.set)
        self._thread.join()
        self._here.shutdown(wait=False, cancel_futures=True)
        self._fail_open(is_closed=True)

    def _give_to_loop(self, task: _Task) -> None:
        """Let a machine do a task, or fail it if the loop has ended."""
        with self._lock:
            is_open = not self._has_ended
            if is_open:
                self._open[task] = True
        if not is_open:
            task.fail(self._reason())
            return
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended since, and failed what is open
            self._loop.call_soon_threadsafe(self._enter, task)

    def _give_to_thread(self, task: _Task, *, is_alone: bool = False) -> None:
        """Do a task in a thread of this process, or fail it if the fleet is closed.

        With `is_alone` the thread is a new one: those of the pool may all wait for this task.
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
        with suppress(RuntimeError):  # it has been closed since, and what is open fails
            self._here.submit(_do_here, task)

    def _fail_open(self, *, is_closed: bool) -> None:
        """Accept no more tasks, and fail those that nobody will finish."""
        with self._lock:
            self._has_ended, self._is_closed = True, self._is_closed or is_closed
            lost = [task for task, is_of_loop in self._open.items() if is_of_loop or self._is_closed]
        for task in lost:  # without the lock, which whoever hears of it may need
            task.fail(self._reason())

    def _reason(self) -> Gone:
        return Gone(self.gone or "the fleet was left")

    def _count_done(self, task: Promise[Any]) -> None:
        assert isinstance(task, _Task)
        with self._lock:
            self._done += 1
            self._open.pop(task, None)

    # In the thread of the loop

    def _run(self) -> None:
        """Run the loop; whatever ends it, nobody waits for what it does not do any more."""
        try:
            with asyncio.Runner() as runner:
                runner.run(self._watch())
        except Exception as error:
            self.gone = self.gone or f"{self.address} cannot be watched: {type(error).__name__}: {error}"
        finally:
            self._fail_open(is_closed=False)
            self._ready.set()

    async def _watch(self) -> None:
        """Look who is there, again and again, until the scheduler is gone."""
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
                        self.gone = f"the scheduler at {self.address} gave no answer for {_SILENCE:g} seconds"
                        return
                    look.result()
                    self._ready.set()
                    await asyncio.wait({leaving}, timeout=_WATCH)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._leave(), _FAREWELL)
        except OSError:
            self.gone = f"the scheduler at {self.address} is gone"
        except Exception as error:
            self.gone = f"the connection to {self.address} broke: {type(error).__name__}: {error}"
        finally:
            self._fail_open(is_closed=False)
            self._ready.set()

    async def _leave(self) -> None:
        """Tell machines that nobody waits for what they are at."""
        for member in self._members.values():
            member.stop()
            if member.tasks:
                message = {"op": OPERATION, "ask": "leave", "client": self._name}
                await self._scheduler.broadcast(msg=message, workers=[member.address], on_error="ignore")

    async def _look(self) -> None:
        told = (await self._scheduler.identity())["workers"]
        for address in set(self._members) - set(told):
            self._lose(self._members.pop(address))
        for address, worker in told.items():
            if address not in self._members and worker["status"] == "running":
                self._meet(address, worker)
        now = time.monotonic()
        self._seen |= {one.machine.name: (one.machine, now) for one in self._members.values()}
        while self._waiting:  # those behind one that can be done are looked at when it is
            task = self._waiting[0]
            if any(when > now - _RETURN for machine, when in self._seen.values() if task.fits(machine)):
                break
            del self._waiting[0]
            reasons = [f"{name}: {why}" for name, why in task.without.items()]
            nobody = f"no machine is left that has {listed(list(task.needs)) or 'room'}"
            task.fail(NotDone("; ".join(reasons) or nobody))

    def _meet(self, address: str, worker: dict[str, Any]) -> None:
        """Give work to a machine that was not there, if it is one of ours."""
        try:
            machine = announced(worker.get(ANNOUNCED))
        except Refused as error:
            self.strangers[address] = f"{worker['name']} {error}"
            return
        member = self._members[address] = _Member(address, machine)
        assert self._loop is not None
        for _ in range(_AHEAD * machine.slots):
            member.slots.append(self._loop.create_task(self._work(member)))

    def _lose(self, member: _Member) -> None:
        """Let others do what a lost machine was at; what was lost before and alone there is guilty."""
        member.stop()
        for task in member.tasks:
            task.deaths += 1
            if task.deaths < _DEATHS:
                self._enter(task)
            else:
                who = f"{counted(_DEATHS, 'machine')} ended at it, the last was {member.machine.name}"
                task.fail(NotDone(who, ended=True))

    def _enter(self, task: _Task) -> None:
        """Let a task wait for a machine; if the loop ends, `_fail_open` fails it."""
        insort(self._waiting, task, key=lambda one: one.number)
        self._changed.set()

    async def _next(self, member: _Member) -> _Task:
        """Wait for a job for a machine. One that was lost before is alone there, so that it can be judged."""
        while True:
            task = next((one for one in self._waiting if one.fits(member.machine)), None)
            is_alone = any(one.deaths for one in member.tasks) or (task and task.deaths and member.tasks)
            if task is not None and not is_alone:
                self._waiting.remove(task)
                member.tasks[task] = None
                return task
            self._changed.clear()
            await self._changed.wait()

    async def _work(self, member: _Member) -> None:
        """Have a machine do one job after the other."""
        share = self.shares.setdefault(member.machine.name, Share())
        while True:
            task = await self._next(member)
            try:
                await self._have_done(member, task, share)
            except OSError as error:  # if the scheduler is gone, whoever looks finds and tells that
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
        """Have one job done, unless the machine has no room for it.

        Raises:
            NotDone: it was not done.
            RuntimeError: there is a bug.
        """
        name = member.machine.name
        for _ in range(_ATTEMPTS):
            try:
                parcel = await asyncio.to_thread(_pack, task.job)
            except OSError:  # what cannot be read is told best where it is
                self._give_to_thread(task, is_alone=True)
                return
            if (known := self._finished.get(parcel.key)) is not None:
                await asyncio.to_thread(_take, task, known)
                return
            parts = {hash: data for hash, data in parcel.small.items() if hash not in member.known}
            share.bytes += sum(map(len, parts.values())) + len(parcel.payload)
            job = {"client": self._name, "head": parcel.head.as_text(), "payload": parcel.payload}
            told = await self._ask(member, ask="job", parts=parts, **job)
            if told["status"] == "missing":
                member.known.difference_update(told["hashes"])
                told = await self._ship(member, parcel, told["hashes"], share)
            match told["status"]:
                case "done" | "raised":
                    task.machine = name
                    member.known.update(parcel.small)
                    if told["status"] == "done":
                        await asyncio.to_thread(self._finished.put, parcel.key, told["result"])
                    await asyncio.to_thread(_take, task, told["result"], told["status"])
                    return
                case "no room":
                    task.without[name] = told["message"]
                    return
                case "ended":
                    raise NotDone(told["message"], ended=True)
                case "refused":
                    raise NotDone(f"{name} refuses the job: {told['message']}")
                case "bug":
                    raise RuntimeError(f"on {name}: {told['message']}")
                case "changed":
                    forget_hashes()
        raise NotDone(f"the model changes while it travels to {name}")

    async def _ship(
        self, member: _Member, parcel: "_Parcel", hashes: Sequence[str], share: Share
    ) -> dict[str, Any]:
        """Send what is missing, in pieces; return what makes the job be asked again, or why not."""
        for hash in hashes:
            token, offset, size = secrets.token_hex(8), 0, parcel.head.wanted[hash]
            for data in pieces(parcel.large.get(hash) or parcel.small[hash]):
                about = {"hash": hash, "token": token, "offset": offset, "size": size}
                told = await self._ask(member, ask="piece", data=data, **about)
                if told["status"] != "ok":
                    return told
                offset += len(data)
                share.bytes += len(data)
            if offset != size:
                return {"status": "changed"}
        return {"status": "again"}

    async def _ask(self, member: _Member, **question: Any) -> dict[str, Any]:
        """Return the answer of a machine; if a connection breaks it is asked again while it is there."""
        while True:
            message = {"op": OPERATION, **question}
            told = await self._scheduler.broadcast(msg=message, workers=[member.address], on_error="ignore")
            if told:
                answer: dict[str, Any] = told[member.address]
                return answer
            await asyncio.sleep(2 * _WATCH)  # whoever looks finds that it is gone, and cancels this


def _do_here(task: _Task) -> None:
    try:
        task.finish(perform(task.job))
    except BaseException as error:
        task.fail(error)


def _take(task: _Task, result: bytes, status: str = "done") -> None:
    found = decode(result)
    if status == "done":
        task.finish(found)
    else:
        kind, message = found
        task.fail(getattr(errors, kind, errors.Error)(message))


class _Parcel(NamedTuple):
    """A job as it travels: small files and arrays go along, large ones when somebody misses them."""

    head: Head
    payload: bytes
    small: dict[str, bytes]
    large: dict[str, str | bytes]
    """By hash: a path, or the bytes of an array."""

    @property
    def key(self) -> str:
        return hash_of(self.head.as_text().encode() + self.payload)


def _pack(job: Job) -> _Parcel:
    """Return a job with the files of its model as they are now.

    Raises:
        OSError: a file cannot be read.
    """
    files, small, large = list[Sent](), dict[str, bytes](), dict[str, str | bytes]()
    names = [job.model, *(path for path, _ in files_beside(job.model))] if job.model else []
    for name in names:
        path = os.path.abspath(name)
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe can be read only once, and here
            raise OSError(errno.EINVAL, "it is no regular file")
        size = status.st_size
        if size < INLINE_BYTES:
            data = read_regular(path, INLINE_BYTES)
            hash, size = hash_of(data), len(data)
            small[hash] = data
        else:
            hash = known_hash(path)
            large[hash] = path
        files.append(Sent(path, hash, size))
    payload, arrays = encode(job.arguments, paths={job.model} if os.path.isabs(job.model) else ())
    told = tuple((hash, len(data)) for hash, data in arrays.items())
    return _Parcel(Head(job.name, os.getcwd(), tuple(files), told), payload, small, {**large, **arrays})


def split(runner: str) -> tuple[str, str]:
    """Return the machine that the name of a runner begins with, "" if there is none, and the rest."""
    host, slash, name = runner.partition("/")
    return (host, name) if slash else ("", runner)
