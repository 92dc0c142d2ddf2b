"""Jobs on machines of a scheduler: who does them, what travels, and what is lost when somebody goes."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copy
from threading import Event
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("distributed")

from ir_scatter.core.errors import Absent, BadFeed, UsageError
from ir_scatter.core.files import Source
from ir_scatter.jobs import Gone, Job, NotDone
from ir_scatter.jobs import fleet as fleets
from ir_scatter.jobs.fleet import Fleet
from ir_scatter.jobs.local import local
from ir_scatter.jobs.machine import ANNOUNCED, announcement
from ir_scatter.jobs.security import Address
from ir_scatter.jobs.store import Store
from ir_scatter.jobs.wire import SentFile, hash_of
from ir_scatter.jobs.worker import RequestHandler, serve_scheduler
from ir_scatter.lint import Options, check_file, check_files
from tests.jobs.lab import MACHINE, Lab, free_port, lab

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab")) as made:
        made.worker("a")
        made.worker("b")
        yield made


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, "tcp") as made:
        yield made


def validate(path: str | Path) -> Job:
    return Job("validate", (Source(str(path)), Options()), str(path))


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    found = []
    for number, source in enumerate(sorted((SAMPLES / "broken").glob("*.[xo][mn]*"))):
        found.append(str(copy(source, tmp_path / f"{number}{source.suffix}")))
        if source.with_suffix(".bin").exists():
            copy(source.with_suffix(".bin"), tmp_path / f"{number}.bin")
    return found


@pytest.mark.parametrize("is_relative", [False, True])
def test_the_same_is_found_as_here(
    shared: Lab, models: list[str], is_relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [os.path.relpath(name) if is_relative else name for name in models]
    sources = [Source(name) for name in [*names, str(tmp_path / "missing.xml")]]
    with closing(shared.fleet()) as fleet:
        assert check_files(sources, Options(), executor=fleet) == check_files(sources, Options())
        shares = {name: one.jobs for name, one in fleet.shares.items()}
    assert set(shares) == {"a", "b"}
    assert sum(shares.values()) >= len(names)


def test_weights_and_what_is_large_travel_once(
    shared: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces, when somebody misses them."""
    monkeypatch.setattr(fleets, "INLINE_BYTES", 64)
    monkeypatch.setattr("ir_scatter.jobs.store.PIECE_BYTES", 1000)
    model = Path(copy(next((SAMPLES / "broken").glob("*.xml")), tmp_path / "m.xml"))
    model.with_suffix(".bin").write_bytes(os.urandom(5500))
    with closing(shared.fleet()) as fleet:
        job = validate(model)._replace(machine="a")
        sent = []
        for _ in range(2):
            fleet.submit(job).result()
            sent.append(fleet.shares["a"].bytes)
    assert sent[0] > 5500
    assert sent[1] - sent[0] < 1000


def test_no_room_on_one_machine_is_room_on_another(own: Lab, models: list[str]) -> None:
    own.worker("small", limit=100)
    with closing(own.fleet()) as fleet:
        with pytest.raises(NotDone, match=r"small: it has \d+ bytes, more than the limit of 100"):
            fleet.submit(validate(models[0])).result()
        own.worker("large")
        while len(fleet.machines) < 2:
            time.sleep(0.05)
        assert fleet.submit(validate(models[0])).result().path == models[0]


def test_a_model_that_changes_while_it_travels(
    own: Lab, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent again as it is then; one that never stays is told."""
    own.worker()
    pack, count = fleets._pack, 0

    def changed(job: Job) -> Any:
        nonlocal count
        count += 1
        found = pack(job)
        if count <= most:
            found.small.update(dict.fromkeys(found.small, b"changed"))
        return found

    monkeypatch.setattr(fleets, "_pack", changed)
    with closing(own.fleet()) as fleet:
        most = 1
        assert fleet.submit(validate(models[0])).result().is_readable
        most = 1000
        with pytest.raises(NotDone, match="the model changes while it is sent to a"):
            fleet.submit(validate(models[1])).result()


def test_a_shared_folder_is_not_sent(own: Lab, models: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "INLINE_BYTES", 64)
    own.worker(shared=(str(Path(models[0]).parent),))
    with closing(own.fleet()) as fleet:
        found = fleet.submit(validate(models[0])).result()
    with local() as here:
        assert found == here.submit(validate(models[0])).result()
    assert not list((own.folder / "cache" / "a" / "kept").iterdir())


@pytest.mark.parametrize("name", ["m.xml", "m.bin"])
def test_a_shared_folder_stays_as_it_is(
    shared: Lab, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file of a model is the same on both machines, and the other one differs on the client's."""
    nfs, pack = tmp_path / "nfs", fleets._pack
    nfs.mkdir()
    source = next(one for one in (SAMPLES / "broken").glob("*.xml") if one.with_suffix(".bin").exists())
    copy(source, nfs / "m.xml")
    copy(source.with_suffix(".bin"), nfs / "m.bin")
    before = {path.name: path.read_bytes() for path in nfs.iterdir()}

    def packed(job: Job) -> Any:
        """Pack what the client has in that folder."""
        parcel = pack(job)
        data = (nfs / name).read_bytes() + b"\n"
        files = tuple(
            SentFile(file.path, hash_of(data), len(data)) if file.path.endswith(name) else file
            for file in parcel.head.files
        )
        small = {**parcel.small, hash_of(data): data}
        return parcel._replace(head=replace(parcel.head, files=files), small=small)

    with local() as here:
        expected = here.submit(validate(nfs / "m.xml")).result()
    monkeypatch.setattr(fleets, "_pack", packed)
    shared.worker(f"nfs-{name}", shared=(str(nfs),))
    try:
        with closing(shared.fleet()) as fleet:
            found = fleet.submit(validate(nfs / "m.xml")._replace(machine=f"nfs-{name}")).result()
    finally:
        shared.stop(f"nfs-{name}")
    assert found == expected
    assert {path.name: path.read_bytes() for path in nfs.iterdir()} == before


def test_a_large_file_that_vanishes_while_it_travels(
    own: Lab, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as what is not there, and nobody waits for it for ever."""
    own.worker()
    monkeypatch.setattr(fleets, "INLINE_BYTES", 64)
    pack = fleets._pack

    def packed(job: Job) -> Any:
        found = pack(job)
        Path(job.model).unlink()
        return found

    monkeypatch.setattr(fleets, "_pack", packed)
    with closing(own.fleet()) as fleet:
        found = fleet.submit(validate(models[0])).result(20)
        assert [one.code for one in found.diagnostics] == [
            one.code for one in check_file(Source(models[0]), Options()).diagnostics
        ]
        assert not found.is_readable


def test_what_is_no_job_is_refused_and_the_next_one_done(
    own: Lab, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own.worker()
    no_question = {"status": "refused", "message": "this is not a request that a worker handles"}
    no_job = {"status": "refused", "message": "this is not a job: its head is malformed"}
    hostile: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"ask": "run", "function": b"cbuiltins\neval\n"}, no_question),
        ({"ask": "job", "client": "x"}, no_question),
        ({"ask": "job", "client": "x", "head": "[]", "payload": b"", "parts": {}}, no_job),
    ]
    with closing(own.fleet()) as fleet:
        fleet.submit(validate(models[0])).result()
        (member,) = fleet._members.values()
        assert fleet._loop is not None
        for question, answer in hostile:
            asked = asyncio.run_coroutine_threadsafe(fleet._ask(member, **question), fleet._loop)
            assert asked.result(20) == answer
        with monkeypatch.context() as patch:
            patch.setattr("ir_scatter.jobs.wire.MOST_BYTES", 100)
            with pytest.raises(
                NotDone, match=r"^a refuses the job: the job has \d+ bytes, expected at most 100$"
            ):
                fleet.submit(validate(models[1])).result()
        assert fleet.submit(validate(models[1])).result().path == models[1]


def test_what_no_machine_has_is_reported_without_asking_one(shared: Lab) -> None:
    with closing(shared.fleet()) as fleet:
        with pytest.raises(Absent, match="has openvino:GPU"):
            fleet.submit(validate("m.xml"), ("openvino:GPU",))
        assert not any(one.jobs or one.bytes for one in fleet.shares.values())


def test_who_has_done_what_and_who_is_slow(shared: Lab) -> None:
    with closing(shared.fleet()) as fleet:
        for name, jobs in (("a", 40), ("b", 8), ("c", 30)):
            fleet.shares[name] = fleets.Share(jobs, 0, 100.0, 120.0)
        fleet.shares["d"] = fleets.Share()
        fleet._count, fleet._done = 100, 78
        assert str(fleet).splitlines() == [
            "78 of 100 jobs",
            "  ############.................. a 40, 2/s",
            "  ##............................ b 8, 0.4/s (slow)",
            "  #########..................... c 30, 1.5/s",
        ]


def test_no_pages_are_served_unless_somebody_asks(tmp_path: Path) -> None:
    """Neither a scheduler nor a worker listens anywhere but where machines talk."""
    psutil = pytest.importorskip("psutil")

    def ports() -> set[int]:
        found = psutil.Process().net_connections("tcp")
        return {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}

    before = ports()
    with lab(tmp_path, "tcp") as made:
        assert ports() - before == {made.address.parts[2]}
        made.worker()
        assert len(ports() - before) == 2
        pages, other = free_port(), Address(f"tcp://127.0.0.1:{free_port()}")
        made.told.clear()
        made.start("pages", serve_scheduler(other, made.told.append, f"127.0.0.1:{pages}"), "listens")
        assert {pages, other.parts[2]} < ports()
        with urlopen(f"http://127.0.0.1:{pages}/health") as page:
            assert page.read() == b"ok"


def test_what_nobody_has_is_told_before_any_work(shared: Lab) -> None:
    with closing(shared.fleet()) as fleet:
        with pytest.raises(Absent, match=r"^none of 2 machines has openvino:GPU; there is openvino:CPU$"):
            fleet.submit(validate("m.xml"), ("openvino:GPU",))
        with pytest.raises(Absent, match=r"^a has no openvino:NPU; there is openvino:CPU$"):
            fleet.demand("a/openvino:NPU")
        with pytest.raises(UsageError, match=r"there is no machine 'c', expected a, b$"):
            fleet.demand("c/openvino:CPU")
        fleet.demand("openvino:CPU.0")
        fleet.demand("b/openvino:AUTO:CPU")


def test_a_machine_with_another_version_is_not_used(own: Lab, models: list[str]) -> None:
    own.worker("old", version="0.0.9")
    expected = r"old has ir-scatter 0\.0\.9, this machine has \S+: pip install ir-scatter==\S+ there"
    with pytest.raises(Absent, match=expected):
        own.fleet()
    own.worker("new")
    with closing(own.fleet()) as fleet:
        assert [one.name for one in fleet.machines] == ["new"]
        assert len(fleet.strangers) == 1
        assert fleet.submit(validate(models[0])).machine == ""


@pytest.mark.long
def test_what_a_lost_machine_was_at_is_done_by_another(own: Lab, models: list[str]) -> None:
    own.worker("a")
    own.worker("b")
    with closing(own.fleet()) as fleet:
        futures = [fleet.submit(validate(path)) for path in models * 8]
        time.sleep(0.5)
        own.stop("a")
        found = [future.result() for future in futures]
    with local() as here:
        assert found[: len(models)] == [here.submit(validate(path)).result() for path in models]
    assert found == found[: len(models)] * 8


@pytest.mark.long
def test_what_ends_two_machines_is_given_up_alone(
    own: Lab, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else's job is lost, not even of those that were at work beside it."""
    job = RequestHandler._job

    async def guilty(self: RequestHandler, **given: Any) -> dict[str, Any]:
        if Path(models[2]).name in given["head"]:
            name = self._store._kept.parent.name
            own.running[name].cancel()
            await asyncio.sleep(60)
        return await job(self, **given)

    monkeypatch.setattr(RequestHandler, "_job", guilty)
    for name in "abc":
        own.worker(name)
    with closing(own.fleet()) as fleet:
        futures = [fleet.submit(validate(path)) for path in models * 2]
        for number, future in enumerate(futures):
            if number % len(models) != 2:
                assert future.result().path == models[number % len(models)]
                continue
            if number == 2:
                with pytest.raises(
                    NotDone, match=r"^2 machines ended during this job, the last one was [abc]$"
                ):
                    future.result()
                own.worker("d")
                own.worker("e")


def test_a_scheduler_that_goes_away(own: Lab, models: list[str]) -> None:
    """What is finished is there, the rest is not done, and whoever resumes does the rest alone."""
    own.worker()
    kept = own.folder / "finished"
    with closing(own.fleet(results_folder=kept)) as fleet:
        before = fleet.submit(validate(models[0]))
        before.result()
        own.stop("scheduler")
        while not fleet.gone:
            time.sleep(0.05)
        after = fleet.submit(validate(models[1]))
        assert before.result().path == models[0]
        with pytest.raises(Gone, match=r"the scheduler at tcp://\S+ is lost"):
            after.result()
        sources = [Source(path) for path in models]
        assert check_files(sources, Options(), executor=fleet) == []
    assert len(list(kept.iterdir())) == 1


def test_what_is_finished_is_not_done_again(shared: Lab, models: list[str], tmp_path: Path) -> None:
    kept, sources = tmp_path / "finished", [Source(path) for path in models]
    with closing(shared.fleet(results_folder=kept)) as fleet:
        first = check_files(sources, Options(), executor=fleet)
    Path(models[0]).write_bytes(Path(models[0]).read_bytes() + b"\n")
    with closing(shared.fleet(results_folder=kept, resume=True)) as fleet:
        assert check_files(sources, Options(), executor=fleet)[1:] == first[1:]
        assert sum(one.bytes for one in fleet.shares.values()) < 2 * Path(models[0]).stat().st_size


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tls://127.0.0.1:1", "cannot be reached: connection refused"),
        ("tls://nowhere.invalid:8786", "cannot be reached: "),
    ],
)
def test_nobody_answers(shared: Lab, address: str, message: str) -> None:
    with pytest.raises(Absent, match=message):
        Fleet(Address(address, shared.address.ca, shared.address.cert, shared.address.key))


def test_nobody_is_there(own: Lab) -> None:
    with pytest.raises(Absent, match="has no workers"):
        own.fleet()


def test_a_name_that_is_taken(shared: Lab) -> None:
    with pytest.raises(Absent, match="has a worker 'a' already; name gives this one another name"):
        shared.again("a")


def test_what_a_job_raises_is_raised_here(shared: Lab, models: list[str]) -> None:
    source = Source(str(SAMPLES / "operators" / "scatter_update_3_axis_0.xml"))
    options = Options(input_shapes={"data": (5,)})
    with closing(shared.fleet()) as fleet, pytest.raises(BadFeed) as there:
        check_files([source], options, executor=fleet)
    with pytest.raises(BadFeed) as here:
        check_files([source], options)
    assert str(there.value) == str(here.value)


def test_a_process_that_answered_while_its_client_left_is_not_asked_again(tmp_path: Path) -> None:
    """It may be killed by then, and whoever asks next would hear that it ended."""
    answers = RequestHandler(Store(tmp_path, 1 << 20), 1, "ir_scatter.jobs.child")
    told = list[str]()

    class Quick:
        def ask(self, *_: Any, **__: Any) -> tuple[dict[str, str], str]:
            answers._leave("me")
            return {"status": "done"}, ""

        def interrupt(self) -> None:
            told.append("killed")

        def close(self) -> None:
            told.append("ended")

    answers._children.get()
    answers._children.put(Quick())  # type: ignore[arg-type]
    answers._do("me", "validate", "/", b"", "/")
    assert told == ["killed", "ended"]
    answers._do("you", "validate", "/", b"", "/")
    assert told == ["killed", "ended"]


# Who waits for a task hears of its end, whenever the scheduler goes


class Here:
    """A scheduler that is made up, in the loop of the client: `answer` is what it does when asked who is there."""

    machine = announcement(MACHINE)

    def __init__(self) -> None:
        self.is_gone, self.is_mute, self.asked = False, False, Event()

    def __call__(self, *_: object, **__: object) -> "Here":
        return self

    async def __aenter__(self) -> "Here":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def identity(self) -> dict[str, Any]:
        if self.is_gone:
            raise OSError("connection refused")
        if self.is_mute:
            self.asked.set()
            await asyncio.Event().wait()
        return {"workers": {"w": {"status": "running", "name": "a", ANNOUNCED: self.machine}}}

    async def broadcast(self, **_: Any) -> dict[str, Any]:
        if self.is_mute:
            self.asked.set()
            await asyncio.Event().wait()
        raise OSError("broken pipe")


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Here:
    scheduler = Here()
    monkeypatch.setattr(fleets, "rpc", scheduler)
    monkeypatch.setattr(fleets, "demand_reachable", lambda _: None)
    monkeypatch.setattr(fleets, "_WATCH", 0.01)
    return scheduler


def made_up_fleet() -> Fleet:
    return Fleet(Address("tcp://127.0.0.1:1"))


@pytest.mark.parametrize("end", ["lost", "left"])
def test_a_task_that_comes_between_the_last_failed_one_and_the_end_of_the_loop(
    end: str, made_up: Here, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop still takes calls then, and does none of them."""
    has_failed_all, may_end = Event(), Event()
    fail_open = Fleet._fail_open

    def failing(self: Fleet, *, is_closed: bool) -> None:
        fail_open(self, is_closed=is_closed)
        has_failed_all.set()
        may_end.wait(30)

    made_up.is_mute = False
    fleet = made_up_fleet()
    monkeypatch.setattr(Fleet, "_fail_open", failing)
    if end == "lost":
        made_up.is_gone = True
    else:
        assert fleet._loop is not None
        fleet._loop.call_soon_threadsafe(fleet._leaving.set)
    assert has_failed_all.wait(30)
    task = fleet.submit(validate(models[0]))
    may_end.set()
    message = "the scheduler at tcp://127.0.0.1:1 is lost" if end == "lost" else "the fleet was closed"
    with pytest.raises(Gone, match=message):
        task.result(30)
    fleet.close()
    with pytest.raises(Gone):
        fleet.submit(validate(models[0])).result(30)


def test_a_task_that_enters_before_the_end_and_that_the_loop_never_sees(
    made_up: Here, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = made_up_fleet()
    assert fleet._loop is not None
    monkeypatch.setattr(fleet._loop, "call_soon_threadsafe", lambda *_: None)
    task = fleet.submit(validate(models[0]))
    made_up.is_gone = True
    with pytest.raises(Gone):
        task.result(30)


def test_a_connection_that_breaks_though_the_scheduler_stays(made_up: Here, models: list[str]) -> None:
    with closing(made_up_fleet()) as fleet:
        for _ in range(3):  # more than there are slots
            with pytest.raises(NotDone, match="the connection to a broke: broken pipe"):
                fleet.submit(validate(models[0])).result(30)


def test_a_scheduler_that_says_nothing_any_more(
    made_up: Here, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleets, "_FAREWELL", 0.01)
    with closing(made_up_fleet()) as left:
        made_up.is_mute = True
        assert made_up.asked.wait(30)
        task = left.submit(validate(models[0]))
    with pytest.raises(Gone, match="the fleet was closed"):
        task.result(30)
    made_up.is_mute = False
    with closing(made_up_fleet()) as fleet:
        monkeypatch.setattr(fleets, "_SILENCE", 0.05)
        made_up.is_mute = True
        with pytest.raises(Gone, match=r"did not answer for 0\.05 seconds"):
            fleet.submit(validate(models[0])).result(30)


def test_a_loop_that_cannot_begin(monkeypatch: pytest.MonkeyPatch, made_up: Here) -> None:
    def none() -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(asyncio, "new_event_loop", none)
    monkeypatch.setattr(asyncio.events, "new_event_loop", none)
    with pytest.raises(Absent, match=r"cannot be watched: OSError: .*Too many open files"):
        made_up_fleet()


def test_tasks_of_this_process_end_with_the_fleet(
    made_up: Here, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is at work and one that waits for its thread."""
    goes_on, begun = Event(), Event()

    def work(_: object) -> None:
        begun.set()
        goes_on.wait(30)

    monkeypatch.setattr(fleets, "perform", work)
    monkeypatch.setattr(fleets._Task, "fits", lambda *_: False)
    fleet = made_up_fleet()
    tasks = [fleet.submit(validate(models[0])) for _ in range(5)]
    assert begun.wait(30)
    fleet.close()
    for task in tasks:
        with pytest.raises(Gone, match="the fleet was closed"):
            task.result(30)
    goes_on.set()
