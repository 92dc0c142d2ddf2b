"""What `ir-scatter doctor --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions


class Recorded(TypedDict):
    """What the history says of a defect."""

    basis: Annotated[
        Literal["recorded", "inferred", "stand-in", "untested"],
        "What that rests on: this release on another machine, one before and one after it, a "
        "device that stands in, nothing.",
    ]
    result: Annotated[
        Literal["right", "wrong", "refused", "crashed", "accepted", "absent", None], "What was known."
    ]
    where: Annotated[str, "Release and device, or the releases around it."]


class Defect(TypedDict):
    """What the probes of a known defect gave."""

    code: Annotated[str, "DEV101; `ir-scatter explain DEV101` says more."]
    name: Annotated[str, "Its name."]
    symptom: Annotated[
        Literal["wrong-value", "refused", "accepted-illegal", "crashed", "hung", "nondeterministic"],
        "What the runtime does with a node that meets it.",
    ]
    is_here: Annotated[bool, "Whether a probe shows it on this device."]
    result: Annotated[
        Literal["right", "wrong", "refused", "crashed", "accepted", "absent", None],
        "What the probes gave: that of the first which is not right.",
    ]
    recorded: Annotated[Recorded, "What was known before."]
    differs: Annotated[bool, "Whether that is something else, or a near miss was not computed right."]
    probes: Annotated[
        dict[str, Literal["right", "wrong", "refused", "crashed", "accepted", "absent"]],
        "What became of each probe, near misses included.",
    ]


class Device(TypedDict):
    """A device and its known defects."""

    runner: Annotated[str, "Its name."]
    available: Annotated[bool, "Whether it runs here."]
    reason: Annotated[str, "Why not."]
    full_name: Annotated[str, "The device, in its own words."]
    driver: Annotated[str, "The build of the plugin, and the driver below the device."]
    capabilities: Annotated[list[str], 'Of the device, such as "FP32".']
    versions: Annotated[dict[str, str], "The packages that it runs on."]
    release: Annotated[str, "Of the runtime."]
    differs: Annotated[bool, "Whether anything is not as recorded."]
    defects: Annotated[list[Defect], "The known defects of this device."]


class DoctorDocument(TypedDict):
    """Known defects on each device."""

    schema: SchemaNumber
    versions: Versions
    devices: Annotated[list[Device], "Those that were asked, in their order."]


DOCUMENTS = {"doctor": (DoctorDocument, "ir-scatter doctor --format json")}
"""Records of whole documents by the name of their schema, with its title."""
