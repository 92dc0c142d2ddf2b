"""Each probe of a known defect is known as it, on releases where that was measured; what comes near it is not."""

import pytest

from ir_scatter.cases.from_probe import case_of
from ir_scatter.defects import all_defects
from ir_scatter.defects.base import Defect, Result, Symptom
from ir_scatter.defects.evidence import Row, history, key_of, order, result_of
from ir_scatter.fuzz.known_defects import defect_history, is_regression, known_defects

LATEST = {row.runner: row for row in sorted(history(), key=lambda row: order(row.release))}
_SYMPTOMS = {
    Result.WRONG: Symptom.WRONG_VALUE, Result.REFUSED: Symptom.REFUSED, Result.CRASHED: Symptom.CRASHED,
    Result.ACCEPTED: Symptom.ACCEPTED_ILLEGAL, Result.ABSENT: Symptom.REFUSED,
}  # fmt: skip


def latest(defect: Defect) -> list[Row]:
    return [row for name, row in LATEST.items() if name.removesuffix("@cpu") in defect.runners]


@pytest.mark.parametrize("defect", all_defects(), ids=lambda one: one.code)
def test_a_probe_is_known(defect: Defect) -> None:
    looked = 0
    for row in latest(defect):
        for probe in defect.probes:
            result = row.results.get(key_of(defect, probe), Result.RIGHT)
            symptom = _SYMPTOMS.get(result)
            if symptom is None or (symptom is Symptom.REFUSED) != (defect.symptom is Symptom.REFUSED):
                continue
            looked += 1
            found = known_defects(case_of(probe), row.runner, row.release, symptom, inferences=probe.times)
            assert defect.code in found, (row.runner, probe.name, found)
    seen = {result_of(defect, row) for row in latest(defect)}
    assert looked or seen <= {None, Result.RIGHT, Result.ABSENT}


OF_SUMS = {"DEV105", "DEV107"}
"""What is in the sums behind a mean no file says, however constant its inputs are."""


@pytest.mark.parametrize(
    "defect",
    [one for one in all_defects() if one.near and one.per_model is None and one.code not in OF_SUMS],
    ids=lambda one: one.code,
)
def test_what_comes_near_is_not(defect: Defect) -> None:
    for row in latest(defect):
        for probe in defect.near:
            if probe.shapes == "static":  # else sizes that are open may be those that matter
                found = known_defects(
                    case_of(probe), row.runner, row.release, defect.symptom, inferences=probe.times
                )
                assert defect.code not in found, (row.runner, probe.name, found)


def test_what_was_measured_is_told_by_release() -> None:
    assert defect_history("DEV105", "openvino:CPU").startswith(
        "DEV105 mean-of-negative-integers: right in 2023.1.0 to 2024.0.0, wrong in 2024.1.0"
    )
    assert is_regression("DEV105", "openvino:CPU", "2026.4.1")
    assert is_regression("DEV101", "host/openvino@2026.4.1:CPU", "2026.4.1") is False
    assert is_regression("DEV101", "openvino:CPU", "2023.0.2") is None
    assert defect_history("DEV305", "openvino:GPU").startswith("DEV305 ")  # by what stands in for it
