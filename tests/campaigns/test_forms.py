"""New forms of single nodes on runtimes: empty inputs, dimensions left out of the file, small element types, all ranks.

As a program it checks a range of models, and prints what differs:
`python -m tests.campaigns.test_forms deep 0 1000`.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest

from ir_scatter import convert, evaluate_model, runners, validate
from ir_scatter.cases.case import Case, Limits, repeats_targets
from ir_scatter.cases.draw import Draws, draw_case, draw_form
from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.arrays import Array
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import OneInput
from ir_scatter.ops.lookup import SPECS
from ir_scatter.runners.base import Outcome, Runner, Status
from tests.campaigns.test_conversions import ROUTES, failures, same
from tests.scale import cases, generator, in_part_and_whole

TYPES = frozenset({"f32", "f16", "i64", "i32", "u8", "i8", "boolean"})
LIMITS = Limits(
    element_types=TYPES, index_types=frozenset({"i32", "i64"}), may_repeat=False, ranks=6, values="plain"
)
_IR_ROWS = (
    "ScatterUpdate-3", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-3", "ScatterNDUpdate-15"
)  # fmt: skip
_ONNX_ROWS = (
    "ScatterElements-18", "ScatterND-18", "TensorScatter-24", "ScatterElements-13", "ScatterND-11", "ScatterND-16"
)  # fmt: skip


class Dialect(NamedTuple):
    """What models are drawn, what they are converted to, and where they run.

    Attributes:
        rows: operators that are drawn.
        routes: operators that a model is converted to.
        devices: runners.
        ranks: every rank of data up to this one is drawn equally often; 0 for the ranks that are usual.
        empty_share: share of models with an input without elements.
        has_open_dims: whether a model may leave out sizes.
    """

    rows: tuple[str, ...]
    routes: tuple[str, ...]
    devices: tuple[str, ...]
    ranks: int = 0
    empty_share: float = 0.5
    has_open_dims: bool = True


DIALECTS = {
    "ir": Dialect(_IR_ROWS, ROUTES["ir"], ("CPU",)),
    "onnx": Dialect(_ONNX_ROWS, ROUTES["onnx"], ("onnxruntime", "CPU")),
    "deep": Dialect(_IR_ROWS, ROUTES["ir"], ("GPU@cpu",), ranks=8, empty_share=0.1, has_open_dims=False),
}
"""With static shapes the GPU plugin lays out tensors by their ranks, so that there all ranks are drawn."""
SPECS_BY_NAME = {str(key): spec for key, spec in SPECS.items()}


@pytest.fixture(scope="module")
def open_runners() -> Iterator[dict[str, Runner]]:
    found = dict[str, Runner]()
    yield found
    for runner in found.values():
        runner.close()


def open_devices(dialect: Dialect, opened: dict[str, Runner]) -> Mapping[str, Runner]:
    """Return the runners of a dialect, each of which is opened once; skip the test if one cannot run here."""
    for name in dialect.devices:
        runner = opened.setdefault(name, runners.find(name))
        if not runner.availability().is_available:
            pytest.skip(f"{name} does not run here")
    return opened


def draw(chance: Random, dialect: Dialect) -> Case:
    spec = SPECS_BY_NAME[chance.choice(dialect.rows)]
    wants_empty = chance.random() < dialect.empty_share
    rank = chance.randint(1, dialect.ranks) if dialect.ranks else None
    limits = replace(LIMITS, ranks=dialect.ranks) if rank else LIMITS
    while True:
        draws = Draws(chance.randrange(1 << 30))
        form = draw_form(draws, spec, limits)
        if rank not in {None, form.rank}:
            continue
        case = draw_case(draws, form)
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


def write(
    chance: Random, case: Case, folder: Path, *, has_open_dims: bool
) -> tuple[Path, Mapping[str, Array]]:
    node = case.node()
    inputs = [one and with_open_dims(chance, one) if has_open_dims else one for one in node.inputs]
    shape = inputs[0].declared if inputs[0] is not None else node.shape
    files = FORMATS[case.format].nodes([replace(node, inputs=inputs, shape=shape)])
    for suffix, content in files.items():
        (folder / f"before{suffix}").write_bytes(content)
    feeds = {one.name: one.array for one in inputs if one is not None and not one.is_constant}
    return folder / f"before{next(iter(files))}", feeds


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("dialect", DIALECTS)
@in_part_and_whole
def test_new_forms_run_where_the_old_ones_run(
    dialect: str, tmp_path: Path, figures: "Counter[str]", open_runners: dict[str, Runner], is_whole: bool
) -> None:
    """After `--to` each device runs what it ran before, and after `--for` a device runs the model.

    What a device computes right is no error of `validate --for`.
    """
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    opened = open_devices(DIALECTS[dialect], open_runners)
    assert [*differences(dialect, cases(15, is_whole), tmp_path, figures, opened)] == []


def differences(
    name: str, numbers: range, folder: Path, figures: "Counter[str]", opened: Mapping[str, Runner]
) -> Iterator[str]:
    """Yield what differs of models by their numbers."""
    dialect = DIALECTS[name]
    for number in numbers:
        chance = generator(f"forms of {name}", number)
        case = draw(chance, dialect)
        figures[f"rank {case.data.ndim}"] += bool(dialect.ranks)
        for difference in Trial(chance, case, dialect, folder, figures, opened):
            yield f"{number} {difference}"


def test_every_rank_is_drawn() -> None:
    dialect, ranks = DIALECTS["deep"], Counter[tuple[int, str]]()
    for number in range(400):
        case = draw(generator("forms of deep", number), dialect)
        assert case.shapes == "static"
        ranks[case.data.ndim, case.spec.layout] += 1
    layouts = {SPECS_BY_NAME[row].layout for row in dialect.rows}
    assert ranks.keys() == {(rank, layout) for rank in range(1, 9) for layout in layouts}


class Trial:
    """One model, converted to another operator and for each device."""

    def __init__(
        self,
        chance: Random,
        case: Case,
        dialect: Dialect,
        folder: Path,
        figures: "Counter[str]",
        open_runners: Mapping[str, Runner],
    ) -> None:
        self.folder, self.figures, self.runners = folder, figures, open_runners
        self.before, self.feeds = write(chance, case, folder, has_open_dims=dialect.has_open_dims)
        self.promises = [] if repeats_targets(case) else ["unique-indices"]
        self.title = f"{case.operator} {case.reduction} {case.element_type.name}"
        self.expected = [*evaluate_model(self.before, self.feeds).values()]
        self.ran = {name: self._runs(name, self.before) for name in dialect.devices}
        self.target = chance.choice(dialect.routes)
        figures["models"] += 1

    def __iter__(self) -> Iterator[str]:
        for name, problem in self.ran.items():
            told = failures(name, self.before)
            certain = [one.message for one in told if one.severity is Severity.ERROR]
            self.figures[f"{name}: {'certain' if certain else 'told'}, and so"] += bool(told and problem)
            if certain and not problem:
                yield f"{self.title} on {name}: right, though it is certain that {certain[0]}"
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
            is_same = now == problem and after.read_bytes() == self.before.read_bytes()
            if now and not is_same and not self._is_known(name, after):
                yield f"{self.title} for {name}: {now}"

    def _is_known(self, name: str, path: Path) -> bool:
        found = bool(failures(name, path))
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


def main(arguments: list[str]) -> None:
    name, first, last = arguments[0], int(arguments[1]), int(arguments[2])
    figures, opened = Counter[str](), {one: runners.find(one) for one in DIALECTS[name].devices}
    try:
        with TemporaryDirectory() as folder:
            for difference in differences(name, range(first, last), Path(folder), figures, opened):
                print(difference, flush=True)
    finally:
        for runner in opened.values():
            runner.close()
        print("\n".join(f"{figure}: {count}" for figure, count in sorted(figures.items())))


if __name__ == "__main__":
    main(sys.argv[1:])
