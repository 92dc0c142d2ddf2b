"""A scheduler and workers in this process, and machines that are made up; jobs are done in real children."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Any

from ir_scatter import all_jobs
from ir_scatter.jobs.fleet import Fleet
from ir_scatter.jobs.machine import Machine
from ir_scatter.jobs.security import Address, make_certificates
from ir_scatter.jobs.store import Store
from ir_scatter.jobs.worker import serve_scheduler, serve_worker
from ir_scatter.runners.base import Availability
from ir_scatter.version import __version__

MACHINE = Machine(
    "a",
    "lab",
    "Linux x86_64",
    "a processor",
    ("avx2",),
    "3.11.9",
    __version__,
    {"openvino": "2026.4.1"},
    1,
    (
        Availability("openvino:CPU", True, full_name="a processor"),
        Availability("openvino:GPU", False, "none"),
    ),
)


class Lab:
    """What runs in the thread of a loop; `told` is what it says."""

    def __init__(self, folder: Path, address: Address) -> None:
        self.folder, self.address, self.told = folder, address, list[str]()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.running: dict[str, Any] = {}

    def start(self, name: str, work: Coroutine[Any, Any, None], sign: str) -> None:
        self.running[name] = asyncio.run_coroutine_threadsafe(work, self._loop)
        limit = time.monotonic() + 20
        while not any(sign in line for line in self.told):
            if self.running[name].done():
                self.running[name].result()
            assert time.monotonic() < limit, self.told
            time.sleep(0.02)

    def stop(self, name: str) -> None:
        work = self.running.pop(name)
        work.cancel()
        time.sleep(0.1)

    def worker(
        self, name: str = "a", limit: int = 1 << 30, shared: tuple[str, ...] = (), **about: Any
    ) -> None:
        machine = replace(MACHINE, name=name, **about)
        store = Store(self.folder / "cache" / name, limit, shared)
        self.start(
            name,
            serve_worker(self.address, machine, store, self.told.append, all_jobs.__name__),
            f"{name} works for",
        )

    def again(self, name: str) -> None:
        """Start a worker of a name that is there."""
        store = Store(self.folder / "again", 1000)
        work = serve_worker(
            self.address, replace(MACHINE, name=name), store, self.told.append, all_jobs.__name__
        )
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def fleet(self, **options: Any) -> Fleet:
        return Fleet(self.address, **options)

    def close(self) -> None:
        for name in [*self.running][::-1]:
            self.stop(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def free_port() -> int:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def lab(folder: Path, protocol: str = "tls") -> Iterator[Lab]:
    """Give a lab with a scheduler, on loopback."""
    text, ca, cert, key = f"{protocol}://127.0.0.1:{free_port()}", "", "", ""
    if protocol == "tls":
        ca, cert, key = map(str, make_certificates(str(folder / "certificates")))
    made = Lab(folder, Address(text, ca, cert, key))
    try:
        made.start("scheduler", serve_scheduler(made.address, made.told.append), "listens")
        yield made
    finally:
        made.close()
