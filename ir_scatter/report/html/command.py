"""The command that shows a difference again."""

import shlex
from collections.abc import Iterator

from ir_scatter.compare.session import Compared, Settings
from ir_scatter.compare.verdicts import Comparison, Verdict
from ir_scatter.shapes import show

_SHORTEN = "openvino:"
_KNOWN = Settings()


def repeat_command(found: Compared, one: Comparison, inputs: str | None = None) -> str:
    """Return the command that repeats one case of a comparison.

    Args:
        found: the comparison of the model.
        one: the tensor that differs.
        inputs: the file that the inputs came from; None if they were generated.
    """
    words = ["ir-scatter", "compare", found.model, *([found.other] if found.other else [])]
    for runner in dict.fromkeys((one.reference, one.subject)):
        words += ["--on", runner.removeprefix(_SHORTEN)]
    if inputs is None:
        words += ["--seed", str(found.settings.seed + one.case)]
    else:
        words += ["--inputs", inputs]
    words += _options(found.settings, is_generated=inputs is None)
    if one.measure.verdict is Verdict.NONDETERMINISTIC:
        words += ["--repeat", str(found.settings.repeat)]
    return shlex.join(words)


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
