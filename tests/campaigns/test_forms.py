"""New forms of single nodes on runtimes: empty inputs, dimensions left out of the file, small element types."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ir_scatter import convert, evaluate_model, runners, validate
from ir_scatter.cases.case import Case, Limits, repeats_targets
from ir_scatter.cases.draw import Draws, draw_case, draw_form
from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.arrays import Array
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Symptom
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import OneInput
from ir_scatter.ops.lookup import SPECS
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.campaigns.test_conversions import ROUTES, same
from tests.scale import cases, generator, in_part_and_whole

TYPES = frozenset({"f32", "f16", "i64", "i32", "u8", "i8", "boolean"})
LIMITS = Limits(
    element_types=TYPES, index_types=frozenset({"i32", "i64"}), may_repeat=False, ranks=6, values="plain"
)
ROWS = {
    "ir": ("ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-3",
           "ScatterNDUpdate-15"),
    "onnx": ("ScatterElements-18", "ScatterND-18", "TensorScatter-24", "ScatterElements-13", "ScatterND-11",
             "ScatterND-16"),
}  # fmt: skip
DEVICES = {"ir": ("CPU",), "onnx": ("onnxruntime", "CPU")}
SPECS_BY_NAME = {str(key): spec for key, spec in SPECS.items()}
_TOLD = frozenset({Symptom.REFUSED, Symptom.WRONG_VALUE})
_EMPTY_SHARE = 0.5
"""Share of models with an input without elements."""


@pytest.fixture(scope="module")
def open_runners() -> Iterator[Mapping[str, Runner]]:
    found = {name: runners.find(name) for name in {name for every in DEVICES.values() for name in every}}
    yield found
    for runner in found.values():
        runner.close()


def draw(chance: Random, dialect: str) -> Case:
    spec = SPECS_BY_NAME[chance.choice(ROWS[dialect])]
    wants_empty = chance.random() < _EMPTY_SHARE
    while True:
        draws = Draws(chance.randrange(1 << 30))
        case = draw_case(draws, draw_form(draws, spec, LIMITS))
        if wants_empty == (case.updates.size == 0 or case.data.size == 0):
            return case


def with_open_dims(chance: Random, input: OneInput) -> OneInput:
    """Return an input some of whose dimensions the model does not state, or states within bounds."""
    if input.is_constant:
        return input
    kind = chance.choice(["static", "dynamic", "bounded", "mixed"])

    def declared(dim: int) -> Dim:
        own = chance.choice(["static", "dynamic", "bounded"]) if kind == "mixed" else kind
        if own == "static" or (kind != "mixed" and chance.random() < 0.4):
            return dim
        return UNKNOWN_DIM if own == "dynamic" else bounds_around(chance, dim)

    return replace(input, shape=tuple(map(declared, input.array.shape)))


def bounds_around(chance: Random, dim: int) -> Bounds:
    """Return bounds that a size is within, those of an exporter (1..8) among them."""
    return chance.choice(
        [Bounds(0, dim + 2), Bounds(dim, dim + 2), Bounds(min(dim, 1), 8), Bounds(dim, None)]
    )


def write(chance: Random, case: Case, folder: Path) -> tuple[Path, Mapping[str, Array]]:
    node = case.node()
    inputs = [one and with_open_dims(chance, one) for one in node.inputs]
    shape = inputs[0].declared if inputs[0] is not None else node.shape
    files = FORMATS[case.format].nodes([replace(node, inputs=inputs, shape=shape)])
    for suffix, content in files.items():
        (folder / f"before{suffix}").write_bytes(content)
    feeds = {one.name: one.array for one in inputs if one is not None and not one.is_constant}
    return folder / f"before{next(iter(files))}", feeds


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", ["onnx", "ir"])
@in_part_and_whole
def test_new_forms_run_where_the_old_ones_run(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: Mapping[str, Runner], is_whole: bool
) -> None:
    """After `--to` each device runs what it ran before, and after `--for` a device runs the model."""
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    differences = list[str]()
    for number in cases(15, is_whole):
        chance = generator(f"forms of {dialect}", number)
        case = draw(chance, dialect)
        differences += (
            f"{number} {one}" for one in Trial(chance, case, dialect, tmp_path, figures, open_runners)
        )
    assert differences == []


class Trial:
    """One model, converted to another operator and for each device."""

    def __init__(
        self,
        chance: Random,
        case: Case,
        dialect: str,
        folder: Path,
        figures: "Counter[str]",
        open_runners: Mapping[str, Runner],
    ) -> None:
        self.folder, self.figures, self.dialect, self.runners = folder, figures, dialect, open_runners
        self.before, self.feeds = write(chance, case, folder)
        self.promises = [] if repeats_targets(case) else ["unique-indices"]
        self.title = f"{case.operator} {case.reduction} {case.element_type.name}"
        self.expected = [*evaluate_model(self.before, self.feeds).values()]
        self.ran = {name: self._runs(name, self.before) for name in DEVICES[dialect]}
        self.target = chance.choice(ROUTES[dialect])
        figures["models"] += 1

    def __iter__(self) -> Iterator[str]:
        after = self._converted(self.target, ())
        if after is not None:
            for name, problem in self.ran.items():
                now = self._runs(name, after)
                if not problem and now and not self._is_known(name, after):
                    yield f"{self.title} to {self.target} on {name}: {now}"
        for name, problem in self.ran.items():
            after = self._converted(None, (name,))
            if after is None:
                if not problem and not self._is_known(name, self.before):
                    yield f"{self.title} for {name}: refused, and {name} runs it"
                continue
            now = self._runs(name, after)
            self.figures[f"{name}: {'refused before' if problem else 'ran before'}, converted"] += 1
            if now and not self._is_known(name, after):
                yield f"{self.title} for {name}: {now}"

    def _is_known(self, name: str, path: Path) -> bool:
        """Whether `validate --for` reports that the device may refuse the model or compute it wrong."""
        diagnostics = diagnose(read(path), portability_to((name,)))
        found = any(one.code in by_code() and by_code()[one.code].symptom in _TOLD for one in diagnostics)
        self.figures[f"{name}: known to fail"] += found
        return found

    def _runs(self, name: str, path: Path) -> str:
        """Run a model; return why its output is not as documented, "" if it is."""
        outcome: Outcome = self.runners[name].run(path, self.feeds, timeout=60)
        if outcome.status is not Status.OK:
            return f"{outcome.status} {outcome.message}"
        outputs = [np.asarray(one) for one in outcome.outputs.values()]
        return "" if same(outputs, self.expected) else "wrong"

    def _converted(self, to: str | None, targets: tuple[str, ...]) -> Path | None:
        """Convert the model and check the new one against the rules and NumPy; None if it was refused."""
        conversion: Conversion = convert(self.before, to, targets=targets, verify=4, assume=self.promises)
        self.figures.update(f"refusal {one.code}" for one in conversion.refused)
        if conversion.refused:
            return None
        after = self.folder / f"after{self.before.suffix}"
        conversion.write(after, overwrite=True)
        broken = [f"{one.code} {one.message}" for one in validate(after) if one.severity is Severity.ERROR]
        assert not broken, f"{self.title}: {broken}"
        assert same([*evaluate_model(after, self.feeds).values()], self.expected), self.title
        return after
