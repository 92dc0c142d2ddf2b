"""What `ir-scatter devices --format json` writes."""

from typing import Annotated, NotRequired, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions
from ir_scatter.report.records.shared import Machine


class Runner(TypedDict):
    """A runner, and whether it is available."""

    runner: Annotated[str, "Its name."]
    available: Annotated[bool, "Whether it runs here."]
    reason: Annotated[str, "Why not."]
    remedy: Annotated[str, "What to install."]
    full_name: Annotated[str, "The device, in its own words."]
    capabilities: Annotated[list[str], 'Of the device, such as "FP32".']
    default_precision: Annotated[str, "What it computes in unless told otherwise."]
    remarks: Annotated[list[str], "What must be known to judge its results."]
    versions: Annotated[dict[str, str], "The packages that it runs on."]
    driver: Annotated[str, "The build of the plugin, and the driver below the device."]


class Release(TypedDict):
    """An installed release of a runtime."""

    release: Annotated[str, 'Its name, "openvino@2024.6.0".']
    python: Annotated[str, "The Python that it is for."]
    folder: Annotated[str, "Where it lies."]
    bytes: Annotated[int, "What it takes."]


class DevicesDocument(TypedDict):
    """The runners of this machine or fleet."""

    schema: SchemaNumber
    versions: Versions
    runners: Annotated[list[Runner], "Everything that can be named with --on."]
    releases: Annotated[list[Release], "Releases in environments of their own."]
    machines: NotRequired[
        Annotated[
            list[Machine],
            "The machines of a fleet, in groups that should compute the same; there only with --scheduler.",
        ]
    ]


DOCUMENTS = {"devices": (DevicesDocument, "ir-scatter devices --format json")}
"""Records of whole documents by the name of their schema, with its title."""
