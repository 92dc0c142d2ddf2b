"""The command that shows a difference again."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from ir_scatter.compare.result import SAVED, Compared, Comparison, Settings, Verdict
from ir_scatter.core.shapes import show

_SHORTEN = "openvino:"
_KNOWN = Settings()


@dataclass(frozen=True, slots=True)
class Source:
    """Where inputs came from that were not generated.

    Attributes:
        inputs: a file; None without one.
        against: a folder with the results of another time or place; None without one.
    """

    inputs: str | None = None
    against: str | None = None

    @property
    def is_generator(self) -> bool:
        """Tell whether the inputs were generated."""
        return self.inputs is None and self.against is None


def repeat_command(found: Compared, one: Comparison, source: Source) -> str:
    """Return the command that repeats one case of a comparison.

    Args:
        found: the comparison of the model.
        one: the tensor that differs.
        source: where the inputs came from.
    """
    words = ["ir-scatter", "compare", *(_path(path) for path in (found.model, found.other) if path)]
    for runner in dict.fromkeys((one.reference, one.subject)):
        if not runner.startswith(SAVED):
            words += ["--on", runner.removeprefix(_SHORTEN)]
    if source.against is not None:
        words += ["--against", _path(source.against)]
    elif source.inputs is not None and one.case == 0:
        words += ["--inputs", _path(source.inputs)]
    else:
        words += ["--seed", str(found.settings.seed + one.case)]
    is_drawn = source.is_generator or (source.against is None and one.case > 0)
    words += _options(found.settings, is_generated=is_drawn)
    if one.measure.verdict is Verdict.NONDETERMINISTIC:
        words += ["--repeat", str(found.settings.repeat)]
    return shlex.join(words)


def _path(path: str) -> str:
    """Return a path that no command line takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def _options(settings: Settings, *, is_generated: bool) -> Iterator[str]:
    """Yield what was asked for and is not the default."""
    if is_generated:
        if settings.values != _KNOWN.values:
            yield from ("--values", settings.values)
        for name, shape in settings.input_shapes.items():
            yield from ("--input-shape", f"{name}={show(shape)[1:-1].replace(' ', '')}")
    if settings.precision != _KNOWN.precision:
        yield from ("--precision", settings.precision)
    for name, tolerance in settings.tolerances.named.items():
        numbers = f"{tolerance.absolute:g},{tolerance.relative:g}"
        yield from ("--tolerance", f"{name}={numbers}" if name else numbers)
