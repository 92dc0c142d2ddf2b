"""Saves results in a folder, to be compared later, on another machine or driver, or with other tolerances.

Beside `results.json` there is one npz file for each case, whose arrays are named "0", "1" and so on. Their
types are plain NumPy types: npz without pickles supports neither bf16 nor strings of variable length. The
JSON holds the name, element type and shape of each array; names of tensors may contain any characters.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.compare.result import SAVED, Compared, CompareSettings, Runs
from ir_scatter.core.arrays import Array
from ir_scatter.core.atomic_write import Output, replace_files
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import BadFeed, explained
from ir_scatter.core.files import read_regular
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.suggestions import why_missing
from ir_scatter.evaluate.archive import archived, read_arrays
from ir_scatter.runners.base import Execution, NodeFacts, Outcome, Status, Tap, Tapped
from ir_scatter.version import versions

Entry = Mapping[str, Any]

MANIFEST = "results.json"
_SCHEMA = 1
_SAVE = Parameter("save")
_STRING = "string"
_MOST_DIMENSIONS = 64
"""Maximum number of dimensions in NumPy 2."""


def save(compared: Compared, folder: Path, *, overwrite: bool = True) -> str:
    """Write inputs, outputs, tapped values, versions and descriptions of devices; return a line of text.

    All files appear together or not at all. Without `overwrite`, UsageError is raised if another program has
    saved results there in the meantime.
    """
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        cases, outputs = [], list[Output]()
        for number, (feeds, runs) in enumerate(zip(compared.feeds, compared.runs, strict=True)):
            store, name = ArrayStore(), f"case_{number}.npz"
            case = {
                "arrays": name,
                "inputs": feeds,
                "runs": [_entry_of(runs_of_runner) for runs_of_runner in runs],
            }
            cases.append(json.loads(json.dumps(case, default=store.add)))
            outputs.append(Output(folder / name, archived(store.stored)))
        document = {
            "schema": _SCHEMA,
            "versions": versions(),
            "model": compared.model,
            "seed": compared.settings.seed,
            "precision": compared.settings.precision,
            "devices": compared.devices,
            "facts": compared.facts,
            "cases": cases,
        }
        text = json.dumps(document, indent=1, ensure_ascii=True, default=asdict)
        manifest = Output(folder / MANIFEST, f"{text}\n".encode(), is_new=not overwrite)
        replace_files([*outputs, manifest])
    return f"results saved in {folder}"


def load(folder: "str | Path") -> Compared:
    """Read the results that `save` wrote; names of runners get the prefix "saved:".

    Raises:
        BadFeed: the folder holds no such results, or damaged ones.
    """
    path = Path(folder) / MANIFEST
    try:
        document = json.loads(read_regular(path))
    except FileNotFoundError:
        raise BadFeed(f"{path}: {why_missing(path)}, expected results that compare saved ({_SAVE})") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or f"not the results of compare ({_SAVE})"
        raise BadFeed(f"{path}: {reason.lower()}") from None
    try:
        if document["schema"] != _SCHEMA:
            raise BadFeed(f"{path}: schema is {document['schema']!r}, expected {_SCHEMA}")
        feeds, runs = [], []
        for case in document["cases"]:
            name = str(case["arrays"])
            if Path(name).name != name:
                raise BadFeed(f"{path}: {name!r} is not a file of this folder")
            shelf = ArrayShelf(Path(folder) / name)
            feeds.append(shelf.get_all(case["inputs"]))
            runs.append(tuple(_runs(entry, shelf) for entry in case["runs"]))
        facts = {
            _saved_name(name): tuple(
                NodeFacts(
                    str(fact["name"]),
                    tuple(map(str, fact["originals"])),
                    str(fact["kind"]),
                    str(fact["kernel"]),
                    str(fact["precision"]),
                    tuple(map(str, fact["outputs"])),
                    None if fact["microseconds"] is None else float(fact["microseconds"]),
                )
                for fact in entries
            )
            for name, entries in document["facts"].items()
        }
        model = str(document["model"])
        remarks = (f"saved results of {model}, from {folder}",)
        return Compared(
            model, CompareSettings(), remarks=remarks, facts=facts, feeds=tuple(feeds), runs=tuple(runs)
        )
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise BadFeed(f"{path}: not the results of compare ({_SAVE}), or damaged") from None


# The runs of one runner in JSON; the runs with taps are joined to one list.

_PLAIN = (
    "runner", "status", "reason", "implicit", "remarks", "message", "precision", "seconds", "versions",
    "not_computed",
)  # fmt: skip


def _entry_of(runs: Runs) -> dict[str, Any]:
    entries = [
        {
            "scope": tapped.tap.scope,
            "output": tapped.tap.output,
            "callers": tapped.tap.callers,
            "problem": tapped.problem,
            "executions": [
                {field.name: getattr(execution, field.name) for field in fields(execution)}
                for execution in tapped.executions
            ],
        }
        for run in runs.tapped
        for tapped in run.tapped
    ]
    return {
        **{name: getattr(runs.plain, name) for name in _PLAIN},
        "outputs": runs.plain.runs,
        "tapped": entries,
        "tapped_outputs": [run.outputs for run in runs.tapped if run.outputs],
    }


def _runs(entry: Entry, shelf: "ArrayShelf") -> Runs:
    outputs = [shelf.get_all(run) for run in entry["outputs"]]
    if not entry.get("not_computed") and any(run.keys() != outputs[0].keys() for run in outputs):
        raise ValueError
    plain = Outcome(
        _saved_name(entry["runner"]),
        Status(entry["status"]),
        str(entry["message"]),
        tuple(outputs),
        seconds=float(entry["seconds"]),
        precision=str(entry["precision"]),
        versions={str(name): str(word) for name, word in entry["versions"].items()},
        reason=None if entry.get("reason") is None else str(entry["reason"]),
        remarks=tuple(map(str, entry.get("remarks", ()))),
        implicit=entry.get("implicit") is True,
        not_computed=tuple(map(str, entry.get("not_computed", ()))),
    )
    repetitions: list[list[Tapped]] = []  # first the first answer of each node, then the second ...
    counts = Counter[Tap]()
    for node in entry["tapped"]:
        executions = [
            Execution(
                tuple(map(int, execution["place"])),
                tuple(None if array is None else shelf.get(array) for array in execution["inputs"]),
                shelf.get(execution["output"]),
                str(execution["caller"]),
            )
            for execution in node["executions"]
        ]
        tap = Tap(str(node["scope"]), str(node["output"]), callers=tuple(map(str, node["callers"])))
        tapped = Tapped(tap, tuple(executions), str(node["problem"]))
        if counts[tap] == len(repetitions):
            repetitions.append([])
        repetitions[counts[tap]].append(tapped)
        counts[tap] += 1
    with_taps = [shelf.get_all(run) for run in entry.get("tapped_outputs", ())]
    runs = [
        replace(plain, runs=() if run is None else (run,), tapped=tuple(taps or ()))
        for taps, run in zip_longest(repetitions, with_taps)
    ]
    return Runs(plain, tuple(runs))


def _saved_name(runner: object) -> str:
    return SAVED + str(runner).removeprefix(SAVED)


# Arrays of any element type in one npz file.


class ArrayStore:
    """Collects arrays for an npz file in types that NumPy can write; each object is stored once."""

    def __init__(self) -> None:
        self.stored: dict[str, Array] = {}
        self._entries: dict[int, tuple[Array, dict[str, Any]]] = {}

    def add(self, array: Array) -> dict[str, Any]:
        """Store an array and return its JSON entry."""
        if id(array) not in self._entries:
            key, type, raw = str(len(self.stored)), type_of(array), array
            if type.name == _STRING:  # as lengths and bytes: fixed-width text would lose zeros at the end
                texts = [str(text).encode("utf-8", "surrogateescape") for text in array.flat]
                lengths = np.array([len(text) for text in texts], np.int64)
                raw = np.concatenate([lengths.view(np.uint8), np.frombuffer(b"".join(texts), np.uint8)])
            elif array.dtype.type.__module__ != "numpy":
                raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self.stored[key] = raw
            self._entries[id(array)] = array, {"key": key, "type": type.name, "shape": list(array.shape)}
        return self._entries[id(array)][1]


class ArrayShelf:
    """Reads stored arrays; raises BadFeed if one is missing or does not match its entry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrays = read_arrays(path)

    def get(self, entry: Entry) -> Array:
        """Return an array in its original type and shape."""
        array = self._arrays.get(str(entry["key"]))
        if array is None:
            raise BadFeed(f"{self._path}: array {entry['key']} is missing")
        type, shape = ELEMENT_TYPES.get(str(entry["type"])), tuple(map(int, entry["shape"]))
        try:
            if type is not None and type.name == _STRING:
                return _texts(array, shape)
            expected = None if type is None else dtype(type)
            if expected is None or len(shape) > _MOST_DIMENSIONS or array.dtype not in (expected, np.uint8):
                raise ValueError
            return array.view(expected).reshape(shape)
        except (TypeError, ValueError):
            raise BadFeed(
                f"{self._path}: array {entry['key']} does not match its entry in {MANIFEST}"
            ) from None

    def get_all(self, entry: Entry) -> dict[str, Array]:
        return {name: self.get(array) for name, array in entry.items()}


def type_of(array: Array) -> ElementType:
    return from_dtype(array.dtype) or ELEMENT_TYPES[_STRING]


def _texts(array: Array, shape: tuple[int, ...]) -> Array:
    count = prod(shape)
    if array.dtype != np.uint8 or array.ndim != 1 or not 0 <= 8 * count <= array.size:
        raise ValueError
    ends = np.cumsum(array[: 8 * count].view(np.int64)).tolist()
    text = array[8 * count :].tobytes()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(text):
        raise ValueError
    texts = np.empty(count, object)
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        texts[number] = text[begin:end].decode("utf-8", "surrogateescape")
    return texts.reshape(shape)
