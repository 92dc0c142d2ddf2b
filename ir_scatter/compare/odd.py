"""Who stands alone where three or more voices speak."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ir_scatter.compare.tensors import measure
from ir_scatter.compare.tolerances import Tolerances, coarser, default_tolerance
from ir_scatter.compare.verdicts import Comparison, Level, Odd, Verdict
from ir_scatter.compare.voices import NUMPY
from ir_scatter.runners.base import Outcome

_VOICES = 3
"""From so many voices on one can be odd."""


class _Key(NamedTuple):
    """What several voices speak of."""

    level: Level
    node: str | None
    tensor: str
    case: int
    place: tuple[int, ...]
    caller: str


def find_odd(
    comparisons: Sequence[Comparison], outcomes: Sequence[Outcome], tolerances: Tolerances
) -> list[Odd]:
    """Name the voice that says something else where three or more speak.

    With NumPy as the reference, runners that agree with each other against it are compared too: then
    NumPy, that is the document as it is read here, stands alone. Of the iterations of a loop, and the
    calls of a function, the first is named in which somebody does.

    Args:
        comparisons: of one case.
        outcomes: of the same case.
        tolerances: how far elements may be apart.
    """
    by_tensor: dict[_Key, list[Comparison]] = {}
    for one in comparisons:
        if one.subject != one.reference:
            key = _Key(one.level, one.node, one.tensor, one.case, one.place, one.caller)
            by_tensor.setdefault(key, []).append(one)
    found: dict[tuple[object, ...], Odd] = {}
    for key, same in by_tensor.items():
        odd = _odd(key, same, outcomes, tolerances)
        if odd is not None:
            found.setdefault(key[:4], odd)
    return list(found.values())


def _odd(
    key: _Key, found: Sequence[Comparison], outcomes: Sequence[Outcome], tolerances: Tolerances
) -> Odd | None:
    reference = found[0].reference
    verdicts = {one.subject: one.measure.verdict for one in found if one.reference == reference}
    wrong = [name for name, verdict in verdicts.items() if verdict is Verdict.MISMATCH]
    if not wrong or len(verdicts) + 1 < _VOICES:
        return None
    right = [name for name in verdicts if name not in wrong]
    value = _document(found, reference)
    runners, message = tuple(wrong), f"{_listed(wrong)} differ from {reference}, and from each other{value}"
    if right:
        verb = "departs" if len(wrong) == 1 else "depart"
        message = f"{_listed(wrong)} {verb} from what {_listed([reference, *right])} say{value}"
    elif key.level is Level.NODE:
        message = f"{_listed(wrong)} all differ from {reference}{value}"
    elif _agree(wrong, key, outcomes, tolerances):
        runners, message = (reference,), f"{_listed(wrong)} agree with each other against {reference}{value}"
    return Odd(*key[:4], runners, message)


def _agree(names: Sequence[str], key: _Key, outcomes: Sequence[Outcome], tolerances: Tolerances) -> bool:
    """Tell whether runners give the same output."""
    known: Mapping[str, Outcome] = {one.runner: one for one in outcomes}
    voices = [known[name] for name in names if name in known]
    arrays = [voice.outputs.get(key.tensor) for voice in voices]
    first = arrays[0] if arrays else None
    if first is None:
        return False
    precision = coarser(*(voice.precision for voice in voices))
    tolerance = tolerances.find((key.tensor,)) or default_tolerance(first, precision)
    return all(
        other is not None and measure(other, first, tolerance).verdict is not Verdict.MISMATCH
        for other in arrays[1:]
    )


def _document(found: Sequence[Comparison], reference: str) -> str:
    """Return the value that the document demands, where NumPy computed it."""
    worst = next((one.measure.worst for one in found if one.measure.verdict is Verdict.MISMATCH), None)
    if worst is None or not reference.endswith(NUMPY):
        return ""
    is_open = worst.expected != worst.expected  # no document says what becomes of NaN in a reduction
    source = "as NumPy computes it" if is_open else "by the document"
    return f": {source} {list(worst.index)} is {shown(worst.expected)}, not {shown(worst.got)}"


def shown(element: object) -> str:
    """Return an element in few characters."""
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
