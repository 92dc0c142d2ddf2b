"""What each device does with the probes of known defects, for programs and for a bug report."""

from collections.abc import Sequence
from typing import Any

from ir_scatter.doctor import DefectCheck, Diagnosis
from ir_scatter.report.characters import as_document, dumps, fields_of

_DEVICE = "runner is_available reason full_name driver capabilities versions"


def render(found: Sequence[Diagnosis]) -> str:
    devices = [
        {
            **fields_of(one.device, _DEVICE),
            "release": one.release,
            "differs": one.differs,
            "defects": [_defect(checked, one) for checked in one.defects],
        }
        for one in found
    ]
    return dumps(as_document(devices=devices))


def _defect(one: DefectCheck, diagnosis: Diagnosis) -> dict[str, Any]:
    keys = f"{one.defect.code}/"
    results = {} if diagnosis.row is None else diagnosis.row.results
    return {
        "code": one.defect.code,
        "name": one.defect.name,
        "symptom": one.defect.symptom,
        "is_here": one.is_here,
        "result": one.result,
        "recorded": {"basis": one.before.basis, "result": one.before.result, "where": one.before.told},
        "differs": one.differs,
        "probes": {key.removeprefix(keys): word for key, word in results.items() if key.startswith(keys)},
    }
