"""Why a rewrite does not apply: the codes, and what they mean."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The codes of refusals. A code is never renumbered or reused."""

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


MEANINGS = {
    Reason.BREAKS_RULES: (
        "The node breaks a rule of its operator.\n\n"
        "Why: what breaks its rules has no documented result, so a conversion has nothing to keep.\n\n"
        "What to do: mend what `ir-scatter validate` reports, then convert."
    ),
    Reason.NO_ROUTE: (
        "No rewrite leads from the node's operator to the target.\n\n"
        "Why: `ir-scatter routes` lists every rewrite."
    ),
    Reason.ATTRIBUTE_LOST: (
        "The node has an attribute that the target cannot say.\n\n"
        "Why: an attribute that is dropped changes what the model computes."
    ),
    Reason.NO_SUCH_REDUCTION: (
        "The target has no such reduction on this element type, and no other nodes stand for it.\n\n"
        "Why: updates that meet would be joined differently."
    ),
    Reason.CONDITION_UNKNOWN: (
        "The rewrite is equal under a condition that the file does not prove.\n\n"
        "Why: the values are only known when the model runs.\n\n"
        "What to do: if you know that it holds, promise it with `--assume NAME`; the report records it."
    ),
    Reason.CONDITION_VIOLATED: (
        "The rewrite is equal under a condition that does not hold here.\n\n"
        "Why: the values or shapes in the file prove the contrary."
    ),
    Reason.TYPE_UNKNOWN: (
        "The rewrite needs the element type of an input, and the file does not say it.\n\n"
        "Why: a constant of that type must be written."
    ),
    Reason.TARGET_BREAKS_RULES: (
        "The new node would break a rule of its operator that the old one does not break.\n\n"
        "Why: the document of the target forbids a type, a rank or a shape that is known here."
    ),
    Reason.NOT_EQUAL: (
        "Old and new form were not shown to be equal on generated inputs.\n\n"
        "Why: nothing is written unproven.\n\n"
        "What to do: where the inputs are too large or of a type that NumPy does not have, --verify 0 "
        "converts without the proof. Where the results differ, please report it."
    ),
    Reason.OPSET: (
        "The model cannot move to the opset that the target needs.\n\n"
        "Why: other nodes of the model would mean something else there."
    ),
    Reason.NOT_EDITABLE: (
        "The file is written in a way that cannot be edited in place.\n\n"
        "Why: bytes that are not concerned must stay as they are."
    ),
    Reason.NO_FORM: (
        "Nothing that the node is given tells an input of the new form.\n\n"
        "Why: indices without a position along another axis leave no list of them to take."
    ),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rewrite that does not apply: the reason in short, and what is, then what was expected."""

    code: Reason
    message: str


TYPE_UNKNOWN = Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
