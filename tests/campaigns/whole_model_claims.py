"""What is claimed of a legal model, checked against a runtime; every broken claim has a class.

Without a runtime, "numpy", only what NumPy tells is checked: of the model, and of what it is converted to.

As a program it checks a range of models, and prints how many break a claim, by class:
`python -m tests.campaigns.whole_model_claims CPU 0 5000 [FOLDER]`; FOLDER gets the smallest model of each class.
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from ir_scatter import runners
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.reachability import reachability_of
from ir_scatter.compare.result import CompareSettings, Relation, has_failed
from ir_scatter.compare.run import compare
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.errors import Error, NoInputs, UnknownOperator
from ir_scatter.core.model import Model
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.evaluate.model import prepare
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.portability import Portability, diagnose, find_targets
from ir_scatter.reading import read
from ir_scatter.runners.base import Outcome, Runner, Status
from ir_scatter.validate import validate
from tests.campaigns.model_graphs import Array
from tests.campaigns.whole_models import WholeModel, draw_model
from tests.scale import generator

_NUMPY = "numpy"
_SECONDS = 60.0
_COMPARED, _RUN_AFTER = 5, 4
"""Of so many models that are right or refused one is compared; of so many two are run after conversion."""
_ROUTES = {
    False: (
        "ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-3",
        "ScatterNDUpdate-15",
    ),
    True: ("ScatterElements", "ScatterND"),
}  # fmt: skip
_EXPLAINS = {
    "refused": {Symptom.REFUSED},
    "crashed": {Symptom.CRASHED, Symptom.REFUSED},
    "timeout": {Symptom.HUNG, Symptom.CRASHED},
    "wrong": {Symptom.WRONG_VALUE},
}
"""By how a run ended, the symptoms of defects that account for it."""
_ENDS_OTHERWISE = {"DEV309": {"refused", "crashed"}}
"""Defects whose runs may end in another way than their symptom says, though they stay in memory: this one gives an
output another shape, which what reads it may not accept."""
_FED = "trips fed"


class Broken(NamedTuple):
    """A claim that does not hold: its class, and details of this model."""

    name: str
    detail: str


@dataclass
class Summary:
    """Broken claims of many models by class, with the smallest model of each."""

    folder: Path | None = None
    figures: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, number: int, whole: WholeModel, broken: Broken, command: str) -> None:
        self.classes[broken.name] += 1
        size = whole.path.stat().st_size
        smallest = self.examples.get(broken.name)
        if smallest is not None and smallest[0] <= size:
            return
        self.examples[broken.name] = size, f"{number}: {broken.detail}"
        if self.folder is None:
            return
        target = self.folder / re.sub(r"[^\w@.-]+", "_", broken.name)[:80]
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in whole.path.parent.glob(f"*{whole.path.stem}.*"):
            shutil.copy(path, target / path.name)
        np.savez(target / "inputs.npz", **whole.feeds)  # type: ignore[arg-type]
        text = f"class: {broken.name}\nmodel: {number}, drawn: {', '.join(whole.words)}\n"
        text += f"command: {command}\ngot: {broken.detail}\n"
        (target / "README").write_text(text)

    def __str__(self) -> str:
        lines = [f"{name}: {count}" for name, count in sorted(self.figures.items())]
        for name, count in self.classes.most_common():
            lines.append(f"{count:6} {name}  e.g. {self.examples[name][1][:300]}")
        return "\n".join(lines)


def same(got: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Tell whether outputs are equal up to rounding."""
    if len(got) != len(expected):
        return False
    for left, right in zip(got, expected, strict=True):
        if left.shape != right.shape:
            return False
        tolerance = 4e-3 if right.dtype == np.float16 else 1e-5
        if not np.allclose(left.astype(np.float64), right.astype(np.float64), tolerance, tolerance):
            return False
    return True


def short(message: str) -> str:
    """Return a message without numbers, names and paths."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Exception from", "Check '"))] or lines
    text = kept[-1] if kept else ""
    text = re.sub(r"(?<=node ')[^']*|n_\w+|[a-z]+_\d+|v\d+|d\d+_\d+|/\S+", "*", text)
    return " ".join(re.sub(r"\[[^]]*\]|\{[^}]*\}|-?\d+", "#", text).split())[:110]


class Campaign:
    """Checks models on one runtime."""

    def __init__(self, name: str, summary: Summary, *, routes: bool = True) -> None:
        self.name, self.summary, self.routes = name, summary, routes
        self.runner: Runner | None = None if name == _NUMPY else runners.find(name)
        targets = ["CPU", "GPU", "onnxruntime"] if name == _NUMPY else [name]
        self.portability = Portability(find_targets(targets), here=())

    def close(self) -> None:
        if self.runner is not None:
            self.runner.close()

    def run(self, numbers: Sequence[int]) -> None:
        with TemporaryDirectory() as folder:
            for number in numbers:
                self.check(number, Path(folder))
                if number % 20 == 19 and self.summary.folder is not None:
                    self.summary.folder.mkdir(parents=True, exist_ok=True)
                    text = f"{self.name}, up to model {number}\n{self.summary}\n"
                    (self.summary.folder / "summary.txt").write_text(text)

    def check(self, number: int, folder: Path) -> None:
        is_onnx = self.name == "onnxruntime" or number % 2 == 1
        chance = generator("whole models", number)
        whole = draw_model(chance, folder, is_onnx=is_onnx, name=f"m{number}")
        route = chance.choice(_ROUTES[is_onnx])
        self.summary.figures["models"] += 1
        for broken in self.broken(whole, route, number):
            command = f"{self.name}, model {whole.path.name}, route {route}"
            self.summary.add(number, whole, broken, command)
        for path in folder.iterdir():
            path.unlink()

    def truth(self, path: Path, whole: WholeModel) -> tuple[str, Outcome]:
        """Return how the runtime ends, "right", "wrong", "refused" ..., in a fresh process if not right."""
        assert self.runner is not None
        for is_last in (False, True):
            outcome = self.runner.run(path, whole.feeds, timeout=_SECONDS)
            if outcome.status is Status.OK and same(list(outcome.outputs.values()), whole.expected):
                return "right", outcome
            if not is_last and outcome.status in {Status.OK, Status.CRASHED, Status.TIMEOUT}:
                self.runner.close()
                continue
            break
        kind = "wrong" if outcome.status is Status.OK else str(outcome.status)
        return "refused" if kind == "unsupported" else kind, outcome

    def _is_right_later(self, whole: WholeModel) -> bool:
        """Tell whether only the first inference of the compiled model is wrong."""
        assert self.runner is not None
        outcome = self.runner.run(whole.path, whole.feeds, timeout=_SECONDS, repeat=2)
        return outcome.status is Status.OK and same(list(outcome.runs[-1].values()), whole.expected)

    def broken(self, whole: WholeModel, route: str, number: int) -> Iterator[Broken]:
        """Yield the claims that do not hold of a model."""
        try:
            model = read(str(whole.path))
            errors = [one for one in validate(model) if one.severity is Severity.ERROR]
        except Exception as error:
            yield Broken(f"validate raises {type(error).__name__}: {short(str(error))}", str(error))
            return
        for found in errors:
            yield Broken(f"validate false error {found.code}: {short(found.message)}", found.message)
        can_compute = not errors and (yield from self._numpy(whole))
        if self.runner is None:
            if not errors:
                yield from self._unmeasured(model, whole, route, number, can_compute)
            return
        ended, outcome = self.truth(whole.path, whole)
        self.summary.figures[f"runtime {ended}"] += 1
        yield from self._diagnosed(model, ended, outcome, whole)
        if ended not in {"right", "refused"} or number % _COMPARED == 0:
            yield from self._compared(model, whole, ended, can_compute)
        if self.routes and not errors:
            yield from self._converted(model, whole, route, ended, number, can_compute)

    def _numpy(self, whole: WholeModel) -> Generator[Broken, None, bool]:
        try:
            got = list(prepare(str(whole.path)).run(whole.feeds).values())
        except UnknownOperator:
            self.summary.figures["not computed by NumPy"] += 1
            return False
        except Exception as error:
            yield Broken(f"NumPy refuses: {type(error).__name__} {short(str(error))}", str(error))
            return False
        if not same(got, whole.expected):
            yield Broken("NumPy computes something else", f"{got}, expected {whole.expected}"[:400])
            return False
        try:
            draw_feeds(str(whole.path), 0)
        except NoInputs as error:
            yield Broken(f"no inputs are drawn: {short(str(error))}", str(error))
        except Exception as error:
            yield Broken(f"drawing inputs raises {type(error).__name__}: {short(str(error))}", str(error))
        return True

    def _unmeasured(
        self, model: Model, whole: WholeModel, route: str, number: int, can_compute: bool
    ) -> Iterator[Broken]:
        try:
            diagnose(model, self.portability)
        except Exception as error:
            yield Broken(f"validate --for raises {type(error).__name__}: {short(str(error))}", str(error))
        yield from self._converted(model, whole, route, "", number, can_compute)

    def _diagnosed(self, model: Model, ended: str, outcome: Outcome, whole: WholeModel) -> Iterator[Broken]:
        try:
            found = diagnose(model, self.portability)
        except Exception as error:
            yield Broken(f"validate --for raises {type(error).__name__}: {short(str(error))}", str(error))
            return
        certain = sorted(
            {one.code for one in found if one.severity is Severity.ERROR and one.code[:3] == "DEV"}
        )
        said = sorted({one.code for one in found if one.code.startswith("DEV")})
        if ended == "right":
            for code in certain:
                message = next(one.message for one in found if one.code == code)
                yield Broken(f"certain but right {code}", f"{message}; {_context(whole)}")
            return
        if not any(_accounts_for(code, ended) for code in said):
            detail = outcome.message if ended != "wrong" else _difference(outcome, whole)
            key = _features(whole) if ended in {"wrong", "crashed"} else short(outcome.message)
            if ended == "crashed" and _has_empty_state(model):
                key = f"state without elements, {key}"
            how = ended
            if ended == "wrong" and not _computes_scatter(model):
                key = f"{'no trips, ' * ('no trips' in whole.words)}no scatter node is computed"
            elif ended == "wrong" and self._is_right_later(whole):
                how = "wrong at first"
                key = ", ".join([_FED, key] if any(word.startswith(_FED) for word in whole.words) else [key])
            yield Broken(f"not foretold {how}: {key}", f"said {said}: {detail[-700:]}; {_context(whole)}")
        elif ended == "refused":
            for code in certain:
                self.summary.figures[f"certain and so {code}"] += 1

    def _compared(self, model: Model, whole: WholeModel, ended: str, can_compute: bool) -> Iterator[Broken]:
        try:
            assert self.runner is not None
            found = compare(model, [self.runner], CompareSettings(timeout=_SECONDS), feeds=whole.feeds)
        except Error as error:
            yield Broken(f"compare refuses: {type(error).__name__} {short(str(error))}", str(error))
            return
        except Exception as error:
            yield Broken(f"compare raises {type(error).__name__}: {short(str(error))}", str(error))
            return
        numbers = [one for one in found.comparisons if one.relation is Relation.DOCUMENT]
        bad = [one for one in numbers if one.measure.verdict.is_difference]
        if ended == "right" and (bad or found.differs):
            detail = f"{[(one.level, one.node, str(one.measure.verdict), one.tensor) for one in bad]} {found.guarded}"
            levels = sorted({str(one.level) for one in bad})
            name = f"compare differs though right: {_features(whole)}: {' '.join(levels)}"
            yield Broken(name, f"{detail} {_context(whole)}")
        if ended == "wrong" and not found.differs and not has_failed([found]):
            verdicts = [str(one.measure.verdict) for one in found.comparisons]
            name = "compare equal though wrong" + ("" if can_compute else ", NumPy cannot compute it")
            yield Broken(name, f"{verdicts} {found.remarks} {_context(whole)}"[:600])
        if ended in {"refused", "crashed"} and not found.failed:
            yield Broken(f"compare does not say: {ended}", f"{found.outcomes}"[:600])

    def _converted(
        self, model: Model, whole: WholeModel, route: str, ended: str, number: int, can_compute: bool
    ) -> Iterator[Broken]:
        after = whole.path.with_name(f"a{whole.path.name}")
        try:
            conversion = convert(model, route, verify=2, seed=number)
            for one in conversion.refused:
                self.summary.figures[f"refusal {one.code}"] += 1
            if conversion.refused or not conversion.patches:
                return
            conversion.write(after, overwrite=True)
        except Error as error:
            yield Broken(f"convert refuses: {type(error).__name__} {short(str(error))}", f"{route}: {error}")
            return
        except Exception as error:
            yield Broken(f"convert raises {type(error).__name__}: {short(str(error))}", f"{route}: {error!r}")
            return
        self.summary.figures["converted"] += 1
        rewrites = sorted({word for one in conversion.converted for word in one.rewrites})
        converted = read(str(after))
        for finding in validate(converted):
            if finding.severity is Severity.ERROR:
                name = f"converted has error {finding.code}: {short(finding.message)}"
                yield Broken(name, f"{route}: {finding.message}")
        if can_compute:
            try:
                got = list(prepare(converted).run(whole.feeds).values())
                if not same(got, whole.expected):
                    yield Broken("converted is not the same in NumPy", f"{route} {rewrites}")
            except Exception as error:
                yield Broken(
                    f"converted: NumPy {type(error).__name__} {short(str(error))}", f"{route}: {error}"
                )
        if ended == "right" and number % _RUN_AFTER < 2:
            now, outcome = self.truth(after, whole)
            if now != "right":
                said = {device.code for device in _devices(converted, self.portability)}
                is_told = any(_accounts_for(code, now) for code in said)
                how = "and said so" if is_told else "and nothing is said"
                self.summary.figures["converted is worse, and said so"] += is_told
                if not is_told:
                    detail = outcome.message if now != "wrong" else _difference(outcome, whole)
                    key = short(outcome.message) if now != "wrong" else " ".join(rewrites)
                    name = f"converted is {now}, {how}: {key}"
                    yield Broken(name, f"{route} {rewrites} said {sorted(said)}: {detail[-600:]}")


def _computes_scatter(model: Model) -> bool:
    """Tell whether an output of a model may depend on a scatter node."""
    reachability = Facts(model=model).result_of(reachability_of)
    nodes = [node for node in model.graph.walk() if find_scatter(node.domain, node.type, node.opset)]
    return reachability is None or any(not reachability.reach(node).is_never for node in nodes)


def _has_empty_state(model: Model) -> bool:
    """Tell whether a model keeps a state without elements."""
    reads = model.graph.walk(frozenset({"ReadValue"}))
    return any("0" in str(node.attributes.get("variable_shape", "")).split(",") for node in reads)


def _accounts_for(code: str, ended: str) -> bool:
    """Tell whether a defect accounts for how a run ended."""
    defect = by_code()[code]
    is_crash = defect.may_crash and ended == "crashed"
    return is_crash or defect.symptom in _EXPLAINS.get(ended, ()) or ended in _ENDS_OTHERWISE.get(code, ())


def _devices(model: Model, portability: Portability) -> list[Diagnostic]:
    with suppress(Exception):
        return [one for one in diagnose(model, portability) if one.code.startswith("DEV")]
    return []


def _context(whole: WholeModel) -> str:
    return " ".join(
        dict.fromkeys(word for word in whole.words if not re.fullmatch(r"[fiu]\d+|view \w+", word))
    )


_FEATURES = (
    "no trips",
    "data state",
    "random",
    "invariant data",
    "empty",
    "function",
    "if",
    "loop",
    "scan",
    "main",
)


def _features(whole: WholeModel) -> str:
    """Return what a model has that a wrong result may be due to."""
    return ", ".join(word for word in _FEATURES if word in whole.words)


def _difference(outcome: Outcome, whole: WholeModel) -> str:
    for (name, got), expected in zip(outcome.outputs.items(), whole.expected, strict=False):
        if not same([got], [expected]):
            text = f"{name}: got {got.dtype} {got.shape} {got.tolist()}, expected {expected.shape} {expected.tolist()}"
            return text.replace("\n", " ")[:690]
    return "outputs differ in number"


def main(arguments: Sequence[str]) -> None:
    name, first, last = arguments[0], int(arguments[1]), int(arguments[2])
    summary = Summary(Path(arguments[3]) if arguments[3:] else None)
    campaign = Campaign(name, summary)
    try:
        campaign.run(range(first, last))
    finally:
        campaign.close()
        print(f"{name}, models {first} to {last - 1}\n{summary}")


if __name__ == "__main__":
    main(sys.argv[1:])
