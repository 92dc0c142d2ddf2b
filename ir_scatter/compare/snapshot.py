"""Results in a folder: for another time, another machine, another driver, other tolerances.

Beside `results.json` there is one npz without pickles for each case, whose arrays have numbers. The
format of NumPy knows neither bf16 and its like nor strings of any length, and names of tensors may
hold anything: what a number stands for is said in the JSON.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.compare.result import SAVED, Runs
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import BadFeed, CannotWrite
from ir_scatter.evaluate.archive import read_arrays, write_arrays
from ir_scatter.runners.base import Execution, NodeFacts, Outcome, Status, Tap, Tapped
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.compare.result import Compared
    from ir_scatter.core.arrays import Array

    Told = Mapping[str, Any]

MANIFEST = "results.json"
_SCHEMA = 1
_STRING = "string"
_LIMIT = 64
"""Dimensions that NumPy can have at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Results that were saved.

    Attributes:
        model: the path as it was then.
        feeds: the inputs of each case.
        runs: for each case those of all runners, whose names begin with "saved:".
        facts: what each runner made of the scatter nodes.
    """

    model: str
    feeds: "tuple[Mapping[str, Array], ...]"
    runs: tuple[tuple[Runs, ...], ...]
    facts: Mapping[str, tuple[NodeFacts, ...]] = field(default_factory=dict)


def save(found: "Compared", folder: Path) -> str:
    """Write inputs, outputs, tapped values, versions and what devices say of themselves.

    Files of the same names are replaced.

    Returns:
        What was written, in words.

    Raises:
        CannotWrite: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        cases = []
        for number, (feeds, runs) in enumerate(zip(found.feeds, found.runs, strict=True)):
            store = ArrayStore()
            cases.append(
                {
                    "arrays": f"case_{number}.npz",
                    "inputs": store.add_all(feeds),
                    "runs": [_told(one, store) for one in runs],
                }
            )
            store.write(folder / f"case_{number}.npz")
        document = {
            "schema": _SCHEMA,
            "versions": versions(),
            "model": found.model,
            "seed": found.settings.seed,
            "precision": found.settings.precision,
            "devices": {name: asdict(one) for name, one in found.devices.items()},
            "facts": {runner: [asdict(one) for one in facts] for runner, facts in found.facts.items()},
            "cases": cases,
        }
        text = json.dumps(document, indent=1, ensure_ascii=True)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be written: {(error.strerror or str(error)).lower()}") from None
    return f"results saved in {folder}"


def load(folder: "str | Path") -> Snapshot:
    """Read what `save` wrote.

    Raises:
        BadFeed: the folder holds no such results, or they are damaged.
    """
    path = Path(folder) / MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "no results of ir-scatter compare --save"
        raise BadFeed(f"{path}: {reason.lower()}") from None
    try:
        if document["schema"] != _SCHEMA:
            raise BadFeed(f"{path}: schema is {document['schema']!r}, expected {_SCHEMA}")
        feeds, runs = [], []
        for case in document["cases"]:
            name = str(case["arrays"])
            if Path(name).name != name:
                raise BadFeed(f"{path}: {name!r} is no file of this folder")
            shelf = ArrayShelf(Path(folder) / name)
            feeds.append(shelf.get_all(case["inputs"]))
            runs.append(tuple(_runs(told, shelf) for told in case["runs"]))
        facts = {
            _saved_name(runner): tuple(map(_facts, facts)) for runner, facts in document["facts"].items()
        }
        return Snapshot(str(document["model"]), tuple(feeds), tuple(runs), facts)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise BadFeed(f"{path}: no results of ir-scatter compare --save, or damaged ones") from None


# What JSON says of the runs of one runner: those with taps one after the other.

_PLAIN = ("runner", "status", "reason", "remarks", "message", "precision", "seconds")


def _told(runs: Runs, store: "ArrayStore") -> dict[str, Any]:
    plain = runs.plain
    return {
        **{name: getattr(plain, name) for name in _PLAIN},
        "versions": dict(plain.versions),
        "outputs": [store.add_all(run) for run in plain.runs],
        "tapped": [_tapped(one, store) for run in runs.tapped for one in run.tapped],
        "tapped_outputs": [store.add_all(run.outputs) for run in runs.tapped if run.outputs],
    }


def _tapped(tapped: Tapped, store: "ArrayStore") -> dict[str, Any]:
    return {
        "scope": tapped.tap.scope,
        "output": tapped.tap.output,
        "callers": list(tapped.tap.callers),
        "problem": tapped.problem,
        "executions": [
            {
                "place": list(one.place),
                "caller": one.caller,
                "inputs": [None if array is None else store.add(array) for array in one.inputs],
                "output": store.add(one.output),
            }
            for one in tapped.executions
        ],
    }


def _runs(told: "Told", shelf: "ArrayShelf") -> Runs:
    outputs = [shelf.get_all(run) for run in told["outputs"]]
    if any(run.keys() != outputs[0].keys() for run in outputs):
        raise ValueError
    plain = Outcome(
        _saved_name(told["runner"]),
        Status(told["status"]),
        str(told["message"]),
        tuple(outputs),
        seconds=float(told["seconds"]),
        precision=str(told["precision"]),
        versions={str(name): str(word) for name, word in told["versions"].items()},
        reason=None if told.get("reason") is None else str(told["reason"]),
        remarks=tuple(map(str, told.get("remarks", ()))),
    )
    tapped = _by_repetition(_taps(told["tapped"], shelf))
    with_taps = [shelf.get_all(run) for run in told.get("tapped_outputs", ())]
    return Runs(
        plain,
        tuple(
            replace(plain, runs=() if run is None else (run,), tapped=tuple(taps or ()))
            for taps, run in zip_longest(tapped, with_taps)
        ),
    )


def _taps(told: "Sequence[Told]", shelf: "ArrayShelf") -> Iterator[Tapped]:
    for one in told:
        executions = tuple(
            Execution(
                tuple(map(int, execution["place"])),
                tuple(None if array is None else shelf.get(array) for array in execution["inputs"]),
                shelf.get(execution["output"]),
                str(execution["caller"]),
            )
            for execution in one["executions"]
        )
        tap = Tap(str(one["scope"]), str(one["output"]), callers=tuple(map(str, one["callers"])))
        yield Tapped(tap, executions, str(one["problem"]))


def _by_repetition(tapped: Iterator[Tapped]) -> list[list[Tapped]]:
    """Divide what was tapped: of each node the first answer, the second, and so on."""
    seen = Counter[Tap]()
    found: list[list[Tapped]] = []
    for one in tapped:
        if seen[one.tap] == len(found):
            found.append([])
        found[seen[one.tap]].append(one)
        seen[one.tap] += 1
    return found


def _facts(told: "Told") -> NodeFacts:
    time = told["microseconds"]
    return NodeFacts(
        str(told["name"]),
        tuple(map(str, told["originals"])),
        str(told["kind"]),
        str(told["kernel"]),
        str(told["precision"]),
        tuple(map(str, told["outputs"])),
        None if time is None else float(time),
    )


def _saved_name(runner: object) -> str:
    return SAVED + str(runner).removeprefix(SAVED)


# Arrays of any element type in one npz.


class ArrayStore:
    """Collects arrays, and writes them at once; the same object is stored once."""

    def __init__(self) -> None:
        self._stored: dict[str, Array] = {}
        self._known: dict[int, tuple[Array, dict[str, Any]]] = {}

    def add(self, array: "Array") -> dict[str, Any]:
        """Take an array and return what JSON says of it."""
        if id(array) not in self._known:
            key, type = str(len(self._stored)), type_of(array)
            self._stored[key] = _bytes_of(array) if type.name == _STRING else _raw(array)
            self._known[id(array)] = array, {"key": key, "type": type.name, "shape": list(array.shape)}
        return self._known[id(array)][1]

    def add_all(self, arrays: "Mapping[str, Array]") -> dict[str, Any]:
        return {name: self.add(array) for name, array in arrays.items()}

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            write_arrays(file, self._stored)


class ArrayShelf:
    """Reads arrays that were stored.

    Raises:
        BadFeed: the file cannot be read, is no npz, or holds pickles.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrays = read_arrays(path)

    def get(self, told: "Told") -> "Array":
        """Return an array in the type that it had.

        Raises:
            BadFeed: it is not there, or not what is said of it.
        """
        array = self._arrays.get(str(told["key"]))
        if array is None:
            raise BadFeed(f"{self._path}: array {told['key']} is missing")
        type = ELEMENT_TYPES.get(str(told["type"]))
        shape = tuple(map(int, told["shape"]))
        try:
            if type is None or len(shape) > _LIMIT:
                raise ValueError
            return _texts(array, shape) if type.name == _STRING else _seen_as(array, type, shape)
        except (TypeError, ValueError):
            raise BadFeed(
                f"{self._path}: array {told['key']} is not what is said of it in the file beside it"
            ) from None

    def get_all(self, told: "Told") -> "dict[str, Array]":
        return {name: self.get(one) for name, one in told.items()}


def type_of(array: "Array") -> ElementType:
    return from_dtype(array.dtype) or ELEMENT_TYPES[_STRING]


def _raw(array: "Array") -> "Array":
    """Return numbers as NumPy writes them: its own types as they are, others as their bytes."""
    if array.dtype.type.__module__ == "numpy":
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _seen_as(array: "Array", type: ElementType, shape: tuple[int, ...]) -> "Array":
    expected = dtype(type)
    if expected is None or array.dtype not in (expected, np.uint8):
        raise ValueError
    return array.view(expected).reshape(shape)


def _bytes_of(array: "Array") -> "Array":
    """Return strings as their lengths and their bytes: fixed-width text would lose zeros at the end."""
    texts = [str(text).encode("utf-8", "surrogateescape") for text in array.flat]
    lengths = np.array([len(text) for text in texts], np.int64)
    return np.concatenate([lengths.view(np.uint8), np.frombuffer(b"".join(texts), np.uint8)])


def _texts(array: "Array", shape: tuple[int, ...]) -> "Array":
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if array.dtype != np.uint8 or array.ndim != 1 or not 0 <= 8 * count <= array.size:
        raise ValueError
    ends = np.cumsum(array[: 8 * count].view(np.int64)).tolist()
    text = array[8 * count :].tobytes()
    if ends != sorted(ends) or (ends[-1] if ends else 0) != len(text):
        raise ValueError
    found = np.empty(count, object)
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        found[number] = text[begin:end].decode("utf-8", "surrogateescape")
    return found.reshape(shape)
