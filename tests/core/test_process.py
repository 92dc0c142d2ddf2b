"""Processes that are kept and fed: crashes, time limits, noise, arrays, and the end of their parent."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ir_scatter.core import temporary
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.core.errors import CannotWrite
from ir_scatter.core.process import Child, Failure

ECHO = "tests.core.echo_child"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def child() -> Iterator[Child]:
    found = Child(ECHO)
    yield found
    found.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Child]:
    found = Child(ECHO)
    yield found
    found.close()


def ask(child: Child, name: str, *arguments: Any, limit: float = 60) -> Any:
    return child.ask(name, *arguments, limit=limit)[0]


def failure(child: Child, name: str, *arguments: Any, limit: float = 60) -> tuple[str, str]:
    with pytest.raises(Failure) as caught:
        child.ask(name, *arguments, limit=limit)
    return caught.value.status, caught.value.message


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{process_id}/status").read_text()


def test_one_process_answers_many_questions(child: Child) -> None:
    assert (child.process_id, child.starts) == (None, 0)
    for number in range(200):
        array = np.full((3, 2), number, np.int32)
        told, echoed = ask(child, "echo", (number, array))
        assert told == number
        assert np.array_equal(echoed, array)
    assert ask(child, "state")["answered"] == 201
    assert child.starts == 1


TYPES = {row.name: found for row in ELEMENT_TYPES.values() if (found := dtype(row)) is not None}


@pytest.mark.parametrize("name", TYPES)
def test_every_element_type_and_rank(shared: Child, name: str) -> None:
    sent = []
    for shape in ((2, 3), (), (0, 4), (7,)):
        count = int(np.prod(shape))
        texts = np.array(["", "ä", "b\0", "\udc80", "日本", "e", "f"][:count], object)
        bits = np.arange(count * TYPES[name].itemsize, dtype=np.uint8) % 2
        sent.append((texts if name == "string" else bits.view(TYPES[name])).reshape(shape))
    for found, array in zip(ask(shared, "echo", sent), sent, strict=True):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes() if name != "string" else found.tolist() == array.tolist()


LAYOUTS: list[np.dtype[Any]] = [np.dtype(text) for text in ("<f4", ">f4", ">i8", "u1", "?")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(LAYOUTS).flatmap(
            lambda type: hnp.arrays(type, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_every_layout(shared: Child, arrays: list[npt.NDArray[Any]], transposed: bool) -> None:
    sent = [array.T if transposed else array[..., ::-1] if array.ndim else array for array in arrays]
    for before, after in zip(sent, ask(shared, "echo", sent), strict=True):
        assert after.dtype is before.dtype.newbyteorder("=") or after.dtype.isbuiltin == 1
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
        assert after.flags.c_contiguous
        assert after.flags.aligned


def test_arrays_of_an_answer_can_be_written_to_and_outlive_the_process(child: Child) -> None:
    array = ask(child, "echo", np.arange(6).reshape(2, 3))
    child.close()
    array[0, 0] = 7
    assert array.tolist() == [[7, 1, 2], [3, 4, 5]]


def test_noise_stays_off_the_answers_and_off_the_terminal(
    child: Child, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(child, "talk") == ""
    assert ask(child, "echo", "still") == "still"
    child.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
def test_a_crash_is_told_by_its_signal_and_the_next_question_is_answered(child: Child, name: str) -> None:
    assert failure(child, "crash", name) == ("crashed", f"the process crashed ({name})")
    assert ask(child, "echo", "back") == "back"
    assert child.starts == 2


def test_a_process_that_may_have_been_damaged_before_gets_a_second_chance(child: Child) -> None:
    ask(child, "echo")
    assert child.ask("crash_later", limit=60) == (0, "the process crashed (SIGSEGV)")
    assert child.starts == 2
    assert "SIGSEGV" in failure(child, "crash", "SIGSEGV")[1]
    assert child.starts == 3


def test_nonsense_of_a_process_that_has_worked_before_is_damage(child: Child) -> None:
    """A runtime that wrote outside its arrays gives shapes that no array has."""
    ask(child, "echo")
    assert child.ask("bug_later", limit=60) == (1, "the process is damaged")
    assert child.starts == 2
    ask(child, "echo")
    with pytest.raises(Failure, match="the process is damaged"):
        child.ask("bug_later", limit=60, again=False)


def test_the_last_words_of_a_process_that_leaves_are_told(child: Child) -> None:
    assert failure(child, "leave") == ("crashed", "the process ended with 3: last words")


def test_a_process_that_takes_too_long_is_killed(child: Child) -> None:
    ask(child, "echo")
    first = child.process_id
    assert first is not None
    assert failure(child, "sleep", 1e6, limit=0.3) == ("timeout", "no answer within 0.3 seconds")
    assert not is_alive(first)
    assert ask(child, "echo", 1, limit=float("inf")) == 1


def test_a_process_is_killed_with_what_it_forked(child: Child) -> None:
    """A fork holds the pipe of the answers open: nobody would hear that they have ended."""
    assert failure(child, "fork", 1e6, limit=0.3)[0] == "timeout"


def test_failures_end_no_process(child: Child) -> None:
    assert failure(child, "fail") == ("refused", "I will not")
    assert failure(child, "greedy") == ("refused", "there is not enough memory")
    assert child.starts == 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        ask(child, "bug")
    assert child.starts == 2  # it is no damage of the first process


def test_a_module_that_cannot_be_imported_is_told() -> None:
    child = Child("tests.core.no_such_child")
    status, message = failure(child, "echo")
    child.close()
    assert status == "unavailable"
    assert message.startswith("ModuleNotFoundError: No module named")


def test_a_process_may_be_started_before_it_is_asked(child: Child) -> None:
    child.start()
    first = child.process_id
    assert ask(child, "state")["id"] == first
    assert failure(Child("tests.core.no_such_child"), "echo")[0] == "unavailable"
    other = Child(ECHO)
    other.start()
    assert failure(other, "crash", "SIGKILL") == ("crashed", "the process crashed (SIGKILL)")
    assert other.starts == 1


def test_the_environment_is_made_when_the_process_starts() -> None:
    made = []

    def environment() -> dict[str, str]:
        made.append(1)
        return {"IR_SCATTER_TEST": "set"}

    child = Child(ECHO, environment)
    assert not made
    assert ask(child, "state")["variable"] == "set"
    assert "IR_SCATTER_TEST" not in os.environ
    child.close()


def test_threads_take_turns(child: Child) -> None:
    echoed = []

    def work(number: int) -> None:
        echoed.append(bool((ask(child, "echo", np.full(1000, number)) == number).all()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert echoed == [True] * 8
    assert child.starts == 1


def test_where_there_is_no_room_nothing_stays(child: Child, tmp_path: Path) -> None:
    ask(child, "echo")
    child._process.folder = str(tmp_path / "missing")  # type: ignore[union-attr]
    with pytest.raises(CannotWrite, match="missing cannot be written: no such file"):
        ask(child, "echo", np.zeros(3))
    assert ask(child, "echo", 1) == 1
    assert child.starts == 2


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = Child(ECHO)
    monkeypatch.setattr(temporary, "_path", "")
    ask(child, "echo", np.zeros(1000))
    (of_process,) = tmp_path.iterdir()
    (folder,) = of_process.iterdir()
    assert [file.name for file in folder.iterdir()] == ["noise"]
    child.close()
    assert list(of_process.iterdir()) == []


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


_ORPHAN = f"""
import os, sys, threading, time
from ir_scatter.core.process import Child
child = Child("{ECHO}")
print(child.ask("state", limit=60)[0]["id"], child._process.folder, flush=True)
if sys.argv[1] == "busy":
    threading.Thread(target=lambda: child.ask("sleep", 600, limit=600), daemon=True).start()
    time.sleep(0.3)
if sys.argv[1] != "exit":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["exit", "killed", "busy"])
def test_a_process_ends_with_its_parent_and_takes_its_files_along(how: str) -> None:
    process_id, folder = python(_ORPHAN, how).split()
    deadline = time.monotonic() + 120
    while is_alive(int(process_id)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not os.path.exists(folder)


_FORK = f"""
import os
from ir_scatter.core.process import Child
child = Child("{ECHO}")
first = child.ask("state", limit=60)[0]["id"]
forked = os.fork()
if not forked:
    other = child.ask("state", limit=60)[0]
    child.close()
    os._exit(0 if other["id"] != first and other["answered"] == 1 else 1)
_, code = os.waitpid(forked, 0)
again = child.ask("state", limit=60)[0]
print(code, again["id"] == first, again["answered"])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_process_of_its_own() -> None:
    assert python(_FORK).split() == ["0", "True", "2"]


def test_a_new_process_takes_over_after_some_questions() -> None:
    child = Child(ECHO, questions_per_process=3)
    assert [ask(child, "state")["answered"] for _ in range(7)] == [1, 2, 3, 1, 2, 3, 1]
    child.close()
    assert child.starts == 3
