"""What runs on the machines of a fleet: Dask's scheduler, and workers that do jobs in processes of their own.

A worker answers four questions, each a message of plain data; none of them holds code. It never does a job
itself: that happens in a child, which runs plugins in children of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock
from typing import Any

from distributed import Scheduler, Worker, rpc
from distributed.diagnostics.plugin import SchedulerPlugin

from ir_scatter.core.errors import Absent
from ir_scatter.core.process import Child, Failure
from ir_scatter.jobs.machine import ANNOUNCED, OPERATION, Machine, announcement
from ir_scatter.jobs.security import Address, demand_reachable
from ir_scatter.jobs.store import Changed, NoRoom, Store
from ir_scatter.jobs.wire import Refused, read_head

_WITHOUT_LIMIT = 1e9
_PAUSE = 2.0
"""Seconds between attempts to find a scheduler that was there before."""

Tell = Callable[[str], object]


def _without_pages(kind: type[Any]) -> type[Any]:
    """Return a class that serves no pages: whoever reaches them would see everything."""
    return type(kind.__name__, (kind,), {"start_http_server": lambda *_, **__: None})


class _Arrivals(SchedulerPlugin):  # type: ignore[misc]
    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self._tell(f"{scheduler.workers[worker].name} is here, from {scheduler.workers[worker].host}")

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self._tell(f"{worker} is gone")


async def serve_scheduler(address: Address, tell: Tell, dashboard: str = "") -> None:
    """Run a scheduler until it is stopped; with pages only if an address for them is given, ":8787".

    Raises:
        Absent: it cannot listen there.
    """
    _configure()
    protocol, host, port = address.parts
    pages = {"dashboard": True, "dashboard_address": dashboard} if dashboard else {}
    kind = Scheduler if dashboard else _without_pages(Scheduler)
    try:
        scheduler = await kind(host=host, port=port, protocol=protocol, security=address.security(), **pages)
    except (OSError, RuntimeError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = getattr(cause, "strerror", None) or str(cause)
        raise Absent(f"{address.text}: cannot listen there: {reason.lower()}") from None
    scheduler.add_plugin(_Arrivals(tell))
    tell(f"the scheduler listens at {scheduler.address}")
    async with scheduler:
        await scheduler.finished()


class Answers:
    """Answers the questions that a worker is asked."""

    def __init__(self, store: Store, slots: int, child: str) -> None:
        """Do so many jobs at a time, each in a process whose handlers are those of the module `child`."""
        self._store = store
        self._children = SimpleQueue[Child]()
        self._at_work: dict[Child, str] = {}
        self._left, self._lock = set[str](), Lock()
        for _ in range(slots):
            self._children.put(Child(child))
        self._slots = asyncio.Semaphore(slots)

    async def answer(self, comm: Any = None, ask: Any = None, **given: Any) -> dict[str, Any]:
        """Return what came of a question: a `status`, and what belongs to it."""
        try:
            match ask:
                case "job":
                    return await self._job(**given)
                case "leave":
                    return self._leave(**given)
                case "piece":
                    await asyncio.to_thread(self._store.put_piece, **given)
                    return {"status": "ok"}
            raise Refused("this is no question that a worker is asked")
        except TypeError:
            return {"status": "refused", "message": "this is no question that a worker is asked"}
        except Refused as error:
            return {"status": "refused", "message": str(error)}
        except NoRoom as error:
            return {"status": "no room", "message": str(error)}
        except Changed:
            return {"status": "changed"}

    def _leave(self, client: str) -> dict[str, Any]:
        """End what is done for a client that does not wait any longer."""
        with self._lock:
            self._left.add(client)
            for child, who in self._at_work.items():
                if who == client:
                    child.interrupt()
        return {"status": "ok"}

    async def _job(self, client: str, head: Any, payload: Any, parts: Mapping[str, bytes]) -> dict[str, Any]:
        told = read_head(head, payload)
        for hash, data in parts.items():
            await asyncio.to_thread(self._store.put, hash, data)
        if missing := await asyncio.to_thread(self._store.missing, told):
            return {"status": "missing", "hashes": missing}
        async with self._slots:
            if client in self._left:
                return {"status": "left"}
            with self._store.mirror(told) as root:
                return await asyncio.to_thread(self._do, client, told.name, told.folder, payload, str(root))

    def _do(self, client: str, *question: str | bytes) -> dict[str, Any]:
        child = self._children.get()
        with self._lock:
            self._at_work[child] = client
        try:
            found, _ = child.ask("perform", *question, limit=_WITHOUT_LIMIT, again=False)
        except Failure as failure:
            return {"status": "ended", "message": failure.message}
        finally:
            with self._lock:
                del self._at_work[child]
            if client in self._left:  # it may be killed although it had answered: the next one needs another
                child.close()
            self._children.put(child)
        return dict(found)


async def serve_worker(address: Address, machine: Machine, store: Store, tell: Tell, child: str) -> None:
    """Do jobs until it is stopped, in processes of a module; a scheduler that goes away is waited for.

    Raises:
        Absent: the scheduler cannot be reached at the beginning, or has a worker of this name.
    """
    _configure()
    await asyncio.to_thread(demand_reachable, address)
    answers = Answers(store, machine.slots, child)
    while True:
        await _demand_free_name(address, machine.name)
        worker = _without_pages(Worker)(
            address.text,
            name=machine.name,
            nthreads=machine.slots,
            security=address.security(),
            startup_information={ANNOUNCED: lambda _: announcement(machine)},
            memory_limit=0,
        )
        worker.handlers[OPERATION] = answers.answer
        with suppress(OSError, TimeoutError):
            async with worker:
                tell(f"{machine.name} works for {address.text}")
                await worker.finished()
        tell(f"{address.text} is gone; {machine.name} waits for it")
        while True:
            await asyncio.sleep(_PAUSE)
            with suppress(Absent):
                await asyncio.to_thread(demand_reachable, address)
                break


async def _demand_free_name(address: Address, name: str) -> None:
    async with rpc(
        address.text, connection_args=address.security().get_connection_args("worker")
    ) as scheduler:
        told = await scheduler.identity()
    if any(one["name"] == name for one in told["workers"].values()):
        raise Absent(f"{address.text} has a worker {name!r} already; --name gives this one another name")


def _configure() -> None:
    """Let Dask speak of what is wrong only, notice quickly who is gone, and keep connections open."""
    import dask

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set(
        {
            "distributed.scheduler.reuse-broadcast-comm": True,
            "distributed.scheduler.worker-ttl": "60s",
            "distributed.comm.timeouts.connect": "5s",
            "distributed.worker.daemon": False,
        }
    )
