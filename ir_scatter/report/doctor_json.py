"""Results of the probes for known defects on each device as JSON, also for bug reports."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.doctor import Checked, Diagnosis
from ir_scatter.report.characters import as_document, dumps, fields_of

_DEVICE = "runner is_available reason full_name driver capabilities versions"


def render(diagnoses: Sequence[Diagnosis]) -> str:
    devices = [
        {
            **fields_of(diagnosis.device, _DEVICE),
            "release": diagnosis.release,
            "differs": diagnosis.differs,
            "defects": [_defect(checked, diagnosis) for checked in diagnosis.defects],
        }
        for diagnosis in diagnoses
    ]
    return dumps(as_document(devices=devices))


def _defect(checked: Checked, diagnosis: Diagnosis) -> dict[str, Any]:
    keys = f"{checked.defect.code}/"
    results = {} if diagnosis.row is None else diagnosis.row.results
    return {
        "code": checked.defect.code,
        "name": checked.defect.name,
        "symptom": checked.defect.symptom,
        "is_here": checked.is_here,
        "result": checked.result,
        "recorded": {
            "basis": checked.before.basis,
            "result": checked.before.result,
            "where": checked.before.told,
        },
        "differs": checked.differs,
        "probes": {key.removeprefix(keys): word for key, word in results.items() if key.startswith(keys)},
    }
