"""Typed records of the JSON that `ir-scatter devices --format json` writes."""

from typing import Annotated, NotRequired, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions
from ir_scatter.report.records.shared import MachineRecord


class RunnerRecord(TypedDict):
    """A runner, and whether it is available."""

    runner: Annotated[str, "The long name: 'openvino:CPU'."]
    available: Annotated[bool, "Whether the runner can run here."]
    reason: Annotated[str, "The reason if it is not available; else empty."]
    remedy: Annotated[str, "The command or packages that install what is missing; else empty."]
    full_name: Annotated[str, "The name that the device reports."]
    capabilities: Annotated[list[str], 'Capabilities that the device reports, such as "FP32".']
    default_precision: Annotated[str, "The precision of the device unless another one is requested."]
    remarks: Annotated[list[str], "Limits on how far its results can be trusted."]
    versions: Annotated[dict[str, str], "Versions of the packages that the runner uses."]
    driver: Annotated[str, "The build of the plugin, and the version of the device's driver."]


class ReleaseRecord(TypedDict):
    """An installed release of a runtime."""

    release: Annotated[str, 'The name: "openvino@2024.6.0".']
    python: Annotated[str, "The Python that the release was installed for."]
    folder: Annotated[str, "The folder of the environment."]
    bytes: Annotated[int, "The size on disk, in bytes."]


class DevicesDocument(TypedDict):
    """The runners of this machine or fleet."""

    schema: SchemaNumber
    versions: Versions
    runners: Annotated[list[RunnerRecord], "All runners that --on accepts."]
    releases: Annotated[
        list[ReleaseRecord], "Other releases of runtimes, each installed in its own environment."
    ]
    machines: NotRequired[
        Annotated[
            list[MachineRecord],
            "Machines of a fleet, grouped by those that should give equal results; only with --scheduler.",
        ]
    ]


DOCUMENTS = {"devices": (DevicesDocument, "ir-scatter devices --format json")}
"""(record, title) of each whole document, by the name of its schema."""
