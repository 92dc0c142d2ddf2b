"""Processes that tests start: each is ended and its pipes are closed, also by a test that fails."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(command: Sequence[str], **options: Any) -> "Iterator[subprocess.Popen[str]]":
    """Start a process in text mode; kill it at the end of the block, if it still runs, and close its pipes."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()  # leaving the outer block waits for the process
