"""Runs findings of a folder again. It may come with a bug report, so it is data: none of its scripts is run.

The stored model runs on the stored inputs in a fresh copy of `repro.py.txt`, the program of each finding.
It compares with the expected values and tolerances that the judge of the campaign stored.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.files import read_regular
from ir_scatter.core.process import python_command
from ir_scatter.defects.base import Symptom
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.fuzz.findings import CASE, about_type, program_text
from ir_scatter.fuzz.job import REPORT, earlier_report
from ir_scatter.reading import read
from ir_scatter.runners import find

_LIMIT = 120.0
"""Seconds for one finding."""
_OUTCOMES = {0: "gone", 1: "still there", 2: "cannot run"}
_SIGNATURE = re.compile(r"[a-z0-9][a-z0-9.-]{0,254}")
_SCRIPT = "repro.py"
_MODELS = {"model.xml": ("model.xml", "model.bin"), "model.onnx": ("model.onnx",)}
_ARRAYS = ("inputs.npz", "expected.npz")
_ABOUT = re.compile(r'^ABOUT = json\.loads\(r"""(.*?)"""\)$', re.MULTILINE | re.DOTALL)
"""What a script says of its case; it is read as JSON, and not run. Folders without `CASE` are older."""
_MOST_DIMS = 64


class Replayed(NamedTuple):
    """What came of a finding that was run once more: "still there", "gone", "changed" or "cannot run"."""

    signature: str
    outcome: str
    message: str


class _Unusable(Exception):
    """Why a finding cannot be run."""


def replay(folder: Path, *, run_scripts: bool = False) -> Iterator[Replayed]:
    """Run the minimal case of every finding of a folder again.

    Args:
        folder: what a campaign wrote, with its report.
        run_scripts: whether to run the `repro.py` of each finding instead, whatever code that is.

    Raises:
        UsageError: the folder holds no findings, or its report is damaged.
    """
    if not os.path.lexists(folder / REPORT):
        raise UsageError(f"{folder} holds no findings, expected a folder that `fuzz -o` wrote, with {REPORT}")
    findings = dict[str, Mapping[str, Any]]()
    for one in earlier_report(folder)["findings"]:
        findings[one["signature"]] = one
    if not findings:
        raise UsageError(f"{folder} holds no findings: {REPORT} names none")
    for signature, known in sorted(findings.items()):
        try:
            yield _replayed(folder, signature, known, run_scripts=run_scripts)
        except _Unusable as error:
            yield Replayed(signature, "cannot run", str(error))


def _replayed(folder: Path, signature: str, known: Mapping[str, Any], *, run_scripts: bool) -> Replayed:
    name = str(known.get("runner", "")).rpartition("/")[2]
    try:
        runner = find(name)
    except UsageError as error:
        raise _Unusable(str(error)) from None
    if runner.problem:
        raise _Unusable(runner.problem)
    place = _place(folder, signature)
    environment = {**os.environ, **runner.environment(), "PYTHONSAFEPATH": "1"}
    if run_scripts:
        if place.joinpath(_SCRIPT).is_symlink() or not place.joinpath(_SCRIPT).is_file():
            raise _Unusable(f"it has no {_SCRIPT}, or that is a link")
        code, last = _run(place / _SCRIPT, environment)
    else:
        with tempfile.TemporaryDirectory(prefix="ir_scatter_") as copy:
            program = _program(place, Path(copy), signature, runner.name, known)
            code, last = _run(program, environment)
    if code is None:
        return Replayed(signature, "changed", last)
    outcome = _OUTCOMES.get(code, "cannot run")
    fresh = known.get("fresh")
    words = {str(known.get("symptom", "")), *(fresh if isinstance(fresh, dict) else ())} - {""}
    if outcome == "still there" and words and last.partition(":")[0] not in words:
        outcome = "changed"
    return Replayed(signature, outcome, last)


def _run(program: Path, environment: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the exit code of a program, None after a timeout, and the last line that it printed."""
    try:
        done = subprocess.run(
            python_command(str(program)),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT,
            env=dict(environment),
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_LIMIT:g} seconds"
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return done.returncode, lines[-1] if lines else ""


def _place(folder: Path, signature: str) -> Path:
    """Return the folder of a finding, which is one in the folder of all."""
    place = folder / signature
    if not _SIGNATURE.fullmatch(signature):
        raise _Unusable("its signature is no name of a folder")
    if place.is_symlink():
        raise _Unusable("its folder is a link, which is not followed")
    if not place.is_dir():
        raise _Unusable("it has no folder")
    return place


def _stored(place: Path, name: str) -> bytes:
    path = place / name
    if path.is_symlink():
        raise _Unusable(f"{name} is a link, which is not followed")
    try:
        return read_regular(path)
    except OSError as error:
        raise _Unusable(f"{name} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _program(place: Path, copy: Path, signature: str, runner: str, known: Mapping[str, Any]) -> Path:
    """Copy the model and the arrays of a finding, and write our program beside them."""
    model = next((name for name in _MODELS if os.path.lexists(place / name)), "")
    if not model:
        raise _Unusable(f"it has no model, expected {' or '.join(_MODELS)}")
    is_illegal = False
    try:
        about = _about(place, model, runner, known)
        is_illegal = about["is_illegal"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _Unusable(f"{CASE} or {_SCRIPT} does not say what its inputs are") from None
    for name in (*_MODELS[model], *_ARRAYS):
        if name == "model.bin" and not os.path.lexists(place / name):
            continue  # a model without constants
        if name == "expected.npz" and is_illegal and not os.path.lexists(place / name):
            continue
        (copy / name).write_bytes(_stored(place, name))
    if model.endswith(".onnx"):
        _demand_alone(copy / model)
    program = copy / _SCRIPT
    program.write_text(program_text(about, signature, runner), encoding="utf-8")
    return program


def _demand_alone(model: Path) -> None:
    """Demand that a model has no weights in other files: they could be any files of this machine."""
    try:
        is_alone = not FORMATS[ONNX_FORMAT].files_beside(read(model, format=ONNX_FORMAT), model)
    except UnreadableModel as error:
        raise _Unusable(f"the model cannot be read: {error.message}") from None
    if not is_alone:
        raise _Unusable("the model has weights in other files, which are not followed")


def _about(place: Path, model: str, runner: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the program must know of a case: of what was stored only known words and numbers.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it was not stored, or is malformed.
    """
    if os.path.lexists(place / CASE):
        told = json.loads(_stored(place, CASE))
    else:
        script = _ABOUT.search(_stored(place, _SCRIPT).decode("utf-8"))
        told = json.loads(script[1]) if script else None
    package, _, device = runner.partition(":")
    return {
        "runtime": package.partition("@")[0],
        "device": device,
        "model": model,
        "symptom": Symptom(str(known["symptom"])).value,
        "is_steady": bool(told["is_steady"]),
        "is_illegal": bool(told["is_illegal"]),
        "inputs": {
            str(name): {"type": _type(one["type"]), "shape": _shape(one["shape"])}
            for name, one in told["inputs"].items()
        },
        "output": _type(told["output"]),
        "sentence": "",
        "document": "",
    }


def _type(told: Mapping[str, Any]) -> dict[str, Any]:
    return about_type(ELEMENT_TYPES[str(told["name"])])


def _shape(told: Any) -> list[int]:
    if not isinstance(told, list) or len(told) > _MOST_DIMS:
        raise ValueError(told)
    if not all(type(dim) is int and 0 <= dim < 1 << 62 for dim in told):
        raise ValueError(told)
    return list(told)
