"""Legal cases of operators and types that a runtime gets right: nothing is said of any of them.

As a program, `python -m tests.campaigns.test_right_cases onnxruntime 1000000`, it takes as many as it is told.
"""

import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest

from ir_scatter.cases.case import Case, Limits
from ir_scatter.cases.draw import Draws, Form, draw_form, draw_sizes, draw_values
from ir_scatter.cases.judge import judge
from ir_scatter.cases.workshop import Workshop
from ir_scatter.fuzz.campaign import operators
from ir_scatter.ops.spec import OpSpec, Reduction
from ir_scatter.runners import find
from tests import scale

CASES, OF_A_FORM, OFTEN = 2_000, 250, 50_000
RIGHT = {
    "onnxruntime": (("ScatterElements", "ScatterND"), {"f32", "f64", "i8", "i32", "i64", "u8", "u64"}),
    "CPU": (("ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate"), {"f32", "i32"}),
}


def is_right(runner: str, form: Form) -> bool:
    """Tell whether no known defect is about a form."""
    if runner == "onnxruntime":
        return True
    is_mean = form.reduction is Reduction.MEAN and form.element_type.name != "f32"
    return form.index_rank != 0 and not form.scalar_rank and not is_mean


def drawn(runner: str, specs: tuple[OpSpec, ...], seed: int) -> Iterator[list[Case]]:
    """Yield cases of one form after the other."""
    limits = Limits(
        element_types=frozenset(RIGHT[runner][1]), index_types=frozenset({"i32", "i64"}),
        constants=False, shapes=("dynamic", "bounded"), values="plain",
    )  # fmt: skip
    while True:
        draws = Draws(seed)
        form = draw_form(draws, specs[seed % len(specs)], limits)
        start, cases = len(draws.decisions), list[Case]()
        while is_right(runner, form) and len(cases) < OF_A_FORM:
            del draws.decisions[start:]
            cases.append(draw_values(draws, form, draw_sizes(draws, form)))
        if cases:
            yield cases
        seed += 1


def look(name: str, count: int, seed: int = 0) -> tuple[int, list[str]]:
    """Return how many cases were judged, and what was said of them."""
    runner, told, judged = find(name), list[str](), 0
    specs = tuple(spec for spec in operators(RIGHT[name][0]) if not spec.is_removed)
    with TemporaryDirectory() as folder:
        workshop = Workshop(folder, 60.0, passes_over=False)
        runner.start()
        try:
            for cases in drawn(name, specs, seed):
                for case, answer in zip(cases, workshop.stream(runner, cases, 1), strict=True):
                    found = judge(case, answer)
                    judged += found.is_run
                    if found.symptom is not None:
                        told.append(f"{case.operator} {case.decisions}: {found.symptom}: {found.message}")
                if judged // OFTEN > (judged - len(cases)) // OFTEN:
                    print(judged, len(told), file=sys.stderr, flush=True)
                if judged >= count:
                    return judged, told
        finally:
            runner.close()
    raise AssertionError("there is no end of forms")


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_raises_nothing(name: str) -> None:
    _, told = look(name, len(scale.cases(CASES)))
    assert told == []


if __name__ == "__main__":
    judged, told = look(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0)
    print(f"{judged} cases on {sys.argv[1]}, {len(told)} findings")
    print("\n".join(told[:40]))
