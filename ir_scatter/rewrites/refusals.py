"""Why a rewrite does not apply: the codes, and what they mean."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The codes of refusals, and what they mean. A code is never renumbered or reused."""

    meaning: str

    def __new__(cls, code: str, what: str = "", why: str = "", to_do: str = "") -> "Reason":
        made = str.__new__(cls, code)
        made._value_ = code
        made.meaning = f"{what}\n\nWhy: {why}" + (f"\n\nWhat to do: {to_do}" if to_do else "")
        return made

    @property
    def rule(self) -> str:
        """Its name as that of a rule is written: "breaks-rules"."""
        return self.name.lower().replace("_", "-")

    BREAKS_RULES = (
        "CVT101",
        "The node breaks a rule of its operator.",
        "what breaks its rules has no documented result, so a conversion has nothing to keep.",
        "mend what `ir-scatter validate` reports, then convert.",
    )
    NO_ROUTE = (
        "CVT102",
        "No rewrite leads from the node's operator to the target.",
        "`ir-scatter routes` lists every rewrite.",
    )
    ATTRIBUTE_LOST = (
        "CVT103",
        "The node has an attribute that the target cannot say.",
        "an attribute that is dropped changes what the model computes.",
    )
    NO_SUCH_REDUCTION = (
        "CVT104",
        "The target has no such reduction on this element type, and no other nodes stand for it.",
        "updates that meet would be joined differently.",
    )
    CONDITION_UNKNOWN = (
        "CVT105",
        "The rewrite is equal under a condition that the file does not prove.",
        "the values are only known when the model runs.",
        "if you know that it holds, promise it with `--assume NAME`; the report records it.",
    )
    CONDITION_VIOLATED = (
        "CVT106",
        "The rewrite is equal under a condition that does not hold here.",
        "the values or shapes in the file prove the contrary.",
    )
    TYPE_UNKNOWN = (
        "CVT107",
        "The rewrite needs the element type of an input, and the file does not say it.",
        "a constant of that type must be written.",
    )
    TARGET_BREAKS_RULES = (
        "CVT108",
        "The new node would break a rule of its operator that the old one does not break.",
        "the document of the target forbids a type, a rank or a shape that is known here.",
    )
    NOT_EQUAL = (
        "CVT109",
        "Old and new form were not shown to be equal on generated inputs.",
        "nothing is written unproven.",
        "where the inputs are too large or of a type that NumPy does not have, --verify 0 "
        "converts without the proof. Where the results differ, please report it.",
    )
    OPSET = (
        "CVT110",
        "The model cannot move to the opset that the target needs.",
        "other nodes of the model would mean something else there.",
    )
    NOT_EDITABLE = (
        "CVT111",
        "The file is written in a way that cannot be edited in place.",
        "bytes that are not concerned must stay as they are.",
    )
    NO_FORM = (
        "CVT112",
        "Nothing that the node is given tells an input of the new form.",
        "indices without a position along another axis leave no list of them to take.",
    )
    KNOWN_DEFECTS = (
        "CVT113",
        "Every form of the node that is known meets a defect of a device that `--for` names.",
        "the device would refuse the result, or compute it wrong.",
        "`ir-scatter validate --for` says more of each defect; `--partial` leaves the node as it is.",
    )
    NOTHING_IN_RANGE = (
        "CVT114",
        "Indices cannot be guarded: they count on a dimension of size 0.",
        "no index names a position there, so that there is none to limit another one to.",
        "give data that has elements, or no indices.",
    )
    UNGUARDED = (
        "CVT115",
        "A warning of --for, no refusal: nothing in the model keeps the indices of a node in range.",
        "what a device does with an index that is out of range no document says: it refuses it, writes "
        "elsewhere, or ends the process.",
        "--guard clamp limits them to their range, --guard wrap counts negative ones from the end.",
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rewrite that does not apply: the reason in short, and what is, then what was expected."""

    code: Reason
    message: str


TYPE_UNKNOWN = Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
