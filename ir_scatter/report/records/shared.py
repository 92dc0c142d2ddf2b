"""Records that several documents contain."""

from typing import Annotated, TypedDict


class MachineRecord(TypedDict):
    """Machines of a fleet that should give the same results."""

    names: Annotated[list[str], "The names of the machines, as in 'lab-arc/openvino:GPU'."]
    hosts: Annotated[list[str], "The host names."]
    python: Annotated[str, "The version of Python."]
    system: Annotated[str, "Operating system and architecture."]
    cpu: Annotated[str, "The processor."]
    instructions: Annotated[list[str], "Instruction sets of the CPU by which runtimes choose kernels."]
    fingerprint: Annotated[
        str, "Equal on machines for which `doctor` gave equal results; empty if it did not run."
    ]
    releases: Annotated[list[str], "Other releases of runtimes that are installed there."]
    packages: Annotated[dict[str, str], "Versions of the packages, by name."]
