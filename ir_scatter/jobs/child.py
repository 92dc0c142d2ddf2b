"""The child process of a worker: runs one job at a time, in a copy of the client's files (`store`)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import Error
from ir_scatter.core.parameters import Spelling, current_spelling, spelled
from ir_scatter.core.process import shortened
from ir_scatter.core.shortage import cannot_run
from ir_scatter.jobs import TABLE
from ir_scatter.jobs.wire import RequestRefused, decode, encode

SPELLINGS: dict[str, Spelling] = {}
"""How error messages of a job spell parameters, by the name of the job; missing jobs spell them as in Python.

A client on the command line reads "--option" instead, as if its own process had run the job.
"""


def handlers() -> dict[str, Callable[..., Any]]:
    """Return the functions that a child of a worker offers."""
    return {"perform": _perform}


def _perform(name: str, folder: str, payload: bytes, root: str) -> dict[str, Any]:
    """Run a job in the copy of the client's files rooted at `root`.

    Return the result, in which paths are those of the client.
    """
    os.chdir(root + folder)
    try:
        arguments = decode(payload, root=root, large=lambda hash: Path(root, ".arrays", hash).read_bytes())
        with spelled(SPELLINGS.get(name, current_spelling())):
            result, status = TABLE[name](*arguments), "done"
    except RequestRefused as error:
        return {"status": "refused", "message": str(error)}
    except Error as error:
        result, status = (type(error).__name__, str(error)), "raised"
    except Exception as error:
        if reason := cannot_run(error):
            return {"status": "ended", "message": reason}
        return {"status": "bug", "message": shortened(f"{type(error).__name__}: {error}")}
    finally:
        os.chdir("/")
    return {"status": status, "result": encode(result, root=root)[0]}
