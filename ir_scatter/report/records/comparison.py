"""Typed records of the JSON that `ir-scatter compare --format json` writes."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from ir_scatter.report.records.fields import DocumentReference, Natural, SchemaNumber, Versions
from ir_scatter.report.records.shared import MachineRecord


class ModelOutcomeRecord(TypedDict):
    """How one of two models ran on a runner."""

    model: Annotated[str, "The path of the model."]
    status: Annotated[
        Literal["ok", "refused", "unsupported", "unavailable", "crashed", "timeout", "inputs-do-not-fit"],
        "How the run ended.",
    ]
    reason: Annotated[
        Literal["format", None], '"format" if the runner cannot read files of this format at all.'
    ]
    message: Annotated[str, "The error message of the runner; empty if there is none."]


class OutcomeRecord(TypedDict):
    """How the models ran on one runner."""

    runner: Annotated[str, "The name of the runner."]
    status: Annotated[
        Literal["ok", "refused", "unsupported", "unavailable", "crashed", "timeout", "inputs-do-not-fit"],
        "How the run ended.",
    ]
    reason: Annotated[
        Literal["format", None], '"format" if the runner cannot read files of this format at all.'
    ]
    message: Annotated[str, "The error message of the runner; empty if there is none."]
    precision: Annotated[str, 'The precision of the computation, "f32"; "model" for the types of the model.']
    known_as: Annotated[list[str], "The codes of known defects that explain its results or its failure."]
    implicit: Annotated[
        bool, "True if the user did not name the runner with --on, as for NumPy as the reference."
    ]
    seconds: Annotated[float, "Seconds for reading, compiling and the first run."]
    models: NotRequired[
        Annotated[list[ModelOutcomeRecord], "If two models are compared: how the run of each ended."]
    ]
    not_computed: NotRequired[
        Annotated[
            list[str], "Outputs that NumPy does not compute; `message` names the nodes that they depend on."
        ]
    ]


class ToleranceRecord(TypedDict):
    """An absolute and a relative tolerance."""

    abs: Annotated[float | None, "The absolute part; null if it is not finite."]
    rel: Annotated[float | None, "The relative part; null if it is not finite."]


class WorstElementRecord(TypedDict):
    """The element that differs most."""

    index: Annotated[list[Natural], "Its position in the tensor, one number per dimension."]
    got: Annotated[
        float | str | bool | None, 'Its value; "nan", "inf", "-inf" and complex numbers are strings.'
    ]
    expected: Annotated[
        float | str | bool | None, 'Its value; "nan", "inf", "-inf" and complex numbers are strings.'
    ]


class ExcuseRecord(TypedDict):
    """The elements of an output that are not judged, and the reason."""

    whole: Annotated[bool, "Whether no element of the output is judged."]
    elements: Annotated[
        int | None, "Number of elements that are not judged; null if even the shape is not specified."
    ]
    reason: Annotated[str, "The reason, as a sentence."]


class RoundingRecord(TypedDict):
    """The part of a difference that rounding explains, measured with and without rounding."""

    precision: Annotated[str, 'The precision whose rounding was measured: "f32", "f16" or "bf16".']
    differing: Annotated[Natural, "Number of elements that differ by more than the tolerance."]
    bound: Annotated[
        float | None,
        "The largest difference that rounding explains at the worst element; null if it has no limit.",
    ]


class WrongRunsRecord(TypedDict):
    """Number of runs with a wrong result."""

    wrong: Annotated[Natural, "Number of runs with a wrong result."]
    of: Annotated[Natural, "Number of all runs."]


class ComparisonRecord(TypedDict):
    """A tensor of one runner, compared with a reference."""

    level: Annotated[
        Literal["model", "node"],
        "Whether the tensor is an output of the model, or of a node computed from its inputs on the runner.",
    ]
    node: Annotated[str | None, "The path to the node, 'loop:body/scatter'; null for an output of the model."]
    tensor: Annotated[str, "The name of the output, or of the tensor at the node's output."]
    case: Annotated[Natural, "The number of the case (set of inputs), from 0."]
    subject: Annotated[str, "The runner that is judged."]
    reference: Annotated[str, "The runner that it is compared with."]
    relation: Annotated[
        Literal["document", "runners", "repeat", "models", "earlier"],
        "The kind of the reference: the specification ('document': NumPy), another runner, another run of "
        "the same runner, the first of two models, or a saved result.",
    ]
    verdict: Annotated[
        Literal["equal", "close", "contested", "precision", "unknown", "nondeterministic", "mismatch"],
        "The judgement on the tensor; the values are listed from best to worst.",
    ]
    elements: Annotated[Natural, "Number of elements of the tensor."]
    mismatched: Annotated[Natural, "Number of elements that differ by more than the tolerance."]
    contested: Annotated[Natural, "Number of elements whose value the specification does not determine."]
    known_as: Annotated[
        list[str],
        "The codes of known defects that explain the difference; empty if there is none, or it is not known.",
    ]
    max_abs: Annotated[float | None, "The largest absolute difference; null if it is not finite."]
    max_rel: Annotated[float | None, "The largest relative difference; null if it is not finite."]
    max_ulp: Annotated[
        int | None, "The largest difference in units in the last place; null for types without them."
    ]
    required: Annotated[ToleranceRecord, "The smallest tolerances with which the verdict would be 'close'."]
    tolerance: Annotated[
        ToleranceRecord, "The tolerance that was applied: |got - expected| <= abs + rel * |expected|."
    ]
    worst: Annotated[WorstElementRecord | None, "The element with the largest difference."]
    nans: Annotated[list[Natural], "Numbers of NaN in the subject and in the reference."]
    infinities: Annotated[list[Natural], "Numbers of infinities in the subject and in the reference."]
    remark: Annotated[
        str, "Why the tensors could not be compared by element, such as different shapes; else empty."
    ]
    excuse: Annotated[
        ExcuseRecord | None, "Which elements of the output are not judged, and why; null if all are."
    ]
    rounding: NotRequired[
        Annotated[
            RoundingRecord,
            "What rounding explains; only present if the output differs by more than the tolerance.",
        ]
    ]
    operator: NotRequired[Annotated[str, 'The operator of the node and its version: "ScatterUpdate-3".']]
    caller: NotRequired[
        Annotated[str, "For a node in a function: the path to the node that calls the function."]
    ]
    place: NotRequired[
        Annotated[list[Natural], "The iteration number of each loop around the node, outermost first."]
    ]
    tapped: NotRequired[
        Annotated[bool, "True if one of two runs of the same runner had taps, that is, read inputs of nodes."]
    ]
    wrong_runs: NotRequired[Annotated[WrongRunsRecord, "Number of runs in which the tensor was wrong."]]
    subject_model: NotRequired[Annotated[str, "If two models are compared: the model of the subject."]]
    reference_model: NotRequired[Annotated[str, "If two models are compared: the model of the reference."]]
    unspecified_in: NotRequired[
        Annotated[
            str, "The one of two models that does not specify the differing elements, if the other one does."
        ]
    ]


class GuardedRecord(TypedDict):
    """A remark of the NumPy reference on the indices of a node."""

    runner: Annotated[str, "The name of the runner."]
    node: Annotated[str, "The path to the node: 'loop:body/scatter'."]
    operator: Annotated[str, 'The type and version of its operator, "ScatterUpdate-3".']
    case: Annotated[Natural, "The number of the case (set of inputs), from 0."]
    kind: Annotated[
        Literal["out-of-range", "negative", "repeated", "illegal", "nan"],
        "The kind of problem with the indices or values.",
    ]
    illegal: Annotated[bool, "Whether the specification forbids it; false if it only allows several results."]
    message: Annotated[str, "A sentence: the actual state, then the expected one."]
    model: NotRequired[Annotated[str, "If two models are compared: the path of the one concerned."]]


class OutlierRecord(TypedDict):
    """A tensor on which some runners differ from the majority."""

    level: Annotated[
        Literal["model", "node"],
        "Whether the tensor is an output of the model, or of a node computed from its inputs on the runner.",
    ]
    node: Annotated[str | None, "The path to the node: 'loop:body/scatter'."]
    tensor: Annotated[str, "The name of the tensor."]
    case: Annotated[Natural, "The number of the case (set of inputs), from 0."]
    runners: Annotated[list[str], "The runners that differ from the majority."]
    message: Annotated[str, "The finding as a sentence."]
    model: NotRequired[Annotated[str, "If two models are compared: the path of the one concerned."]]


class FirstDifferenceRecord(TypedDict):
    """The first part of a model that adds to the difference in a runner's outputs."""

    runner: Annotated[str, "The name of the runner."]
    case: Annotated[Natural, "The number of the case (set of inputs), from 0."]
    nodes: Annotated[
        list[str],
        "Paths to the nodes of that part; a single node with --taps all; [] if no node adds a difference.",
    ]
    operators: Annotated[list[str], "The operator types of these nodes."]
    message: Annotated[str, "The finding as a sentence."]


class StepRecord(TypedDict):
    """A suggestion to the user."""

    purpose: Annotated[str, "The purpose, in a few words."]
    command: Annotated[str | None, "The command; null if no command does it."]
    text: Annotated[str | None, "A suggestion in words, if no command does it."]


class NextStepsRecord(TypedDict):
    """A difference or failure, the known defects that explain it, and suggestions."""

    runner: Annotated[str, "The runner that is wrong, or does not run the model."]
    model: Annotated[str, "The path of the model."]
    nodes: Annotated[list[str], "The scopes of the nodes; empty if they are unknown."]
    known_as: Annotated[list[str], "The codes of the known defects; empty if no known defect explains it."]
    message: Annotated[str, "The same in words."]
    steps: Annotated[list[StepRecord], "Suggestions to the user, the most useful first."]


class NotTappedRecord(TypedDict):
    """A node whose inputs could not be read from a runner."""

    runner: Annotated[str, "The name of the runner."]
    node: Annotated[str, "The path to the node: 'loop:body/scatter'."]
    reason: Annotated[str, "Why the inputs of the node could not be read."]


class NodeFactsRecord(TypedDict):
    """How a runner computed a node, as it reports."""

    name: Annotated[str, "The name of the node in the runtime."]
    originals: Annotated[list[str], "The nodes of the model that this node of the runtime replaces."]
    kind: Annotated[str, "The type of the node in the runtime."]
    kernel: Annotated[str, "The name of the implementation that the runtime chose."]
    precision: Annotated[str, "The element type of the computation."]
    outputs: Annotated[list[str], "The element types of the outputs."]
    converts: Annotated[
        str | None, 'The change of element type by the runtime: "i64 -> i32"; null without one.'
    ]
    microseconds: Annotated[float | None, "The execution time; null if it was not measured."]


class SkippedRunnerRecord(TypedDict):
    """A runner that was skipped."""

    runner: Annotated[str, "The name of the runner."]
    reason: Annotated[str, "The reason, as a sentence."]


class InputRecord(TypedDict):
    """An input of a model."""

    first: Annotated[str, "The name in the first model."]
    second: Annotated[str, "The name in the second model."]
    by: Annotated[str, "How they were matched: by the user, name, order or shape."]
    element_types: Annotated[list[str] | None, "Both element types if they differ; else null."]


class MatchingRecord(TypedDict):
    """The matching inputs and outputs of two models."""

    inputs: Annotated[list[InputRecord], "The matching inputs."]
    outputs: Annotated[list[InputRecord], "The matching outputs."]


class CompareDocument(TypedDict):
    """A comparison of one model, or of two."""

    schema: SchemaNumber
    versions: Versions
    headline: Annotated[str, "The verdict, in one sentence."]
    state: Annotated[
        Literal["differs", "illegal", "failed", "interrupted", "nothing", "agrees"],
        "The kind of result; the values are listed from worst to best.",
    ]
    interrupted: Annotated[
        str | None, "What is missing because the user interrupted the comparison; null if it is complete."
    ]
    model: Annotated[str, "The path of the model."]
    other: Annotated[str | None, "The path of the second model; null if there is only one."]
    seed: Annotated[int, "The seed of the generated inputs."]
    cases: Annotated[Natural, "Number of cases (sets of inputs)."]
    precision: Annotated[str, "The precision that was requested from the runtimes."]
    outcomes: Annotated[list[OutcomeRecord], "How the run of each runner ended."]
    comparisons: Annotated[list[ComparisonRecord], "One entry for each tensor that was compared."]
    guard: Annotated[
        list[GuardedRecord],
        "Nodes with illegal indices, or with inputs for which several results are correct.",
    ]
    odd: Annotated[
        list[OutlierRecord],
        "Runners that differ from the majority of three or more, or a runner that contradicts itself.",
    ]
    first_differences: Annotated[
        list[FirstDifferenceRecord],
        "For each runner with a wrong output: the first part of the model that adds a difference.",
    ]
    next_steps: Annotated[
        list[NextStepsRecord], "Which known defects explain differences and failures, and what to do."
    ]
    not_tapped: Annotated[list[NotTappedRecord], "Nodes whose inputs could not be read on a runner."]
    not_run: Annotated[
        list[str], "Branches and bodies that ran in no case: those with a scatter node; all for two models."
    ]
    not_tried: Annotated[
        list[str], "Conditions that no case tried and under which a difference may occur, as text."
    ]
    facts: Annotated[
        dict[str, Annotated[list[NodeFactsRecord], "One entry for each node of the runtime."]],
        "How each runner executed the scatter nodes, by name of the runner.",
    ]
    skipped: Annotated[list[SkippedRunnerRecord], "Runners that were skipped."]
    matching: Annotated[
        MatchingRecord | None, "The matching inputs and outputs of two models; null if there is only one."
    ]
    remarks: Annotated[list[str], "Remarks for people, a sentence each."]
    about: Annotated[
        dict[str, Annotated[list[str], "Sentences."]],
        "Limits on how far the results of a runner can be trusted, by name of the runner.",
    ]
    summary: Annotated[dict[str, Natural], "Number of comparisons by verdict."]
    machine: NotRequired[
        Annotated[str, "The machine of a fleet that made the comparison; only present with --scheduler."]
    ]
    machines: NotRequired[
        Annotated[
            list[MachineRecord],
            "Machines of a fleet, grouped by those that should give equal results; only with --scheduler.",
        ]
    ]


class FailureRecord(TypedDict):
    """A model that could not be compared."""

    model: Annotated[str, "The path of the model."]
    message: Annotated[str, "The reason, as a sentence."]
    readable: Annotated[bool, "Whether the model could be read."]


class CompareEachDocument(TypedDict):
    """Comparisons of many models."""

    schema: SchemaNumber
    versions: Versions
    headline: Annotated[str, "The verdict, in one sentence."]
    state: Annotated[
        Literal["differs", "illegal", "failed", "interrupted", "nothing", "agrees"],
        "The kind of result; the values are listed from worst to best.",
    ]
    interrupted: Annotated[
        str | None, "What is missing because the user interrupted the comparison; null if it is complete."
    ]
    reports: Annotated[
        list[Annotated[Any, DocumentReference("compare")]],
        "One report per model, as `compare` writes it for a single model.",
    ]
    failures: Annotated[list[FailureRecord], "Models that could not be compared."]
    summary: Annotated[dict[str, Natural], "Number of comparisons of all models by verdict."]
    machines: NotRequired[
        Annotated[
            list[MachineRecord],
            "Machines of a fleet, grouped by those that should give equal results; only with --scheduler.",
        ]
    ]


DOCUMENTS = {
    "compare": (CompareDocument, "ir-scatter compare --format json"),
    "compare-each": (CompareEachDocument, "ir-scatter compare --each --format json"),
}
"""(record, title) of each whole document, by the name of its schema."""
