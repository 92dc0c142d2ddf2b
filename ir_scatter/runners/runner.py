"""What every runner is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.runners.outcome import Outcome, Tap

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array

PRECISIONS = ("default", "f16", "bf16", "f32")
TIME_LIMIT = 300.0
TAP_MEMORY = 1 << 30
MODEL_PRECISION = "model"
"""Where a runtime computes in the types of the model and nothing else can be asked for."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a runner can run here, and what it is.

    Attributes:
        runner: its long name.
        is_available: whether it can run a model.
        reason: why not.
        remedy: what to install.
        full_name: of the device.
        capabilities: of the device, "FP32", "BF16".
        default_precision: what it computes in if nothing is asked for.
        remarks: what must be known to judge its results.
        versions: of the packages involved.
    """

    runner: str
    is_available: bool
    reason: str = ""
    remedy: str = ""
    full_name: str = ""
    capabilities: tuple[str, ...] = ()
    default_precision: str = ""
    remarks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class Runner(ABC):
    """Executes whole models.

    Attributes:
        name: the long one, "openvino:CPU".
    """

    name: str

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if they are not installed."""

    @abstractmethod
    def availability(self) -> Availability:
        """Return whether it can run here, and why not."""

    def prepare(  # noqa: B027 - most can do nothing before they have inputs
        self, model_path: "str | Path", *, precision: str = "f32", timeout: float = TIME_LIMIT
    ) -> None:
        """Begin to make a model ready to be run with a profile; do not wait for it.

        Args:
            model_path: of the file.
            precision: what it should compute in.
            timeout: in seconds.
        """

    @abstractmethod
    def run(
        self,
        model_path: "str | Path",
        feeds: "Mapping[str, Array]",
        *,
        taps: Sequence[Tap] = (),
        precision: str = "f32",
        repeat: int = 1,
        profile: bool = False,
        tap_memory: int = TAP_MEMORY,
        timeout: float = TIME_LIMIT,
    ) -> Outcome:
        """Run a model.

        Args:
            model_path: of the file.
            feeds: one array for each input, by any of its names.
            taps: nodes whose inputs and output are wanted; they are those of the first run.
            precision: what it should compute in; "default" leaves that to the device.
            repeat: how often to run it.
            profile: say what the runtime made of the nodes, and how long each took.
            tap_memory: bytes of tapped tensors that may be held at once; more come in batches.
            timeout: in seconds, for everything together.

        Returns:
            How it ended. A feed that the runtime does not take is refused: whether feeds fit the model
            as it was read is for the caller to say.

        Raises:
            UsageError: there is no such precision.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what is kept between runs."""


@dataclass(frozen=True, slots=True)
class Family:
    """Runners of one kind.

    Attributes:
        names: those that are listed: long names.
        make: gives the runner of a long name, or None if that belongs to no runner of this kind.
        order: of the lists.
    """

    names: tuple[str, ...]
    make: Callable[[str], Runner | None]
    order: int
