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

from ir_scatter.runners import transport as module
from ir_scatter.runners.transport import ChildTransport

ECHO = "tests.runners.echo_child"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def child() -> Iterator[ChildTransport]:
    found = ChildTransport(ECHO)
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


def test_one_process_answers_many_questions(child: ChildTransport) -> None:
    numbers = []
    for number in range(200):
        array = np.full((3, 2), number, np.int32)
        answer, arrays = child.ask({"do": "echo", "say": number}, [array], 60)
        assert answer["said"] == number
        assert np.array_equal(arrays[0], array)
        numbers.append(answer["answered"])
    assert numbers == list(range(1, 201))
    assert child.starts == 1


def test_nothing_is_started_before_the_first_question(child: ChildTransport) -> None:
    assert child.process_id is None
    assert child.starts == 0


def test_arrays_of_an_answer_can_be_written_to_and_outlive_the_process(child: ChildTransport) -> None:
    _, (array,) = child.ask({"do": "echo"}, [np.arange(6).reshape(2, 3)], 60)
    child.close()
    array[0, 0] = 7
    assert array.tolist() == [[7, 1, 2], [3, 4, 5]]


def test_noise_stays_off_the_answers_and_off_the_terminal(
    child: ChildTransport, capfd: pytest.CaptureFixture[str]
) -> None:
    answer, _ = child.ask({"do": "talk"}, [], 60)
    assert answer["read"] == ""
    assert child.ask({"do": "echo", "say": "still"}, [], 60)[0]["said"] == "still"
    child.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
def test_a_crash_is_told_by_its_signal_and_the_next_question_is_answered(
    child: ChildTransport, name: str
) -> None:
    answer, _ = child.ask({"do": "crash", "signal": name}, [], 60)
    assert answer == {"status": "crashed", "message": f"the process crashed ({name})"}
    assert child.ask({"do": "echo", "say": "back"}, [], 60)[0]["said"] == "back"
    assert child.starts == 2


def test_a_process_that_may_have_been_damaged_before_gets_a_second_chance(child: ChildTransport) -> None:
    child.ask({"do": "echo"}, [], 60)
    answer, _ = child.ask({"do": "crash_later"}, [], 60)
    assert answer["answered"] == 0
    assert answer["died"] == "the process crashed (SIGSEGV)"
    assert child.starts == 2


def test_a_question_that_crashes_a_new_process_too_is_not_asked_forever(child: ChildTransport) -> None:
    child.ask({"do": "echo"}, [], 60)
    assert "SIGSEGV" in child.ask({"do": "crash", "signal": "SIGSEGV"}, [], 60)[0]["message"]
    assert child.starts == 2


def test_the_last_words_of_a_process_that_leaves_are_told(child: ChildTransport) -> None:
    answer, _ = child.ask({"do": "leave"}, [], 60)
    assert answer == {"status": "crashed", "message": "the process ended with 3: last words"}


def test_a_process_that_takes_too_long_is_killed(child: ChildTransport) -> None:
    child.ask({"do": "echo"}, [], 60)
    first = child.process_id
    assert first is not None
    started = time.monotonic()
    answer, _ = child.ask({"do": "sleep", "seconds": 60}, [], 0.3)
    assert answer == {"status": "timeout", "message": "no answer within 0.3 seconds"}
    assert time.monotonic() - started < 10
    assert not is_alive(first)
    assert child.ask({"do": "echo", "say": 1}, [], 60)[0]["said"] == 1


def test_a_time_limit_may_be_infinite(child: ChildTransport) -> None:
    assert child.ask({"do": "echo", "say": 1}, [], float("inf"))[0]["said"] == 1


def test_failures_and_bugs_end_no_process(child: ChildTransport) -> None:
    answer, _ = child.ask({"do": "fail"}, [], 60)
    assert answer == {"status": "refused", "message": "I will not"}
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        child.ask({"do": "bug"}, [], 60)
    assert child.starts == 1


def test_a_module_that_cannot_be_imported_is_told() -> None:
    child = ChildTransport("tests.runners.no_such_child")
    answer, _ = child.ask({"do": "echo"}, [], 60)
    assert answer["status"] == "unavailable"
    assert answer["message"].startswith("ModuleNotFoundError: No module named")
    child.close()


def test_what_is_told_comes_before_what_is_asked(child: ChildTransport) -> None:
    child.tell({"do": "sleep", "seconds": 0.2})
    child.tell({"do": "bug"})
    answer, _ = child.ask({"do": "echo", "say": 1}, [], 60)
    assert (answer["said"], answer["answered"]) == (1, 2)
    child.tell({"do": "sleep", "seconds": 60})
    assert child.ask({"do": "echo"}, [], 0.2)[0]["status"] == "timeout"
    child.tell({"do": "crash", "signal": "SIGKILL"})
    answer, _ = child.ask({"do": "echo"}, [], 60)
    assert answer["died"] == "the process crashed (SIGKILL)"


def test_the_environment_is_made_when_the_process_starts() -> None:
    made = []

    def environment() -> dict[str, str]:
        made.append(1)
        return {"IR_SCATTER_TEST": "set"}

    child = ChildTransport(ECHO, environment)
    assert not made
    answer, _ = child.ask({"do": "echo"}, [], 60)
    assert answer["variable"] == "set"
    assert "IR_SCATTER_TEST" not in os.environ
    child.close()


def test_threads_take_turns(child: ChildTransport) -> None:
    said = []

    def ask(number: int) -> None:
        array = np.full(1000, number)
        answer, (echoed,) = child.ask({"do": "echo", "say": number}, [array], 60)
        said.append(answer["said"] == number and bool((echoed == number).all()))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [True] * 8
    assert child.starts == 1


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = ChildTransport(ECHO)
    child.ask({"do": "echo"}, [np.zeros(1000)], 60)
    folders = list(tmp_path.iterdir())
    assert folders
    assert [file.name for folder in folders for file in folder.iterdir()] == ["noise"]
    child.close()
    assert list(tmp_path.iterdir()) == []


_ORPHAN = f"""
import os, sys
from ir_scatter.runners.transport import ChildTransport
child = ChildTransport("{ECHO}")
answer, _ = child.ask({{"do": "echo"}}, [], 60)
print(answer["id"], *child._process.folders, flush=True)
if sys.argv[1] == "busy":
    import threading
    threading.Thread(
        target=child.ask, args=({{"do": "sleep", "seconds": 600}}, [], 600), daemon=True
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
from ir_scatter.runners.transport import ChildTransport
child = ChildTransport("{ECHO}")
first = child.ask({{"do": "echo"}}, [], 60)[0]["id"]
forked = os.fork()
if not forked:
    other = child.ask({{"do": "echo"}}, [], 60)[0]
    child.close()
    os._exit(0 if other["id"] != first and other["answered"] == 1 else 1)
_, code = os.waitpid(forked, 0)
assert code == 0
again = child.ask({{"do": "echo"}}, [], 60)[0]
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
    child = ChildTransport(ECHO, questions_per_process=3)
    answered = [child.ask({"do": "echo"}, [], 60)[0]["answered"] for _ in range(7)]
    child.close()
    assert answered == [1, 2, 3, 1, 2, 3, 1]
    assert child.starts == 3
