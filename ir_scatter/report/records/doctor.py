"""Typed records of the JSON that `ir-scatter doctor --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions


class RecordedRecord(TypedDict):
    """The recorded result for a defect."""

    basis: Annotated[
        Literal["recorded", "inferred", "stand-in", "untested"],
        "The basis: this release on another machine; releases before and after it; an emulator of the "
        "device ('stand-in'); or no measurement.",
    ]
    result: Annotated[
        Literal["right", "wrong", "refused", "crashed", "accepted", "absent", None],
        "The recorded result; null if there is none.",
    ]
    where: Annotated[str, "The release and device of the record, or the releases before and after."]


class DefectRecord(TypedDict):
    """The results of the probes (test models) of a known defect."""

    code: Annotated[str, "The code: 'DEV101'; `ir-scatter explain DEV101` describes the defect."]
    name: Annotated[str, "The name."]
    symptom: Annotated[
        Literal["wrong-value", "refused", "accepted-illegal", "crashed", "hung", "nondeterministic"],
        "What the runtime does with an affected node.",
    ]
    is_here: Annotated[bool, "Whether a probe (test model) shows the defect on this device."]
    result: Annotated[
        Literal["right", "wrong", "refused", "crashed", "accepted", "absent", None],
        "The result of the first probe that is not right; 'right' if all are.",
    ]
    recorded: Annotated[RecordedRecord, "The recorded result to compare with."]
    differs: Annotated[
        bool, "Whether the result differs from the record, or a near miss (similar legal model) is wrong."
    ]
    probes: Annotated[
        dict[str, Literal["right", "wrong", "refused", "crashed", "accepted", "absent"]],
        "The result of each probe by name, including near misses (similar models that must be right).",
    ]


class DeviceRecord(TypedDict):
    """A device and its known defects."""

    runner: Annotated[str, "The name."]
    available: Annotated[bool, "Whether the runner can run here."]
    reason: Annotated[str, "The reason if it is not available; else empty."]
    full_name: Annotated[str, "The name that the device reports."]
    driver: Annotated[str, "The build of the plugin, and the version of the device's driver."]
    capabilities: Annotated[list[str], 'Capabilities that the device reports, such as "FP32".']
    versions: Annotated[dict[str, str], "Versions of the packages that the runner uses."]
    release: Annotated[str, "The release of the runtime."]
    differs: Annotated[bool, "Whether some result differs from the record."]
    defects: Annotated[list[DefectRecord], "The known defects of this device."]


class DoctorDocument(TypedDict):
    """Known defects on each device."""

    schema: SchemaNumber
    versions: Versions
    devices: Annotated[list[DeviceRecord], "The tested devices, in the requested order."]


DOCUMENTS = {"doctor": (DoctorDocument, "ir-scatter doctor --format json")}
"""(record, title) of each whole document, by the name of its schema."""
