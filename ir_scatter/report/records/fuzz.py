"""Typed records of the JSON that `ir-scatter fuzz --format json` writes."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ir_scatter.report.records.fields import Closed, Natural, Positive, SchemaNumber, Versions


class AnswerRecord(TypedDict):
    """How many cases of a runner were judged."""

    judged: Annotated[Natural, "Answers that were checked against NumPy."]
    not_run: Annotated[
        Natural, "Cases that the runner did not answer, and cases skipped because they are known to fail."
    ]
    why_not: Annotated[str, "The most frequent reason if no answer was judged; else empty."]


class CoverageRecord(TypedDict):
    """Counts of the features of generated cases."""

    pairs: Annotated[Natural, "Number of pairs of features that occurred in one case."]
    features: Annotated[
        dict[str, Annotated[dict[str, Natural], "Number of cases by value."]],
        "Number of cases by feature and value.",
    ]


class MinimalRecord(TypedDict):
    """The simplest case that shows a finding."""

    shapes: NotRequired[Annotated[dict[str, Annotated[list[int], "A shape."]], "Shapes by role."]]
    element_types: NotRequired[Annotated[dict[str, str], "Element types of data and indices."]]
    attributes: NotRequired[Annotated[dict[str, Any], "Attributes, and the axis."]]
    constants: NotRequired[Annotated[list[str], "Roles of the inputs that are constants."]]
    iterations: NotRequired[
        Annotated[
            Natural, "Iterations of a loop around the node, all with the same inputs; 0 without a loop."
        ]
    ]
    elements: NotRequired[Annotated[Natural, "Number of elements of data."]]


class PredicateRecord(TypedDict):
    """A predicate of the condition of a finding."""

    feature: Annotated[str, "The name of the feature: 'element type'."]
    relation: Annotated[str, "The relation: 'is', 'is not', 'in', 'below' or 'above'."]
    value: Annotated[Any, "The value, or list of values, that the feature is compared with."]


class FindingRecord(TypedDict):
    """A class of failures on one runner."""

    signature: Annotated[str, "The identity of the finding, the same in every run of the fuzzer."]
    runner: Annotated[str, "The name of the runner."]
    operator: Annotated[str, 'The type and version of the operator, "ScatterElementsUpdate-12".']
    symptom: Annotated[
        Literal["wrong-value", "refused", "accepted-illegal", "crashed", "hung", "nondeterministic"],
        "The symptom.",
    ]
    when: Annotated[str, "The condition under which it fails, as text."]
    explained: Annotated[
        bool, "Whether the condition separates failing from passing cases; false if no short one was found."
    ]
    fresh: Annotated[
        dict[str, Positive],
        'Results of the minimal case in fresh processes: the number of processes by symptom, or "right".',
    ]
    failing: Annotated[Natural, "Number of failing cases that satisfy the condition."]
    passing: Annotated[Natural, "Number of cases that satisfy the condition and do not show the symptom."]
    otherwise: Annotated[
        dict[str, Positive],
        "Number of cases that satisfy the condition and show another symptom, by symptom.",
    ]
    minimal: Annotated[MinimalRecord, "The smallest case; empty if it was not shrunk."]
    path: Annotated[str | None, "The folder of the finding, with -o; else null."]
    message: Annotated[str, "The actual value, then the expected one; or the error message of the runtime."]
    others: Annotated[dict[str, str], "What other runners do with the smallest case, by name of the runner."]
    twins: Annotated[
        dict[str, str],
        "What the same runner does with changed copies of the case, by the change. Their output must be "
        "that of the case, or unchanged data.",
    ]
    outlier: Annotated[
        str, "The name of the runner if at least two others are right and none is wrong; else empty."
    ]
    defects: Annotated[list[str], "The codes of the known defects that explain it; empty if it is new."]
    predicates: Annotated[
        list[PredicateRecord], "The condition as a list of predicates, all of which must be true."
    ]


class FuzzDocument(TypedDict):
    """A fuzzing campaign."""

    schema: SchemaNumber
    versions: Versions
    runners: Annotated[list[str], "The names of the runners."]
    seed: Annotated[int, "The seed of all random decisions."]
    seconds: Annotated[float, "The duration in seconds."]
    cases: Annotated[Natural, "Number of cases that were judged."]
    rounds: Annotated[Natural, "Number of finished rounds (sets of cases that run together)."]
    illegal: Annotated[bool, "Whether each case broke a rule."]
    not_run: Annotated[Natural, "Number of answers that were not compared with NumPy."]
    unexplained: Annotated[Natural, "Number of failures that were not examined for lack of time."]
    answers: Annotated[
        dict[str, Annotated[AnswerRecord, Closed()]], "Counts of the answers of each runner, by its name."
    ]
    rates: Annotated[
        dict[str, float],
        "Judged cases per second, by kind: cases in one model, nodes of one model, or illegal cases.",
    ]
    coverage: Annotated[CoverageRecord, "The features of the generated cases."]
    findings: Annotated[
        list[FindingRecord],
        "The findings: one for each combination of operator, runner, symptom and condition.",
    ]


DOCUMENTS = {"fuzz": (FuzzDocument, "ir-scatter fuzz --format json")}
"""(record, title) of each whole document, by the name of its schema."""
