"""Results in a folder: for another time, another machine, another driver, other tolerances."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.compare.session import SAVED
from ir_scatter.compare.stored import ArrayShelf, ArrayStore
from ir_scatter.core.errors import BadFeed, CannotWrite
from ir_scatter.runners.base import Execution, NodeFacts, Outcome, Status, Tap, Tapped
from ir_scatter.version import versions

if TYPE_CHECKING:
    from ir_scatter.compare.session import Compared
    from ir_scatter.core.tensors import Array

MANIFEST = "results.json"
_SCHEMA = 1


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """Results that were saved.

    Attributes:
        model: the path as it was then.
        feeds: the inputs of each case.
        runs: for each case the outcomes of all runners, whose names begin with "saved:".
        versions: of the packages then.
        facts: what each runner made of the scatter nodes.
    """

    model: str
    feeds: "tuple[Mapping[str, Array], ...]"
    runs: tuple[tuple[Outcome, ...], ...]
    versions: Mapping[str, str]
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
        for number, (feeds, outcomes) in enumerate(zip(found.feeds, found.runs, strict=True)):
            store = ArrayStore()
            case = {
                "arrays": f"case_{number}.npz",
                "inputs": {name: store.add(array) for name, array in feeds.items()},
                "runs": [_told(one, store) for one in outcomes],
            }
            store.write(folder / f"case_{number}.npz")
            cases.append(case)
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


def load(folder: "str | Path") -> Saved:
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
        cases = [_case(Path(folder), case) for case in document["cases"]]
        return Saved(
            str(document["model"]),
            tuple(feeds for feeds, _ in cases),
            tuple(runs for _, runs in cases),
            _words(document["versions"]),
            {
                SAVED + str(runner).removeprefix(SAVED): tuple(map(_facts, facts))
                for runner, facts in document["facts"].items()
            },
        )
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise BadFeed(f"{path}: no results of ir-scatter compare --save, or damaged ones") from None


def _told(one: Outcome, store: ArrayStore) -> dict[str, Any]:
    return {
        "runner": one.runner,
        "status": one.status.value,
        "reason": one.reason,
        "remarks": list(one.remarks),
        "message": one.message,
        "precision": one.precision,
        "seconds": one.seconds,
        "versions": dict(one.versions),
        "outputs": [{name: store.add(array) for name, array in run.items()} for run in one.runs],
        "tapped": [_tapped(tapped, store) for tapped in one.tapped],
        "tapped_outputs": [
            {name: store.add(array) for name, array in run.items()} for run in one.tapped_runs
        ],
    }


def _tapped(tapped: Tapped, store: ArrayStore) -> dict[str, Any]:
    executions = [
        {
            "place": list(one.place),
            "caller": one.caller,
            "inputs": [None if array is None else store.add(array) for array in one.inputs],
            "output": store.add(one.output),
        }
        for one in tapped.executions
    ]
    return {
        "scope": tapped.tap.scope,
        "output": tapped.tap.output,
        "callers": list(tapped.tap.callers),
        "problem": tapped.problem,
        "executions": executions,
    }


def _facts(told: Mapping[str, Any]) -> NodeFacts:
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


def _words(told: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(word) for name, word in told.items()}


def _case(folder: Path, case: Mapping[str, Any]) -> "tuple[dict[str, Array], tuple[Outcome, ...]]":
    name = str(case["arrays"])
    if Path(name).name != name:
        raise BadFeed(f"{folder / MANIFEST}: {name!r} is no file of this folder")
    shelf = ArrayShelf(folder / name)
    feeds = {name: shelf.get(told) for name, told in case["inputs"].items()}
    return feeds, tuple(_outcome(told, shelf) for told in case["runs"])


def _outcome(told: Mapping[str, Any], shelf: ArrayShelf) -> Outcome:
    runs = tuple({name: shelf.get(one) for name, one in run.items()} for run in told["outputs"])
    if any(run.keys() != runs[0].keys() for run in runs):
        raise ValueError
    return Outcome(
        SAVED + str(told["runner"]).removeprefix(SAVED),
        Status(told["status"]),
        str(told["message"]),
        runs,
        tuple(_taps(told["tapped"], shelf)),
        (),
        float(told["seconds"]),
        str(told["precision"]),
        _words(told["versions"]),
        None if told.get("reason") is None else str(told["reason"]),
        tuple(map(str, told.get("remarks", ()))),
        tuple({name: shelf.get(one) for name, one in run.items()} for run in told.get("tapped_outputs", ())),
    )


def _taps(told: Sequence[Mapping[str, Any]], shelf: ArrayShelf) -> Iterator[Tapped]:
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
