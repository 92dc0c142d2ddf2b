"""What `ir-scatter fuzz --format json` writes."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ir_scatter.report.records.fields import Closed, Natural, Positive, SchemaNumber, Versions


class AnswerRecord(TypedDict):
    """How many cases of a runner were judged."""

    judged: Annotated[Natural, "Answers that were checked against NumPy."]
    not_run: Annotated[Natural, "Cases without an answer, and those that are known to fail."]
    why_not: Annotated[str, "Why nothing was judged; empty if something was."]


class CoverageRecord(TypedDict):
    """Which features the generated cases had."""

    pairs: Annotated[Natural, "Pairs of features that were seen together."]
    features: Annotated[
        dict[str, Annotated[dict[str, Natural], "Cases by value."]], "Cases by feature and value."
    ]


class MinimalRecord(TypedDict):
    """The simplest case that shows a finding."""

    shapes: NotRequired[Annotated[dict[str, Annotated[list[int], "A shape."]], "Shapes by role."]]
    element_types: NotRequired[Annotated[dict[str, str], "Element types of data and indices."]]
    attributes: NotRequired[Annotated[dict[str, Any], "Attributes, and the axis."]]
    constants: NotRequired[Annotated[list[str], "Roles that are constant."]]
    iterations: NotRequired[
        Annotated[Natural, "Of a loop around the node, with the same inputs each; 0: no loop."]
    ]
    elements: NotRequired[Annotated[Natural, "Elements of data."]]


class PredicateRecord(TypedDict):
    """A predicate of the condition of a finding."""

    feature: Annotated[str, "What is looked at."]
    relation: Annotated[str, "How."]
    value: Annotated[Any, "With what."]


class FindingRecord(TypedDict):
    """A class of failures on one runner."""

    signature: Annotated[str, "What tells it from others, in every run."]
    runner: Annotated[str, "Where."]
    operator: Annotated[str, 'The type and version of the operator, "ScatterElementsUpdate-12".']
    symptom: Annotated[
        Literal["wrong-value", "refused", "accepted-illegal", "crashed", "hung", "nondeterministic"],
        "What goes wrong.",
    ]
    when: Annotated[str, "Under which condition, in words."]
    explained: Annotated[
        bool, "Whether the condition tells what fails from what passes; else no short one was found."
    ]
    fresh: Annotated[
        dict[str, Positive],
        'Results of the minimal case in fresh processes: the number of processes by symptom, or "right".',
    ]
    failing: Annotated[Natural, "Cases that fail."]
    passing: Annotated[Natural, "Cases under the same condition that show that the symptom is not there."]
    otherwise: Annotated[
        dict[str, Positive],
        "Cases under the same condition that fail in another way: their number by symptom.",
    ]
    minimal: Annotated[MinimalRecord, "The smallest case; empty if it was not shrunk."]
    path: Annotated[str | None, "The folder of the finding, with -o."]
    message: Annotated[str, "What is, then what was expected; or the words of the runtime."]
    others: Annotated[dict[str, str], "What other runners make of it."]
    twins: Annotated[
        dict[str, str], "What the runner itself makes of cases that must give the same, or data as it is."
    ]
    outlier: Annotated[
        str, "The runner if two or more others are right and none is wrong, else an empty string."
    ]
    defects: Annotated[list[str], "The codes of the known defects that it shows; empty if none is like it."]
    predicates: Annotated[list[PredicateRecord], "The condition, for programs."]


class FuzzDocument(TypedDict):
    """A fuzzing campaign."""

    schema: SchemaNumber
    versions: Versions
    runners: Annotated[list[str], "Who computed."]
    seed: Annotated[int, "What is drawn follows from it."]
    seconds: Annotated[float, "How long it took."]
    cases: Annotated[Natural, "Cases that were judged."]
    rounds: Annotated[Natural, "Rounds that were finished."]
    illegal: Annotated[bool, "Whether each case broke a rule."]
    not_run: Annotated[Natural, "Cases that a runner did not get to."]
    unexplained: Annotated[Natural, "Failures that there was no time to look at."]
    answers: Annotated[dict[str, Annotated[AnswerRecord, Closed()]], "How many cases each runner answered."]
    rates: Annotated[dict[str, float], "Cases per second, by stream."]
    coverage: Annotated[CoverageRecord, "What the cases had."]
    findings: Annotated[
        list[FindingRecord], "What goes wrong, once for each operator, runner, symptom and condition."
    ]


DOCUMENTS = {"fuzz": (FuzzDocument, "ir-scatter fuzz --format json")}
"""Records of whole documents by the name of their schema, with its title."""
