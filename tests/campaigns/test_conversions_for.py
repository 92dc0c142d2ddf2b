"""Drawn nodes before and after `convert --for` a device: what was wrong is fixed, refused or at risk, what was right stays."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter import convert, runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import judge
from ir_scatter.core.model import ONNX
from ir_scatter.defects.base import Symptom
from ir_scatter.formats import FORMATS
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.runners.base import Runner, Status
from tests.models.cases import random_case
from tests.scale import cases, generator

COUNTS = {"CPU": 60, "openvino:fold": 60, "onnxruntime": 60, "GPU@cpu": 15}
"""Drawn nodes for each device; the nightly profile draws a hundred times as many."""
_ROLES = (Role.DATA, Role.INDICES, Role.UPDATES)
_NOT_FOLDED = "is not folded"


def rows_of(name: str) -> list[OpSpec]:
    return [
        spec
        for spec in SPECS.values()
        if spec.layout is not Layout.SEQUENCE
        and not spec.is_removed
        and (name != "onnxruntime" or spec.key.domain == ONNX)
    ]


def drawn(name: str, number: int) -> Case:
    random = generator(f"conversion for {name}", number)
    case = random_case(random.choice(rows_of(name)), random.randrange(2**32), is_wild=random.random() < 0.4)
    share = 1.0 if name == "openvino:fold" else 0.25
    constants = frozenset(role for role in _ROLES if random.random() < share)
    return replace(case, constants=constants | case.constants)


def symptom_of(case: Case, path: Path, runner: Runner) -> tuple[Symptom | None, str]:
    """Run a model once; return the symptom, and a message."""
    (answer,) = runner.stream(path, [case.feeds()], timeout=120)
    if answer.status in {Status.UNAVAILABLE, Status.UNSUPPORTED}:
        return Symptom.REFUSED, answer.message
    judgement = judge(case, answer, [])
    return judgement.symptom, judgement.message


def fate_of(case: Case, path: Path, runner: Runner) -> str:
    """Return what became of a model in two words; "unexpected" begins those that should not be."""
    before, message = symptom_of(case, path, runner)
    if _NOT_FOLDED in message:
        return "left to a device"
    conversion = convert(path, targets=[runner.name], verify=2)
    if conversion.refused:
        return "refused" if before is not None else f"unexpected refusal: {conversion.refused[0].message}"
    after = before
    if not conversion.is_empty:
        conversion.write(new := path.with_stem("after"))
        after, message = symptom_of(case, new, runner)
        after = None if _NOT_FOLDED in message else after
    if after is None:
        return "right" if before is None else "fixed"
    if before is not None and conversion.risks:
        return "at risk"
    ways = [name for converted in conversion.converted for name in converted.rewrites]
    return f"unexpected {after}, {before} before: {message[:200]} {ways}"


@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("name", COUNTS)
def test_what_a_device_gets_wrong_is_fixed_refused_or_at_risk(
    name: str, tmp_path: Path, figures: "Counter[str]"
) -> None:
    runner = runners.find(name)
    if not runner.availability().is_available:
        pytest.skip(f"{name} does not run here")
    unexpected = dict[int, str]()
    for number in cases(COUNTS[name]):
        case = drawn(name, number)
        if case.spec.layout is Layout.TUPLES and case.indices is not None and case.indices.shape[-1] == 0:
            continue  # SCT305 says that runtimes differ on tuples without coordinates
        (folder := tmp_path / str(number)).mkdir()
        files = FORMATS[case.format].nodes([case.node()])
        for suffix, content in files.items():
            (folder / f"model{suffix}").write_bytes(content)
        fate = fate_of(case, folder / f"model{next(iter(files))}", runner)
        figures[f"{name}: {fate.partition(' ')[0] if fate.startswith('unexpected') else fate}"] += 1
        if fate.startswith("unexpected"):
            unexpected[number] = fate
    runner.close()
    assert unexpected == {}
