"""What runs in a child of a worker: one job at a time, in a mirror of where it was made."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import Error
from ir_scatter.core.process import shortened
from ir_scatter.core.shortage import cannot_run
from ir_scatter.jobs import TABLE
from ir_scatter.jobs.wire import Refused, decode, encode


def handlers() -> dict[str, Callable[..., Any]]:
    """Return what a child of a worker does."""
    return {"perform": _perform}


def _perform(name: str, folder: str, payload: bytes, root: str) -> dict[str, Any]:
    """Do a job in the mirror; what comes of it has the paths of where it was made."""
    os.chdir(root + folder)
    try:
        arguments = decode(payload, root=root, large=lambda hash: Path(root, ".arrays", hash).read_bytes())
        found, status = TABLE[name](*arguments), "done"
    except Refused as error:
        return {"status": "refused", "message": str(error)}
    except Error as error:
        found, status = (type(error).__name__, str(error)), "raised"
    except Exception as error:
        if reason := cannot_run(error):
            return {"status": "ended", "message": reason}
        return {"status": "bug", "message": shortened(f"{type(error).__name__}: {error}")}
    finally:
        os.chdir("/")
    return {"status": status, "result": encode(found, root=root)[0]}
