"""What `ir-scatter compare --format json` writes."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ir_scatter.report.records.fields import DocumentReference, Natural, SchemaNumber, Versions
from ir_scatter.report.records.shared import MachineRecord


class ModelOutcomeRecord(TypedDict):
    """How one of two models ran on a runner."""

    model: Annotated[str, "Its path."]
    status: Annotated[
        Literal["ok", "refused", "unsupported", "unavailable", "crashed", "timeout", "inputs-do-not-fit"],
        "How the run ended.",
    ]
    reason: Annotated[Literal["format", None], '"format" if the runner reads no files of that format at all.']
    message: Annotated[str, "In the words of the runner."]


class OutcomeRecord(TypedDict):
    """How the models ran on one runner."""

    runner: Annotated[str, "Who."]
    status: Annotated[
        Literal["ok", "refused", "unsupported", "unavailable", "crashed", "timeout", "inputs-do-not-fit"],
        "How the run ended.",
    ]
    reason: Annotated[Literal["format", None], '"format" if the runner reads no files of that format at all.']
    message: Annotated[str, "In its own words."]
    precision: Annotated[str, 'What it computed in; "model" for the types of the model.']
    implicit: Annotated[bool, "Whether it was not named with --on: NumPy, as the reference."]
    seconds: Annotated[float, "How long reading, compiling and the first run took."]
    models: NotRequired[Annotated[list[ModelOutcomeRecord], "Of two models what became of each."]]
    not_computed: NotRequired[
        Annotated[
            list[str], "Outputs that NumPy does not compute; `message` names the nodes that they depend on."
        ]
    ]


class ToleranceRecord(TypedDict):
    """An absolute and a relative tolerance."""

    abs: Annotated[float | None, "Absolute; null if it is not finite."]
    rel: Annotated[float | None, "Relative; null if it is not finite."]


class WorstElementRecord(TypedDict):
    """The element that differs most."""

    index: Annotated[list[Natural], "Its position."]
    got: Annotated[
        float | str | bool | None, 'An element; "nan", "inf", "-inf" and complex numbers are words.'
    ]
    expected: Annotated[
        float | str | bool | None, 'An element; "nan", "inf", "-inf" and complex numbers are words.'
    ]


class ExcuseRecord(TypedDict):
    """Which elements of an output are not judged, and why."""

    whole: Annotated[bool, "Whether nothing of it is judged."]
    elements: Annotated[int | None, "How many elements are not judged; null where even the shape is open."]
    reason: Annotated[str, "Why."]


class RoundingRecord(TypedDict):
    """What rounding explains of a difference, measured by computing the model with and without rounding."""

    precision: Annotated[str, 'The precision that explains it, or does not: "f32", "f16" or "bf16".']
    differing: Annotated[Natural, "How many elements differ by more than the tolerance."]
    bound: Annotated[float | None, "What rounding explains at the worst element; null if anything."]


class WrongRunsRecord(TypedDict):
    """In how many runs a result was wrong."""

    wrong: Annotated[Natural, "Wrong runs."]
    of: Annotated[Natural, "All runs."]


class ComparisonRecord(TypedDict):
    """A tensor of one runner, compared with a reference."""

    level: Annotated[
        Literal["model", "node"], "Outputs of the model, or a node on the inputs that it had on its runner."
    ]
    node: Annotated[str | None, "The way to the node; null at level model."]
    tensor: Annotated[str, "The tensor that was compared."]
    case: Annotated[Natural, "The number of the inputs."]
    subject: Annotated[str, "Who is judged."]
    reference: Annotated[str, "With whom it is compared."]
    relation: Annotated[
        Literal["document", "runners", "repeat", "models", "earlier"],
        "What the reference is: the specification, another runner, another run of the same "
        "runner, the first of two models, or what was saved.",
    ]
    verdict: Annotated[
        Literal["equal", "close", "contested", "precision", "unknown", "nondeterministic", "mismatch"],
        "What is said of the tensor, the better ones first.",
    ]
    elements: Annotated[Natural, "How many elements it has."]
    mismatched: Annotated[Natural, "How many of them differ by more than the tolerance."]
    contested: Annotated[Natural, "How many have a value that the specification does not define."]
    max_abs: Annotated[float | None, "The greatest absolute difference; null if it is not finite."]
    max_rel: Annotated[float | None, "The greatest relative difference; null if it is not finite."]
    max_ulp: Annotated[int | None, "The greatest difference in units in the last place."]
    required: Annotated[ToleranceRecord, "The least tolerance with which the tensors would be close."]
    tolerance: Annotated[
        ToleranceRecord, "The tolerance that was used: close is what keeps to abs + rel * |expected|."
    ]
    worst: Annotated[WorstElementRecord | None, "The element that is farthest off."]
    nans: Annotated[list[Natural], "How many NaN there are, in the subject and in the reference."]
    infinities: Annotated[list[Natural], "How many infinities, likewise."]
    remark: Annotated[str, "What else there is to say, such as other shapes."]
    excuse: Annotated[ExcuseRecord | None, "Why an output is not judged as a whole."]
    rounding: NotRequired[
        Annotated[RoundingRecord, "What rounding explains; there only if an output differs that much."]
    ]
    operator: NotRequired[Annotated[str, 'Of a node, "ScatterUpdate-3".']]
    caller: NotRequired[Annotated[str, "For a node of a function the way to the node that called it."]]
    place: NotRequired[
        Annotated[list[Natural], "The iteration of each loop around the node, the outermost first."]
    ]
    tapped: NotRequired[Annotated[bool, "True if one of two runs of the same runner had nodes looked at."]]
    wrong_runs: NotRequired[Annotated[WrongRunsRecord, "In how many runs a node was wrong."]]
    subject_model: NotRequired[Annotated[str, "Of two models the one that is judged."]]
    reference_model: NotRequired[Annotated[str, "The other one."]]
    unspecified_in: NotRequired[
        Annotated[str, "The one of two models that does not specify what differs, where the other one does."]
    ]


class GuardedRecord(TypedDict):
    """What the NumPy reference says of the indices of a node."""

    runner: Annotated[str, "Where."]
    node: Annotated[str, "The way to the node."]
    operator: Annotated[str, 'The type and version of its operator, "ScatterUpdate-3".']
    case: Annotated[Natural, "The number of the inputs."]
    kind: Annotated[
        Literal["out-of-range", "negative", "repeated", "illegal", "nan"], "What is the matter with them."
    ]
    illegal: Annotated[
        bool, "Whether the specification forbids it; it does not where several results are correct."
    ]
    message: Annotated[str, "What is, then what was expected."]
    model: NotRequired[Annotated[str, "Which of two models."]]


class OutlierRecord(TypedDict):
    """A tensor in which some runners differ from the majority."""

    level: Annotated[
        Literal["model", "node"], "Outputs of the model, or a node on the inputs that it had on its runner."
    ]
    node: Annotated[str | None, "The way to the node."]
    tensor: Annotated[str, "The tensor."]
    case: Annotated[Natural, "The number of the inputs."]
    runners: Annotated[list[str], "Who stands alone."]
    message: Annotated[str, "In words."]
    model: NotRequired[Annotated[str, "Which of two models."]]


class FirstDifferenceRecord(TypedDict):
    """Where the outputs of a runner begin to differ: the first part of a model that adds a difference."""

    runner: Annotated[str, "Where."]
    case: Annotated[Natural, "The number of the inputs."]
    nodes: Annotated[
        list[str],
        "The ways to the nodes of that part; one with --taps all, none if no node adds a difference.",
    ]
    operators: Annotated[list[str], "The types of these nodes."]
    message: Annotated[str, "In words."]


class NotTappedRecord(TypedDict):
    """A node whose inputs are not available."""

    runner: Annotated[str, "Where."]
    node: Annotated[str, "The way to the node."]
    reason: Annotated[str, "Why not."]


class NodeFactsRecord(TypedDict):
    """What a runner says of how it computed a node."""

    name: Annotated[str, "Its name in the runtime."]
    originals: Annotated[list[str], "The nodes of the model that went into it."]
    kind: Annotated[str, "Its type in the runtime."]
    kernel: Annotated[str, "The implementation."]
    precision: Annotated[str, "The element type that it computes in."]
    outputs: Annotated[list[str], "The element types of its outputs."]
    converts: Annotated[str | None, 'Which type it was given instead of its own: "i64 -> i32".']
    microseconds: Annotated[float | None, "How long it took; null where that was not measured."]


class SkippedRunnerRecord(TypedDict):
    """A runner that was not asked."""

    runner: Annotated[str, "Who."]
    reason: Annotated[str, "Why."]


class InputRecord(TypedDict):
    """An input of a model."""

    first: Annotated[str, "The name in the first model."]
    second: Annotated[str, "The name in the second model."]
    by: Annotated[str, "How it is known that they are the same."]
    element_types: Annotated[list[str] | None, "Both element types, where they differ."]


class MatchingRecord(TypedDict):
    """Which inputs and outputs of two models belong together."""

    inputs: Annotated[list[InputRecord], "Inputs."]
    outputs: Annotated[list[InputRecord], "Outputs."]


class CompareDocument(TypedDict):
    """A comparison of one model, or of two."""

    schema: SchemaNumber
    versions: Versions
    headline: Annotated[str, "The verdict, in one sentence."]
    state: Annotated[
        Literal["differs", "illegal", "failed", "interrupted", "nothing", "agrees"],
        "How it went, the worst first.",
    ]
    interrupted: Annotated[str | None, "What was not finished when the comparison was interrupted."]
    model: Annotated[str, "The path of the model."]
    other: Annotated[str | None, "The path of the second model."]
    seed: Annotated[int, "What drawn inputs follow from."]
    cases: Annotated[Natural, "How many inputs there were."]
    precision: Annotated[str, "What runtimes were asked to compute in."]
    outcomes: Annotated[list[OutcomeRecord], "What became of each run."]
    comparisons: Annotated[list[ComparisonRecord], "Each tensor that was compared."]
    guard: Annotated[list[GuardedRecord], "Indices of nodes that are illegal or whose effect is not defined."]
    odd: Annotated[
        list[OutlierRecord],
        "Of three or more runners those that say something else than the others, or one that "
        "contradicts itself.",
    ]
    first_differences: Annotated[
        list[FirstDifferenceRecord],
        "Where outputs that differ begin to do so, judged by values of the runner.",
    ]
    not_tapped: Annotated[list[NotTappedRecord], "Nodes whose inputs are not available on a runner."]
    not_run: Annotated[
        list[str], "The ways to bodies that ran in no case: those with a scatter node, of two models all."
    ]
    not_tried: Annotated[list[str], "What else no case tries, and may hide a difference; clauses for people."]
    facts: Annotated[
        dict[str, Annotated[list[NodeFactsRecord], "One entry for each node of the runtime."]],
        "What each runner made of scatter nodes.",
    ]
    skipped: Annotated[list[SkippedRunnerRecord], "Runners that were skipped."]
    matching: Annotated[MatchingRecord | None, "Which inputs and outputs of two models are the same."]
    remarks: Annotated[list[str], "Sentences for people."]
    about: Annotated[
        dict[str, Annotated[list[str], "Sentences."]], "What must be known to judge the results of a runner."
    ]
    summary: Annotated[dict[str, Natural], "Comparisons by verdict."]
    machine: NotRequired[Annotated[str, "The machine of a fleet that compared it; there only if one did."]]
    machines: NotRequired[
        Annotated[
            list[MachineRecord],
            "The machines of a fleet, in groups that should compute the same; there only with --scheduler.",
        ]
    ]


class FailureRecord(TypedDict):
    """A model that could not be compared."""

    model: Annotated[str, "The path."]
    message: Annotated[str, "Why."]
    readable: Annotated[bool, "Whether it could be read."]


class CompareEachDocument(TypedDict):
    """Comparisons of many models."""

    schema: SchemaNumber
    versions: Versions
    headline: Annotated[str, "The verdict, in one sentence."]
    state: Annotated[
        Literal["differs", "illegal", "failed", "interrupted", "nothing", "agrees"],
        "How it went, the worst first.",
    ]
    interrupted: Annotated[str | None, "What was not finished when the comparison was interrupted."]
    reports: Annotated[
        list[Annotated[Any, DocumentReference("compare")]],
        "One report for each model, as of compare for one model.",
    ]
    failures: Annotated[list[FailureRecord], "Models of which there is no report."]
    summary: Annotated[dict[str, Natural], "Comparisons of all models by verdict."]
    machines: NotRequired[
        Annotated[
            list[MachineRecord],
            "The machines of a fleet, in groups that should compute the same; there only with --scheduler.",
        ]
    ]


DOCUMENTS = {
    "compare": (CompareDocument, "ir-scatter compare --format json"),
    "compare-each": (CompareEachDocument, "ir-scatter compare --each --format json"),
}
"""Records of whole documents by the name of their schema, with its title."""
