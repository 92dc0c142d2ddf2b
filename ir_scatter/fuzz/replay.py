"""Runs the findings of a folder again.

A folder may come from a bug report, so it is treated as data: its scripts are not run. The stored model runs
on the stored inputs, in a new copy of the program template `repro.py.txt`. The program compares the outputs
with the stored expected values and tolerances.
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

_SECONDS = 120.0
"""Time limit of one finding, in seconds."""
_OUTCOMES = {0: "gone", 1: "still there", 2: "cannot run"}
_SIGNATURE = re.compile(r"[a-z0-9][a-z0-9.-]{0,254}")
_SCRIPT = "repro.py"
_MODEL_FILES = {"model.xml": ("model.xml", "model.bin"), "model.onnx": ("model.onnx",)}
_ARRAYS = ("inputs.npz", "expected.npz")
_ABOUT_PATTERN = re.compile(r'^ABOUT = json\.loads\(r"""(.*?)"""\)$', re.MULTILINE | re.DOTALL)
"""Finds the JSON facts about a case in a `repro.py`, for folders of older releases, which have no file
`CASE`."""
_MOST_DIMENSIONS = 64


class ReplayOutcome(NamedTuple):
    """The outcome of a finding that was run again: "still there", "gone", "changed" or "cannot run"."""

    signature: str
    outcome: str
    message: str


class _Unusable(Exception):
    """Error: a finding cannot be run; the message is the reason."""


def replay(folder: Path, *, run_scripts: bool = False) -> Iterator[ReplayOutcome]:
    """Run the smallest case of every finding in a folder again.

    Args:
        folder: the folder of a campaign, with its report.
        run_scripts: whether to run the `repro.py` of each finding instead, whatever code it contains.

    Raises:
        UsageError: the folder contains no findings, or its report is damaged.
    """
    if not os.path.lexists(folder / REPORT):
        raise UsageError(f"{folder} holds no findings, expected a folder that `fuzz -o` wrote, with {REPORT}")
    findings = dict[str, Mapping[str, Any]]()
    for record in earlier_report(folder)["findings"]:
        findings[record["signature"]] = record
    if not findings:
        raise UsageError(f"{folder} holds no findings: {REPORT} names none")
    for signature, record in sorted(findings.items()):
        try:
            yield _replay_finding(folder, signature, record, run_scripts=run_scripts)
        except _Unusable as error:
            yield ReplayOutcome(signature, "cannot run", str(error))


def _replay_finding(
    folder: Path, signature: str, record: Mapping[str, Any], *, run_scripts: bool
) -> ReplayOutcome:
    name = str(record.get("runner", "")).rpartition("/")[2]
    try:
        runner = find(name)
    except UsageError as error:
        raise _Unusable(str(error)) from None
    if runner.problem:
        raise _Unusable(runner.problem)
    finding_folder = _finding_folder(folder, signature)
    environment = {**os.environ, **runner.environment(), "PYTHONSAFEPATH": "1"}
    if run_scripts:
        if finding_folder.joinpath(_SCRIPT).is_symlink() or not finding_folder.joinpath(_SCRIPT).is_file():
            raise _Unusable(f"it has no {_SCRIPT}, or that is a link")
        code, last = _run(finding_folder / _SCRIPT, environment)
    else:
        with tempfile.TemporaryDirectory(prefix="ir_scatter_") as copy:
            program = _write_program(finding_folder, Path(copy), signature, runner.name, record)
            code, last = _run(program, environment)
    if code is None:
        return ReplayOutcome(signature, "changed", last)
    outcome = _OUTCOMES.get(code, "cannot run")
    fresh = record.get("fresh")
    words = {str(record.get("symptom", "")), *(fresh if isinstance(fresh, dict) else ())} - {""}
    if outcome == "still there" and words and last.partition(":")[0] not in words:
        outcome = "changed"
    return ReplayOutcome(signature, outcome, last)


def _run(program: Path, environment: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a program; return its exit code (None after a timeout) and its last line of output."""
    try:
        completed = subprocess.run(
            python_command(str(program)),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            env=dict(environment),
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_SECONDS:g} seconds"
    lines = (completed.stdout.strip() or completed.stderr.strip()).splitlines()
    return completed.returncode, lines[-1] if lines else ""


def _finding_folder(folder: Path, signature: str) -> Path:
    """Return the subfolder of a finding."""
    path = folder / signature
    if not _SIGNATURE.fullmatch(signature):
        raise _Unusable("its signature is not the name of a folder")
    if path.is_symlink():
        raise _Unusable("its folder is a link, which is not followed")
    if not path.is_dir():
        raise _Unusable("it has no folder")
    return path


def _read_stored(folder: Path, name: str) -> bytes:
    path = folder / name
    if path.is_symlink():
        raise _Unusable(f"{name} is a link, which is not followed")
    try:
        return read_regular(path)
    except OSError as error:
        raise _Unusable(f"{name} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _write_program(folder: Path, copy: Path, signature: str, runner: str, record: Mapping[str, Any]) -> Path:
    """Copy the model and arrays of a finding to `copy`, and write a new program beside them."""
    model = next((name for name in _MODEL_FILES if os.path.lexists(folder / name)), "")
    if not model:
        raise _Unusable(f"it has no model, expected {' or '.join(_MODEL_FILES)}")
    is_illegal = False
    try:
        about = _facts(folder, model, runner, record)
        is_illegal = about["is_illegal"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _Unusable(f"{CASE} or {_SCRIPT} does not describe its inputs") from None
    for name in (*_MODEL_FILES[model], *_ARRAYS):
        if name == "model.bin" and not os.path.lexists(folder / name):
            continue  # a model without constants
        if name == "expected.npz" and is_illegal and not os.path.lexists(folder / name):
            continue
        (copy / name).write_bytes(_read_stored(folder, name))
    if model.endswith(".onnx"):
        _refuse_external_weights(copy / model)
    program = copy / _SCRIPT
    program.write_text(program_text(about, signature, runner), encoding="utf-8")
    return program


def _refuse_external_weights(model: Path) -> None:
    """Refuse a model with weights in other files: these could be any files of this machine."""
    try:
        is_alone = not FORMATS[ONNX_FORMAT].files_beside(read(model, format=ONNX_FORMAT), model)
    except UnreadableModel as error:
        raise _Unusable(f"the model cannot be read: {error.message}") from None
    if not is_alone:
        raise _Unusable("the model has weights in other files, which are never read here")


def _facts(folder: Path, model: str, runner: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a case that `repro.py` needs; only checked words and numbers are copied.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the facts are missing or malformed.
    """
    if os.path.lexists(folder / CASE):
        case = json.loads(_read_stored(folder, CASE))
    else:
        script = _ABOUT_PATTERN.search(_read_stored(folder, _SCRIPT).decode("utf-8"))
        case = json.loads(script[1]) if script else None
    package, _, device = runner.partition(":")
    return {
        "runtime": package.partition("@")[0],
        "device": device,
        "model": model,
        "symptom": Symptom(str(record["symptom"])).value,
        "is_steady": bool(case["is_steady"]),
        "is_illegal": bool(case["is_illegal"]),
        "inputs": {
            str(name): {"type": _type_facts(input["type"]), "shape": _checked_shape(input["shape"])}
            for name, input in case["inputs"].items()
        },
        "output": _type_facts(case["output"]),
        "sentence": "",
        "document": "",
    }


def _type_facts(stored: Mapping[str, Any]) -> dict[str, Any]:
    return about_type(ELEMENT_TYPES[str(stored["name"])])


def _checked_shape(stored: Any) -> list[int]:
    if not isinstance(stored, list) or len(stored) > _MOST_DIMENSIONS:
        raise ValueError(stored)
    if not all(type(dim) is int and 0 <= dim < 1 << 62 for dim in stored):
        raise ValueError(stored)
    return list(stored)
