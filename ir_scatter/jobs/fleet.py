"""Does jobs on the machines of a Dask scheduler, which hands messages on and knows who is there.

What a machine does next is decided here, when it has room for it: so a job that needs a device goes to who
has it, large files travel once, and what a lost machine was at is known and goes elsewhere.
"""

import asyncio
import os
import secrets
import time
from bisect import insort
from collections.abc import Iterator, Sequence
from concurrent.futures import Future as Promise
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from distributed import rpc

from ir_scatter.core import errors
from ir_scatter.core.errors import Absent, UsageError
from ir_scatter.core.shapes import counted, listed
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.jobs import Gone, Job, NotDone, perform
from ir_scatter.jobs.machine import ANNOUNCED, OPERATION, Machine
from ir_scatter.jobs.security import Address, demand_reachable
from ir_scatter.jobs.store import forget_hashes, known_hash, pieces
from ir_scatter.jobs.wire import INLINE_BYTES, Head, Sent, decode, encode, hash_of
from ir_scatter.reading import files_beside
from ir_scatter.version import __version__

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
_SLOW = 0.5
"""A machine is slow that does less than this share of what the median does."""


@dataclass(eq=False)
class _Task:
    """A job on its way. `number` is its place in the order of jobs."""

    number: int
    job: Job
    needs: tuple[str, ...]
    promise: Promise[Any] = field(default_factory=Promise)
    machine: str = ""
    deaths: int = 0
    without: dict[str, str] = field(default_factory=dict)
    """Machines that have no room for it, and what they said."""
    since: float | None = None
    """When nobody was left to do it."""

    def result(self) -> Any:
        return self.promise.result()

    def fits(self, machine: Machine) -> bool:
        is_there = self.job.machine in {"", machine.name} and machine.name not in self.without
        return is_there and all(map(machine.offers, self.needs))

    def finish(self, found: Any) -> None:
        if not self.promise.done():
            self.promise.set_result(found)

    def fail(self, error: BaseException) -> None:
        if not self.promise.done():
            self.promise.set_exception(error)


@dataclass(eq=False)
class _Member:
    """A machine that is there, by the address of its worker, and what it is at."""

    address: str
    machine: Machine
    tasks: dict[_Task, None] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    """Hashes of what was sent there."""
    slots: list["asyncio.Task[None]"] = field(default_factory=list)


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
    """The machines of a scheduler."""

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
        self.address, self.gone, self.shares = address.text, "", dict[str, Share]()
        self._connection = address.security().get_connection_args("client")
        self._kept, self._resumes, self._finished = kept, resume, set[Path]()
        self._members: dict[str, _Member] = {}
        self._seen: dict[str, Machine] = {}
        self._name = secrets.token_hex(8)
        self._strangers: dict[str, str] = {}
        self._waiting: list[_Task] = []
        self._count, self._done, self._has_doubts = 0, 0, False
        self._ready, self._loop = Event(), asyncio.new_event_loop()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()
        self._here = ThreadPoolExecutor(max(2 * len(self._members), 1))
        if not self._members:
            self.close()
            raise Absent(self.gone or "; ".join(self._strangers.values()) or f"{self.address} has no workers")

    # What is there

    @property
    def machines(self) -> list[Machine]:
        """The machines in the order of their names, those that went away, too: they may come back."""
        return sorted(self._seen.copy().values(), key=lambda one: one.name)

    @property
    def strangers(self) -> list[str]:
        """Say which workers are not used, and why."""
        return list(self._strangers.values())

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
        """Return what has been done, by machine."""
        return f"{self._done} of {self._count}{''.join(f'; {line}' for line in self.told())}"

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
        task = _Task(self._count, job, tuple(needs))
        self._count += 1
        if not any(map(task.fits, self.machines)):
            self._do_here(task)
            return task
        try:
            self._loop.call_soon_threadsafe(self._enter, task)
        except RuntimeError:  # it is closed
            task.fail(Gone(self.gone))
        return task

    def forget(self) -> None:
        """Keep nothing of what is finished: nobody will have to go on."""
        for path in set() if self.gone else self._finished:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave; what is at work is not waited for."""

        def leave() -> None:
            if not self._leaving.done():
                self._leaving.set_result(None)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(leave)
        self._thread.join()
        if "_here" in self.__dict__:
            self._here.shutdown(wait=False, cancel_futures=True)

    def _do_here(self, task: _Task) -> None:
        def work() -> None:
            try:
                task.finish(perform(task.job))
            except BaseException as error:
                task.fail(error)
            self._done += 1

        self._here.submit(work)

    # In the thread of the loop

    def _run(self) -> None:
        logging_of_dask()
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._watch())
        rest = asyncio.all_tasks(self._loop)
        for one in rest:
            one.cancel()
        self._loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        self._loop.close()
        self._ready.set()

    def _enter(self, task: _Task) -> None:
        if self.gone:
            task.fail(Gone(self.gone))
            return
        insort(self._waiting, task, key=lambda one: one.number)
        self._has_doubts = self._has_doubts or bool(task.without) or not self._members
        self._changed.set()

    async def _watch(self) -> None:
        """Look who is there, again and again, until the scheduler is gone."""
        self._changed = asyncio.Event()
        self._leaving = self._loop.create_future()
        try:
            async with rpc(self.address, connection_args=self._connection) as self._scheduler:
                while True:
                    await self._look()
                    self._ready.set()
                    await asyncio.wait([self._leaving], timeout=_WATCH)
                    if self._leaving.done():
                        await self._leave()
                        return
        except (OSError, TimeoutError):
            self.gone = f"the scheduler at {self.address} is gone"
        except Exception as error:
            self.gone = f"the connection to {self.address} broke: {type(error).__name__}: {error}"
        finally:
            lost = [task for member in self._members.values() for task in member.tasks]
            for task in [*lost, *self._waiting]:
                task.fail(Gone(self.gone or "the fleet was left"))

    async def _leave(self) -> None:
        """Tell machines that nobody waits for what they are at."""
        for member in self._members.values():
            for slot in member.slots:
                slot.cancel()
            if member.tasks:
                message = {"op": OPERATION, "ask": "leave", "client": self._name}
                await self._scheduler.broadcast(msg=message, workers=[member.address], on_error="ignore")

    async def _look(self) -> None:
        told = (await self._scheduler.identity())["workers"]
        for address in set(self._members) - set(told):
            self._lose(self._members.pop(address))
        for address, worker in told.items():
            if address in self._members or worker["status"] != "running":
                continue
            about = worker.get(ANNOUNCED) or {}
            try:
                if (version := about.get("version", "none")) != __version__:
                    remedy = f"pip install ir-scatter=={__version__} there"
                    raise ValueError(f"has ir-scatter {version}, and here is {__version__}: {remedy}")
                member = self._members[address] = _Member(address, Machine.from_json(about))
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                why = error if type(error) is ValueError else "says of itself what nobody understands"
                self._strangers[address] = f"{worker['name']} {why}"
                continue
            self._seen[member.machine.name] = member.machine
            count = _AHEAD * member.machine.slots
            member.slots = [self._loop.create_task(self._work(member)) for _ in range(count)]
        self._give_up()

    def _lose(self, member: _Member) -> None:
        """Let others do what a lost machine was at; what was lost before and alone there is guilty."""
        for slot in member.slots:
            slot.cancel()
        for task in member.tasks:
            task.deaths += 1
            if task.deaths < _DEATHS:
                self._enter(task)
            else:
                who = f"{counted(_DEATHS, 'machine')} ended at it, the last was {member.machine.name}"
                task.fail(NotDone(who, ended=True))
                self._done += 1
        member.tasks.clear()
        self._has_doubts = True
        self._changed.set()

    def _give_up(self) -> None:
        """Fail what nobody can do any more, after some patience."""
        if not self._has_doubts:
            return
        self._has_doubts = False
        for task in list(self._waiting):
            if any(task.fits(one.machine) for one in self._members.values()):
                task.since = None
                continue
            if task.without:
                self._waiting.remove(task)
                task.fail(NotDone("; ".join(f"{name}: {why}" for name, why in task.without.items())))
            elif time.monotonic() - (task.since or time.monotonic()) > _RETURN:
                self._waiting.remove(task)
                task.fail(NotDone(f"no machine is left that has {listed(list(task.needs)) or 'room'}"))
            else:
                task.since, self._has_doubts = task.since or time.monotonic(), True

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
                found = await self._done_by(member, task, share)
            except OSError:  # the scheduler is gone, as whoever looks finds and tells
                return
            except Exception as error:
                task.fail(error)
            else:
                if found is _ELSEWHERE:
                    member.tasks.pop(task)
                    self._enter(task)
                    self._give_up()
                    continue
            member.tasks.pop(task, None)
            share.jobs, share.last = share.jobs + 1, time.monotonic()
            self._done += 1
            self._changed.set()

    async def _done_by(self, member: _Member, task: _Task, share: Share) -> Any:
        """Have one job done; return what the promise was given, or that it goes elsewhere."""
        name = member.machine.name
        for _ in range(_ATTEMPTS):
            try:
                parcel = await asyncio.to_thread(_pack, task.job)
            except OSError:  # what cannot be read is told best where it is
                self._do_here(task)
                self._done -= 1
                return None
            if (known := self._known(parcel)) is not None:
                return await asyncio.to_thread(_take, task, known)
            parts = {hash: data for hash, data in parcel.small.items() if hash not in member.known}
            share.bytes += sum(map(len, parts.values())) + len(parcel.payload)
            job = {"client": self._name, "head": parcel.head, "payload": parcel.payload, "parts": parts}
            told = await self._ask(member, ask="job", **job)
            if told["status"] == "missing":
                member.known.difference_update(told["hashes"])
                told = await self._ship(member, parcel, told["hashes"], share)
            match told["status"]:
                case "done" | "raised":
                    task.machine = name
                    member.known.update(parcel.small)
                    await asyncio.to_thread(self._keep, parcel, told)
                    return await asyncio.to_thread(_take, task, told)
                case "no room":
                    task.without[name] = told["message"]
                    return _ELSEWHERE
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
            token, offset, size = secrets.token_hex(8), 0, parcel.sizes[hash]
            for data in parcel.pieces(hash):
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
        """Return the answer of a machine; if it is gone this never returns.

        A connection that breaks says nothing of the machine: it is asked again while it is there.
        """
        while True:
            message = {"op": OPERATION, **question}
            told = await self._scheduler.broadcast(msg=message, workers=[member.address], on_error="ignore")
            if told:
                answer: dict[str, Any] = told[member.address]
                return answer
            await asyncio.sleep(_WATCH)  # whoever looks finds that it is gone, and cancels this
            if self._members.get(member.address) is not member:
                await asyncio.Event().wait()

    # What is finished

    def _known(self, parcel: "_Parcel") -> dict[str, Any] | None:
        if self._kept is None or not self._resumes:
            return None
        try:
            data = (self._kept / parcel.key).read_bytes()
        except OSError:
            return None
        self._finished.add(self._kept / parcel.key)
        return {"status": "done", "result": data}

    def _keep(self, parcel: "_Parcel", told: dict[str, Any]) -> None:
        if self._kept is None or told["status"] != "done":
            return
        with suppress(OSError):
            self._kept.mkdir(parents=True, exist_ok=True)
            part = self._kept / f"{parcel.key}.{os.getpid()}"
            part.write_bytes(told["result"])
            self._finished.add(part.replace(self._kept / parcel.key))


_ELSEWHERE = object()


def _take(task: _Task, told: dict[str, Any]) -> None:
    found = decode(told["result"])
    if told["status"] == "done":
        task.finish(found)
    else:
        kind, message = found
        task.fail(getattr(errors, kind, errors.Error)(message))


def logging_of_dask() -> None:
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class _Parcel:
    """A job as it travels: small files and arrays go along, large ones when somebody misses them."""

    head: str
    payload: bytes
    small: dict[str, bytes]
    large: dict[str, str | bytes]
    """By hash: a path, or the bytes of an array."""
    sizes: dict[str, int]

    @property
    def key(self) -> str:
        return hash_of(self.head.encode() + self.payload)

    def pieces(self, hash: str) -> Iterator[bytes]:
        return pieces(self.large.get(hash) or self.small[hash])


def _pack(job: Job) -> _Parcel:
    """Return a job with the files of its model as they are now.

    Raises:
        OSError: a file cannot be read.
    """
    files, small, large = list[Sent](), dict[str, bytes](), dict[str, str | bytes]()
    names = [job.model, *(path for path, _ in files_beside(job.model))] if job.model else []
    for name in names:
        path = os.path.abspath(name)
        size = os.stat(path).st_size
        if size < INLINE_BYTES:
            data = Path(path).read_bytes()
            hash, size = hash_of(data), len(data)
            small[hash] = data
        else:
            hash = known_hash(path)
            large[hash] = path
        files.append(Sent(path, hash, size))
    payload, arrays = encode(job.arguments, paths={job.model} if os.path.isabs(job.model) else ())
    large.update(arrays)
    told = tuple((hash, len(data)) for hash, data in arrays.items())
    head = Head(job.name, os.getcwd(), tuple(files), told)
    return _Parcel(head.as_text(), payload, small, large, head.wanted)


def split(runner: str) -> tuple[str, str]:
    """Return the machine that the name of a runner begins with, "" if there is none, and the rest."""
    host, slash, name = runner.partition("/")
    return (host, name) if slash else ("", runner)
