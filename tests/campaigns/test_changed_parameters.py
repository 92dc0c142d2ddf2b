"""Real models with the shape of an input changed by hand, all else as it was: what a conversion makes of them
computes what they compute, on each runtime that takes them, and contradicts itself nowhere else than they do."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx
import pytest

from ir_scatter import convert, runners, validate
from ir_scatter.core.errors import Error
from ir_scatter.inputs.model import Drawn, draw_feeds
from ir_scatter.runners.base import Runner, Status
from tests.campaigns.test_conversions import same
from tests.scale import NIGHTLY, cases, generator, in_part_and_whole

MODELS = Path(__file__).parents[3] / "shared" / "models"
TARGETS = {
    ".xml": (
        "ScatterUpdate", "ScatterElementsUpdate-3", "ScatterElementsUpdate", "ScatterNDUpdate-3", "ScatterNDUpdate",
    ),
    ".onnx": ("ScatterElements", "ScatterND"),
}  # fmt: skip
RUNNERS = {".xml": ("CPU",), ".onnx": ("onnxruntime", "CPU")}
FEW = 40
"""So many of all are tried in the long profile, all in the nightly one."""

_PARAMETER = re.compile(rb'(type="Parameter"[^>]*>\s*<data [^>]*?shape=")([^"]*)(")')
_Change = tuple[int | None, int, int | None]
"""A dimension of one input, None for all of its size; its size, and the new one, None for dynamic."""

pytestmark = [
    pytest.mark.openvino,
    pytest.mark.onnxruntime,
    pytest.mark.models,
    pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"),
]


def mutants() -> list[tuple[Path, _Change]]:
    """Every dimension of every input alone, and all of one size at once, made dynamic or larger."""
    found: list[tuple[Path, _Change]] = []
    for path in sorted(path for path in MODELS.rglob("*") if path.suffix in TARGETS):
        sizes = [size for size in sizes_of(path) if size is not None and size > 1]
        places: list[tuple[int | None, int]] = [(None, size) for size in dict.fromkeys(sizes)]
        places += [(at, size) for at, size in enumerate(sizes_of(path)) if size is not None and size > 1]
        found += [(path, (at, size, new)) for at, size in places[:12] for new in (None, size + 3)]
    return found


def sizes_of(path: Path) -> list[int | None]:
    """The dimensions of all inputs, one after the other; None for one that is not static."""
    if path.suffix == ".xml":
        texts = [text.split(b",") for _, text, _ in _PARAMETER.findall(path.read_bytes())]
        return [int(dim) if dim.strip().isdigit() else None for dims in texts for dim in dims]
    graph = onnx.load(str(path), load_external_data=False).graph
    held = {one.name for one in graph.initializer}
    dims = [dim for one in graph.input if one.name not in held for dim in one.type.tensor_type.shape.dim]
    return [dim.dim_value or None for dim in dims]


def write(path: Path, change: _Change, new: Path) -> None:
    """Write a model with a changed input; everything behind it remembers the old shape."""
    at, old, size = change
    if path.suffix == ".onnx":
        model = onnx.load(str(path))
        held = {one.name for one in model.graph.initializer}
        inputs = [one for one in model.graph.input if one.name not in held]
        for place, dim in enumerate(dim for one in inputs for dim in one.type.tensor_type.shape.dim):
            if place == at or (at is None and dim.dim_value == old):
                dim.CopyFrom(onnx.TensorShapeProto.Dimension(dim_value=size))
        new.write_bytes(model.SerializeToString())
        return
    places = iter(range(1 << 30))

    def changed(found: re.Match[bytes]) -> bytes:
        dims = [
            b"?" if size is None and is_meant else str(size).encode() if is_meant else dim
            for dim in found[2].split(b",")
            for is_meant in [next(places) == at or (at is None and dim.strip() == str(old).encode())]
        ]
        return found[1] + b",".join(dims) + found[3]

    new.write_bytes(_PARAMETER.sub(changed, path.read_bytes()))
    new.with_suffix(".bin").unlink(missing_ok=True)
    if path.with_suffix(".bin").exists():
        shutil.copyfile(path.with_suffix(".bin"), new.with_suffix(".bin"))


def contradictions(path: Path) -> int:
    """Count what is stored wrongly, by whatever rule it is told: a scatter node's output may be another node's now."""
    return sum(one.code.startswith("SCT5") for one in validate(path))


@pytest.fixture(scope="module")
def open_runners() -> Iterator[dict[str, Runner]]:
    found = {name: runners.find(name) for names in RUNNERS.values() for name in names}
    yield found
    for runner in found.values():
        runner.close()


@in_part_and_whole
def test_models_with_changed_inputs(
    tmp_path: Path, figures: "Counter[str]", open_runners: dict[str, Runner], is_whole: bool
) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    every, differences = mutants(), list[str]()
    chance, count = generator("changed parameters", 0), len(cases(FEW, is_whole))
    chosen = every if NIGHTLY else chance.sample(every, FEW)[:count]
    for number, (path, change) in enumerate(chosen):
        before = tmp_path / f"before{path.suffix}"
        write(path, change, before)
        figures["models"] += 1
        taken = list[tuple[Runner, Drawn, list[npt.NDArray[Any]]]]()
        try:
            drawn = [draw_feeds(before, 3 * number + at) for at in range(2)]
        except Error:
            figures["no inputs"] += 1
            continue
        for runner in map(open_runners.__getitem__, RUNNERS[path.suffix]):
            for one in drawn:
                outcome = runner.run(before, one.feeds, timeout=60)
                if outcome.status is Status.OK and not one.repeated:
                    taken.append((runner, one, list(outcome.outputs.values())))
        if not taken:
            figures["models that no runtime takes"] += 1
            continue
        figures["models that run"] += 1
        for target in TARGETS[path.suffix]:
            after = tmp_path / f"after{path.suffix}"
            name = f"{path.relative_to(MODELS)} {change} to {target}"
            found = convert(before, target, verify=2)
            figures.update(f"refusal {one.code}" for one in found.refused)
            if found.is_empty or found.is_stuck:
                continue
            found.write(after, overwrite=True, partial=True)
            figures["conversions"] += 1
            figures.update(word for one in found.converted for word in one.assumptions)
            if contradictions(after) > contradictions(before):
                differences.append(f"{name}: contradicts itself")
            for runner, one, expected in taken:
                outcome = runner.run(after, one.feeds, timeout=60)
                place = f"{name} on {runner.name}"
                if outcome.status is not Status.OK:
                    differences.append(f"{place}: {outcome.status} {outcome.message}")
                elif not same(list(outcome.outputs.values()), expected):
                    differences.append(f"{place}: another result")
                else:
                    figures["equal runs"] += 1
    figures["differences"] += len(differences)
    assert differences == []
    assert figures["equal runs"]
