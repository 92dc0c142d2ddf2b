"""Refusals: the reasons why a rewrite does not apply."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The codes of refusals, never renumbered or reused; `docs/refusals.md` explains them."""

    BREAKS_RULES = "CVT101"
    NO_ROUTE = "CVT102"
    ATTRIBUTE_LOST = "CVT103"
    NO_SUCH_REDUCTION = "CVT104"
    CONDITION_UNKNOWN = "CVT105"
    CONDITION_VIOLATED = "CVT106"
    TYPE_UNKNOWN = "CVT107"
    TARGET_BREAKS_RULES = "CVT108"
    NOT_EQUAL = "CVT109"
    OPSET = "CVT110"
    NOT_EDITABLE = "CVT111"
    NO_FORM = "CVT112"
    KNOWN_DEFECTS = "CVT113"
    NOTHING_IN_RANGE = "CVT114"
    UNGUARDED = "CVT115"
    ILLEGAL_INDICES = "CVT116"
    CUT_INDICES = "CVT117"
    INPUT_LOST = "CVT118"

    @property
    def rule(self) -> str:
        """The name, in the style of rule names: "breaks-rules"."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a rewrite does not apply: a code, and a message such as "X is A, expected B"."""

    code: Reason
    message: str


TYPE_UNKNOWN = Refusal(Reason.TYPE_UNKNOWN, "the element type of data is unknown, expected a known one")
