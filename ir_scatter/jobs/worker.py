"""The processes of a fleet: Dask's scheduler, and workers, which run jobs in child processes.

A worker answers three requests ("job", "piece", "leave"), each a message of plain data without code. The
worker process never runs a job itself: a child process does, which runs runtimes in its own children.
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
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.process import Child, Failure
from ir_scatter.jobs.machine import ANNOUNCED, OPERATION, Machine, announcement
from ir_scatter.jobs.security import Address, demand_reachable
from ir_scatter.jobs.store import Changed, NoRoom, Store
from ir_scatter.jobs.wire import RequestRefused, read_head

_WITHOUT_LIMIT = 1e9
_PAUSE = 2.0
"""Seconds between attempts to reconnect to a scheduler."""

Tell = Callable[[str], object]


def _without_pages(kind: type[Any]) -> type[Any]:
    """Return a subclass of a Dask server without web pages: these show all data to anyone."""
    return type(kind.__name__, (kind,), {"start_http_server": lambda *_, **__: None})


class _Arrivals(SchedulerPlugin):  # type: ignore[misc]
    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self._tell(f"{scheduler.workers[worker].name} connected from {scheduler.workers[worker].host}")

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self._tell(f"{worker} disconnected")


async def serve_scheduler(address: Address, tell: Tell, dashboard: str = "") -> None:
    """Run a scheduler until it is stopped.

    `dashboard` is the address of its web pages such as ":8787"; "" for no pages.

    Raises:
        Absent: it cannot listen at the address.
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
        raise Absent(f"{address.text}: cannot listen at this address: {reason.lower()}") from None
    scheduler.add_plugin(_Arrivals(tell))
    tell(f"the scheduler listens at {scheduler.address}")
    async with scheduler:
        await scheduler.finished()


class RequestHandler:
    """Answers the requests that a worker receives."""

    def __init__(self, store: Store, slots: int, child: str) -> None:
        """Run up to `slots` jobs at a time, each in a process that runs the module `child`."""
        self._store = store
        self._children = SimpleQueue[Child]()
        self._at_work: dict[Child, str] = {}
        self._left, self._lock = set[str](), Lock()
        for _ in range(slots):
            self._children.put(Child(child))
        self._slots = asyncio.Semaphore(slots)

    async def answer(self, comm: Any = None, ask: Any = None, **fields: Any) -> dict[str, Any]:
        """Return the answer to a request: a dictionary with `status` and the fields of that status."""
        try:
            match ask:
                case "job":
                    return await self._job(**fields)
                case "leave":
                    return self._leave(**fields)
                case "piece":
                    await asyncio.to_thread(self._store.put_piece, **fields)
                    return {"status": "ok"}
            raise RequestRefused("this is not a request that a worker handles")
        except TypeError:
            return {"status": "refused", "message": "this is not a request that a worker handles"}
        except RequestRefused as error:
            return {"status": "refused", "message": str(error)}
        except NoRoom as error:
            return {"status": "no room", "message": str(error)}
        except Changed:
            return {"status": "changed"}

    def _leave(self, client: str) -> dict[str, Any]:
        """End the jobs of a client that disconnects."""
        with self._lock:
            self._left.add(client)
            for child, who in self._at_work.items():
                if who == client:
                    child.interrupt()
        return {"status": "ok"}

    async def _job(self, client: str, head: Any, payload: Any, parts: Mapping[str, bytes]) -> dict[str, Any]:
        job = read_head(head, payload)
        for hash, data in parts.items():
            await asyncio.to_thread(self._store.put, hash, data)
        if missing := await asyncio.to_thread(self._store.missing, job):
            return {"status": "missing", "hashes": missing}
        async with self._slots:
            if client in self._left:
                return {"status": "left"}
            with self._store.mirror(job) as root:
                return await asyncio.to_thread(self._do, client, job.name, job.folder, payload, str(root))

    def _do(self, client: str, *question: str | bytes) -> dict[str, Any]:
        child = self._children.get()
        with self._lock:
            self._at_work[child] = client
        try:
            answer, _ = child.ask("perform", *question, limit=_WITHOUT_LIMIT, again=False)
        except Failure as failure:
            return {"status": "ended", "message": failure.message}
        finally:
            with self._lock:
                del self._at_work[child]
            # the process may be killed after it answered: the next job needs a new one
            if client in self._left:
                child.close()
            self._children.put(child)
        return dict(answer)


async def serve_worker(address: Address, machine: Machine, store: Store, tell: Tell, child: str) -> None:
    """Run a worker until it is stopped; if the scheduler is lost, wait for it to come back.

    Each job runs in a process of the module `child`.

    Raises:
        Absent: the scheduler cannot be reached at the start, or has a worker with this name.
    """
    _configure()
    await asyncio.to_thread(demand_reachable, address)
    handler = RequestHandler(store, machine.slots, child)
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
        worker.handlers[OPERATION] = handler.answer
        with suppress(OSError, TimeoutError):
            async with worker:
                tell(f"{machine.name} works for {address.text}")
                await worker.finished()
        tell(f"the connection to {address.text} is lost; {machine.name} waits for the scheduler to return")
        while True:
            await asyncio.sleep(_PAUSE)
            with suppress(Absent):
                await asyncio.to_thread(demand_reachable, address)
                break


async def _demand_free_name(address: Address, name: str) -> None:
    async with rpc(
        address.text, connection_args=address.security().get_connection_args("worker")
    ) as scheduler:
        identity = await scheduler.identity()
    if any(worker["name"] == name for worker in identity["workers"].values()):
        raise Absent(
            f"{address.text} has a worker {name!r} already; {Parameter('name')} gives this one another name"
        )


def _configure() -> None:
    """Configure Dask: log only critical errors, detect lost workers quickly, keep connections open."""
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
