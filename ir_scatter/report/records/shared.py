"""Records that several documents have."""

from typing import Annotated, TypedDict


class Machine(TypedDict):
    """Machines of a fleet that are alike."""

    names: Annotated[list[str], "What stands before the names of their runners."]
    hosts: Annotated[list[str], "The names of the computers."]
    python: Annotated[str, "The version."]
    system: Annotated[str, "Operating system and architecture."]
    cpu: Annotated[str, "The processor."]
    instructions: Annotated[list[str], "Sets of instructions that kernels are chosen by."]
    fingerprint: Annotated[str, "The same where doctor found the same; empty where it did not run."]
    releases: Annotated[list[str], "Other releases that are installed there."]
    packages: Annotated[dict[str, str], "Versions of packages."]
