"""Processes that are kept and fed: crashes, time limits, noise, arrays, and the end of their parent."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ir_scatter.runners import arena
from ir_scatter.runners.outcome import Status
from ir_scatter.runners.worker import Stopped, Worker

ECHO = "tests.runners.echo_child"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(ECHO)
    yield found
    found.close()


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{process_id}/status").read_text()


def wait_until_gone(process_id: int) -> None:
    for _ in range(200):
        if not is_alive(process_id):
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process_id} is still there")


def test_one_process_answers_many_questions(worker: Worker) -> None:
    numbers = []
    for number in range(200):
        array = np.full((3, 2), number, np.int32)
        answer, arrays = worker.ask({"do": "echo", "say": number}, [array], 60)
        assert answer["said"] == number
        assert np.array_equal(arrays[0], array)
        numbers.append(answer["answered"])
    assert numbers == list(range(1, 201))
    assert worker.starts == 1


def test_nothing_is_started_before_the_first_question(worker: Worker) -> None:
    assert worker.process_id is None
    assert worker.starts == 0


def test_arrays_of_an_answer_can_be_written_to_and_outlive_the_process(worker: Worker) -> None:
    _, (array,) = worker.ask({"do": "echo"}, [np.arange(6).reshape(2, 3)], 60)
    worker.close()
    array[0, 0] = 7
    assert array.tolist() == [[7, 1, 2], [3, 4, 5]]


def test_noise_stays_off_the_answers_and_off_the_terminal(
    worker: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    answer, _ = worker.ask({"do": "talk"}, [], 60)
    assert answer["read"] == ""
    assert worker.ask({"do": "echo", "say": "still"}, [], 60)[0]["said"] == "still"
    worker.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
def test_a_crash_is_told_by_its_signal_and_the_next_question_is_answered(worker: Worker, name: str) -> None:
    with pytest.raises(Stopped) as caught:
        worker.ask({"do": "crash", "signal": name}, [], 60)
    assert caught.value.status is Status.CRASHED
    assert caught.value.message == f"the process crashed ({name})"
    assert worker.ask({"do": "echo", "say": "back"}, [], 60)[0]["said"] == "back"
    assert worker.starts == 2


def test_a_process_that_may_have_been_damaged_before_gets_a_second_chance(worker: Worker) -> None:
    worker.ask({"do": "echo"}, [], 60)
    answer, _ = worker.ask({"do": "crash_later"}, [], 60)
    assert answer["answered"] == 0
    assert worker.starts == 2


def test_a_question_that_crashes_a_new_process_too_is_not_asked_forever(worker: Worker) -> None:
    worker.ask({"do": "echo"}, [], 60)
    with pytest.raises(Stopped, match="SIGSEGV"):
        worker.ask({"do": "crash", "signal": "SIGSEGV"}, [], 60)
    assert worker.starts == 2


def test_the_last_words_of_a_process_that_leaves_are_told(worker: Worker) -> None:
    with pytest.raises(Stopped) as caught:
        worker.ask({"do": "leave"}, [], 60)
    assert caught.value.message == "the process ended with 3: last words"


def test_a_process_that_takes_too_long_is_killed(worker: Worker) -> None:
    worker.ask({"do": "echo"}, [], 60)
    first = worker.process_id
    assert first is not None
    started = time.monotonic()
    with pytest.raises(Stopped) as caught:
        worker.ask({"do": "sleep", "seconds": 60}, [], 0.3)
    assert caught.value.status is Status.TIMEOUT
    assert caught.value.message == "no answer within 0.3 seconds"
    assert time.monotonic() - started < 10
    assert not is_alive(first)
    assert worker.ask({"do": "echo", "say": 1}, [], 60)[0]["said"] == 1


def test_a_time_limit_may_be_infinite(worker: Worker) -> None:
    assert worker.ask({"do": "echo", "say": 1}, [], float("inf"))[0]["said"] == 1


def test_failures_and_bugs_end_no_process(worker: Worker) -> None:
    answer, _ = worker.ask({"do": "fail"}, [], 60)
    assert answer == {"status": "refused", "message": "I will not"}
    answer, _ = worker.ask({"do": "bug"}, [], 60)
    assert answer["status"] == "bug"
    assert "ZeroDivisionError" in answer["message"]
    assert worker.starts == 1


def test_a_module_that_cannot_be_imported_is_told() -> None:
    worker = Worker("tests.runners.no_such_child")
    with pytest.raises(Stopped, match="ended with 1: ModuleNotFoundError: No module named"):
        worker.ask({"do": "echo"}, [], 60)


def test_the_environment_is_made_when_the_process_starts() -> None:
    made = []

    def environment() -> dict[str, str]:
        made.append(1)
        return {"IR_SCATTER_TEST": "set"}

    worker = Worker(ECHO, environment)
    assert not made
    answer, _ = worker.ask({"do": "echo"}, [], 60)
    assert answer["variable"] == "set"
    assert "IR_SCATTER_TEST" not in os.environ
    worker.close()


def test_threads_take_turns(worker: Worker) -> None:
    said = []

    def ask(number: int) -> None:
        array = np.full(1000, number)
        answer, (echoed,) = worker.ask({"do": "echo", "say": number}, [array], 60)
        said.append(answer["said"] == number and bool((echoed == number).all()))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [True] * 8
    assert worker.starts == 1


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(arena, "_SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    worker = Worker(ECHO)
    worker.ask({"do": "echo"}, [np.zeros(1000)], 60)
    folders = list(tmp_path.iterdir())
    assert folders
    assert [file.name for folder in folders for file in folder.iterdir()] == ["noise"]
    worker.close()
    assert list(tmp_path.iterdir()) == []


def test_arrays_go_to_the_next_folder_where_the_first_has_no_room(tmp_path: Path) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    full.mkdir()
    roomy.mkdir()
    (full / "a").symlink_to("/dev/full")
    path, table = arena.write([str(full), str(roomy)], "a", [np.arange(100_000)])
    assert Path(path) == roomy / "a"
    assert np.array_equal(arena.read(path, table, remove=True)[0], np.arange(100_000))


_ORPHAN = f"""
import os, sys
from ir_scatter.runners.worker import Worker
worker = Worker("{ECHO}")
answer, _ = worker.ask({{"do": "echo"}}, [], 60)
print(answer["id"], *worker._process._folders, flush=True)
if sys.argv[1] == "busy":
    import threading
    threading.Thread(
        target=worker.ask, args=({{"do": "sleep", "seconds": 600}}, [], 600), daemon=True
    ).start()
    import time
    time.sleep(0.3)
if sys.argv[1] != "exit":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["exit", "killed", "busy"])
def test_a_process_ends_with_its_parent_and_takes_its_files_along(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ORPHAN, how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    process_id, *folders = done.stdout.split()
    wait_until_gone(int(process_id))
    assert folders
    assert not any(os.path.exists(folder) for folder in folders)


_FORK = f"""
import os
from ir_scatter.runners.worker import Worker
worker = Worker("{ECHO}")
first = worker.ask({{"do": "echo"}}, [], 60)[0]["id"]
forked = os.fork()
if not forked:
    other = worker.ask({{"do": "echo"}}, [], 60)[0]
    worker.close()
    os._exit(0 if other["id"] != first and other["answered"] == 1 else 1)
_, code = os.waitpid(forked, 0)
assert code == 0
again = worker.ask({{"do": "echo"}}, [], 60)[0]
assert (again["id"], again["answered"]) == (first, 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_process_takes_over_after_some_questions() -> None:
    worker = Worker(ECHO, questions_per_process=3)
    answered = [worker.ask({"do": "echo"}, [], 60)[0]["answered"] for _ in range(7)]
    worker.close()
    assert answered == [1, 2, 3, 1, 2, 3, 1]
    assert worker.starts == 3
