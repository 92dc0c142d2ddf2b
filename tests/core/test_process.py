"""A child process that answers bytes with bytes; more of it is in the tests of transports."""

import os
from collections.abc import Iterator

import pytest

from ir_scatter.core.process import Process, Stopped


@pytest.fixture
def child() -> Iterator[Process]:
    found = Process("tests.core.reversing_child", "said: ")
    yield found
    found.end()


def test_messages_of_any_length_and_content(child: Process) -> None:
    for message in (b"", b"abc\n\0", os.urandom(3 << 20)):
        assert child.ask(message, 60) == b"said: " + message[::-1]
    assert child.questions == 3


def test_what_is_told_is_not_answered(child: Process) -> None:
    for number in range(5):
        child.tell(str(number).encode())
    assert child.ask(b"last", 60) == b"said: tsal"


def test_the_last_words_of_one_that_was_told_something(child: Process) -> None:
    child.tell(b"leave")
    with pytest.raises(Stopped, match="ended with 3: last words"):
        child.ask(b"again", 60)


def test_how_it_ended(child: Process) -> None:
    with pytest.raises(Stopped) as caught:
        child.ask(b"leave", 60)
    assert (caught.value.status, caught.value.message) == ("crashed", "the process ended with 3: last words")
    with pytest.raises(Stopped):
        child.ask(b"again", 60)
    folders = child.folders
    child.end()
    assert not any(map(os.path.exists, folders))
