"""Summarises the result of a comparison in one sentence, the same in every report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from ir_scatter.compare.judge import unfit_inputs
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import (
    NOT_COMPUTED,
    SAVED,
    Compared,
    Comparison,
    Guarded,
    Level,
    Relation,
    short_names,
)
from ir_scatter.core.words import counted, listed
from ir_scatter.runners.base import Outcome, Status
from ir_scatter.runners.defaults import NUMPY

_MOST_NAMES = 3
"""Maximum runners, nodes or bodies named in a sentence; further ones are only counted."""

_LONGEST = 120
"""Maximum characters of a runtime's error message that a sentence quotes."""

NOTHING = "nothing was compared"
"""First words of the sentence for a comparison without any result."""

_FAILURES = {
    Status.REFUSED: ("refuses the model", "refuse the model"),
    Status.UNSUPPORTED: (
        "does not support an operator of the model",
        "do not support an operator of the model",
    ),
    Status.UNAVAILABLE: ("does not run here", "do not run here"),
    Status.CRASHED: ("crashed", "crashed"),
    Status.TIMEOUT: ("exceeded the time limit", "exceeded the time limit"),
    Status.INPUTS_DO_NOT_FIT: ("fails on the drawn inputs", "fail on the drawn inputs"),
}
"""Verb phrases for each failure: for one runner, and for several."""


class State(StrEnum):
    """The kind of result, from worst to best."""

    DIFFERS = "differs"
    ILLEGAL = "illegal"
    """A node gets indices that its specification forbids."""
    FAILED = "failed"
    """Nothing differs, but a runner that the user named did not run the model."""
    INTERRUPTED = "interrupted"
    """Nothing differs in the finished part."""
    NOTHING = "nothing"
    """Nothing was compared."""
    AGREES = "agrees"


@dataclass(frozen=True, slots=True, eq=False)
class Headline:
    """The summary sentence of a comparison, and the result that it states (pages need not repeat it)."""

    state: State
    sentence: str
    subject: Comparison | Guarded | Outcome | None = None


def headline(compared: Compared) -> Headline:
    """Summarise one comparison: what is wrong and where, which runner failed, or which runners agree."""
    line = _headline(compared)
    if compared.apart:
        line = replace(line, sentence=_join(compared.apart, line.sentence))
    return _add_interruption(line, compared.interrupted)


def _add_interruption(line: Headline, interrupted: str) -> Headline:
    """Append to a headline what is missing after an interrupt; return it unchanged if that is ""."""
    if not interrupted:
        return line
    is_worse = line.state in {State.DIFFERS, State.ILLEGAL, State.FAILED}
    return replace(
        line,
        state=line.state if is_worse else State.INTERRUPTED,
        sentence=interrupted if line.state is State.NOTHING else _join(line.sentence, interrupted),
    )


def _headline(compared: Compared) -> Headline:
    differing = list(filter(_is_difference, compared.comparisons))
    illegal = [remark for remark in compared.guarded if remark.is_illegal]
    suffixes = _failures(
        [outcome for outcome in compared.failed if not (illegal and outcome.runner == NUMPY)]
    )
    order = list(compared.operators)
    nodes = [comparison for comparison in differing if comparison.level is Level.NODE]
    nodes.sort(key=lambda each: order.index(each.node) if each.node in order else len(order))
    if nodes:
        wrong = [node for node in nodes if node.relation is Relation.DOCUMENT] or nodes
        if illegal:
            count = len({remark.node for remark in illegal})
            suffixes = [f"{counted(count, 'node')} with illegal indices", *suffixes]
        return Headline(State.DIFFERS, _join(_word_node(wrong, compared), *suffixes), wrong[0])
    if illegal:
        return Headline(State.ILLEGAL, _join(_word_illegal(illegal, compared), *suffixes), illegal[0])
    if differing:
        return Headline(State.DIFFERS, _join(_word_output(differing, compared), *suffixes), differing[0])
    refusal = [
        f"NumPy refuses the model: {_shorten(outcome.message)}"
        for outcome in compared.outcomes
        if (outcome.runner, outcome.status) == (NUMPY, Status.REFUSED) and outcome not in compared.failed
    ]
    unfit = _shorten(unfit_inputs(compared.outcomes))
    if unfit and not compared.comparisons:
        subject = next(outcome for outcome in compared.outcomes if outcome.status is Status.INPUTS_DO_NOT_FIT)
        return Headline(State.NOTHING, _join(unfit, *suffixes, NOTHING), subject)
    if compared.failed:
        rest = _word_agreement(compared) if compared.comparisons else NOTHING
        if len(compared.failed) == 1 and compared.failed[0].message and not refusal:
            suffixes = [f"{suffixes[0]}: {_shorten(compared.failed[0].message)}"]
        return Headline(State.FAILED, _join(*refusal, *suffixes, rest), compared.failed[0])
    if compared.comparisons and all(map(_is_random, compared.comparisons)):
        return Headline(State.NOTHING, _join(*refusal, *_word_random(compared)))
    if not compared.comparisons:
        reasons = (remark for remark in compared.remarks if remark.startswith(NOTHING))
        return Headline(State.NOTHING, _join(*refusal, next(reasons, NOTHING)))
    return Headline(State.AGREES, _word_agreement(compared))


def is_single(done: ComparedModels) -> bool:
    """Return whether the request has one result, without remarks about other models."""
    return len(done.found) == 1 and not done.failures and done.interrupted in {"", done.found[0].interrupted}


def headline_of_many(done: ComparedModels) -> Headline:
    """Summarise the results of several models that were compared separately.

    For a single model, return that model's sentence.
    """
    if is_single(done):
        return headline(done.found[0])
    states = [*(headline(compared).state for compared in done.found), *(State.FAILED for _ in done.failures)]
    parts = []
    wrong = [_subjects(filter(_is_difference, compared.comparisons)) for compared in done.found]
    if differing := states.count(State.DIFFERS):
        verb = "differs" if differing == 1 else "differ"
        runners = dict.fromkeys(runner for of_model in wrong for runner in of_model)
        counts = [f"{runner} in {sum(runner in of_model for of_model in wrong)}" for runner in runners]
        parts.append(f"{differing} of {counted(len(done.found), 'model')} {verb}: {listed(counts)}")
    illegal = sum(any(remark.is_illegal for remark in compared.guarded) for compared in done.found)
    for count, words in (
        (illegal, "{} with illegal indices"),
        (states.count(State.FAILED) - len(done.failures), "{} not run by every named runner"),
        (states.count(State.NOTHING), "{} with nothing to compare"),
        (states.count(State.AGREES), "no difference in {}"),
        (len(done.failures), "{} could not be compared"),
    ):
        if count:
            parts.append(words.format(counted(count, "model")))
    state = min(states, key=list(State).index, default=State.NOTHING)
    return _add_interruption(Headline(state, _join(*parts) or "there are no models"), done.interrupted)


def _shorten(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


def _join(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _is_difference(comparison: Comparison) -> bool:
    return comparison.measure.verdict.is_difference


def _names(runners: Sequence[str]) -> str:
    return listed(runners) if len(runners) <= _MOST_NAMES else f"{len(runners)} runners"


def _with_verb(runners: Sequence[str], singular: str, plural: str) -> str:
    return f"{_names(runners)} {singular if len(runners) == 1 else plural}"


def _subjects(comparisons: Iterable[Comparison]) -> list[str]:
    return list(dict.fromkeys(comparison.subject for comparison in comparisons))


def _word_node(wrong: Sequence[Comparison], compared: Compared) -> str:
    """Describe the difference at the first node that differs, and count the other nodes."""
    first = wrong[0]
    runners = {
        comparison.node: _subjects(each for each in wrong if each.node == comparison.node)
        for comparison in wrong
    }
    of_first = runners[first.node]
    if first.relation is Relation.DOCUMENT:
        worst = first.measure.worst  # no specification covers NaN in a reduction
        is_nan = worst is not None and worst.expected != worst.expected
        source = "NumPy computes" if is_nan else "the specification requires"
        start = f"{_with_verb(of_first, 'is', 'are')} wrong at {first.node}{_how_often(first, compared)}"
        sentence = f"{start}: {_word_element(first, of_first, source)}"
    else:
        start = f"{_with_verb(of_first, 'changes', 'change')} from run to run at {first.node}"
        sentence = f"{start}: {_word_element(first, of_first)}"
    if len(runners) == 1:
        return sentence
    total = len({comparison.node for comparison in compared.comparisons if comparison.level is Level.NODE})
    verb = "are wrong" if first.relation is Relation.DOCUMENT else "change"
    are_same = all(of_node == of_first for of_node in runners.values())
    where = "" if are_same else " on one runner or another"
    return f"{sentence}; {len(runners)} of {counted(total, 'node')} {verb}{where}"


def _how_often(comparison: Comparison, compared: Compared) -> str:
    parts = []
    if comparison.wrong_runs is not None:
        parts.append(f" in {comparison.wrong_runs[0]} of {comparison.wrong_runs[1]} runs")
    key = attrgetter("level", "node", "tensor", "subject", "reference")
    of_tensor = [each for each in compared.comparisons if key(each) == key(comparison)]
    cases = {each.case for each in of_tensor}
    wrong = {each.case for each in of_tensor if _is_difference(each)}
    if len(wrong) < len(cases):
        parts.append(f" in {len(wrong)} of {len(cases)} cases")
    return "".join(parts)


def _word_element(comparison: Comparison, runners: Sequence[str] = (), source: str = "") -> str:
    """Describe the worst element of a tensor and its expected value: "[0] is 2, NumPy computes 3"."""
    difference = comparison.measure
    if difference.remark:
        return f"the output {difference.remark}"
    if difference.worst is None:
        return f"{difference.mismatched} of {counted(difference.elements, 'element')} differ"
    place, got, expected = difference.worst.words
    if source:
        on = f" on {comparison.subject}" if len(runners) > 1 else ""
        return f"{place} {got}{on}, {source} {expected}"
    return f"{place} {comparison.describe_pair(got, expected)}"


def _word_illegal(illegal: Sequence[Guarded], compared: Compared) -> str:
    first = illegal[0]
    nodes = {remark.node for remark in illegal}
    runners = list(dict.fromkeys(remark.runner for remark in illegal if remark.node == first.node))
    on = "" if set(runners) >= {*compared.ran} else f" on {_names(runners)}"
    noun = "inputs" if first.kind == "illegal" else "indices"
    total = f"; {counted(len(nodes), 'node')} in total" if len(nodes) > 1 else ""
    return f"{first.node} gets illegal {noun}{on}: {first.message}{total}"


def _word_output(differing: list[Comparison], compared: Compared) -> str:
    """Describe the difference at the first output.

    Used if no node differs, or if no node could be tapped.
    """
    order = list(Relation)
    if compared.other:  # the difference between the models comes first
        order.sort(key=lambda relation: relation is not Relation.MODELS)
    of_outliers = [outlier.tensor for outlier in compared.outliers if compared.other]
    differing.sort(key=lambda each: (each.tensor not in of_outliers, order.index(each.relation)))
    first = differing[0]
    runners = _subjects(
        each for each in differing if (each.tensor, each.relation) == (first.tensor, first.relation)
    )
    outputs = len({each.tensor for each in differing})
    total = len({each.tensor for each in compared.comparisons if each.level is Level.MODEL})
    suffixes = [f"{outputs} of {counted(total, 'output')} differ"] if outputs > 1 else []
    blamed = next(
        (
            outlier.runners
            for outlier in compared.outliers
            if (outlier.node, outlier.tensor) == (None, first.tensor)
        ),
        None,
    )
    if blamed is not None and compared.other:
        message = next(outlier.message for outlier in compared.outliers if outlier.tensor == first.tensor)
        return _join(f"output {first.tensor}: {message}", *suffixes)
    where = f"at output {first.tensor}{_how_often(first, compared)}"
    match first.relation:
        case Relation.DOCUMENT if blamed is not None and blamed[0].removeprefix(SAVED) == NUMPY:
            start = f"{_names(runners)} agree with each other against NumPy {where}"
            sentence = f"{start}: {_word_element(first, (), 'NumPy computes')}"
        case Relation.DOCUMENT:
            start = f"{_with_verb(runners, 'is', 'are')} wrong {where}"
            sentence = f"{start}: {_word_element(first, runners, 'NumPy computes')}"
            has_nodes = any(
                each.level is Level.NODE and each.subject == first.subject for each in compared.comparisons
            )
            is_hidden = any(failure.runner == first.subject for failure in compared.not_tapped)
            origin = _word_first_difference(first, compared)
            suffixes += origin
            if has_nodes and not is_hidden:
                suffixes.append("all scatter nodes agree" if origin else _word_right_nodes(first, compared))
        case Relation.RUNNERS:
            majority = _names([first.reference, *_agreeing(compared, first, runners)])
            start = f"{_with_verb(runners, 'differs', 'differ')} from {majority} {where}"
            sentence = f"{start}: {_word_element(first)}"
            suffixes.append("no reference is available for this output")
        case Relation.MODELS:
            names = short_names(first.subject_model, first.reference_model)
            worst = first.measure.worst
            how = _word_element(first)
            if worst is not None and not first.measure.remark:
                place, got, expected = worst.words
                how = f"{place} {got}, not {expected}"
            sentence = f"{names[0]} differs from {names[1]} on {_names(runners)} {where}: {how}"
        case Relation.EARLIER:
            start = _with_verb(runners, "differs from its saved result", "differ from their saved results")
            sentence = f"{start} {where}: {_word_element(first)}"
        case Relation.REPEAT if not first.tapped:
            start = _with_verb(runners, "changes", "change")
            sentence = f"{start} from run to run at output {first.tensor}: {_word_element(first)}"
        case Relation.REPEAT:
            messages = (
                outlier.message
                for outlier in compared.outliers
                if outlier.tapped and outlier.tensor == first.tensor
            )
            default = f"{first.subject} changes when nodes are tapped: {_word_element(first)}"
            sentence = f"output {first.tensor}: {next(messages, default)}"
            suffixes += _word_suspects(first.subject, compared)
    return _join(sentence, *suffixes)


def _word_first_difference(first: Comparison, compared: Compared) -> list[str]:
    """Name the node at which a runner's output begins to differ; [] if it is unknown."""
    return [
        each.message
        for each in compared.first_differences
        if each.nodes and (each.runner, each.case) == (first.subject, first.case)
    ][:1]


_SUSPECT_NODE = "a node before the output is suspect"


def _word_right_nodes(first: Comparison, compared: Compared) -> str:
    """Describe an output that is wrong in the plain run although every tapped scatter node is right."""
    sentence, contradicts = "every scatter node is right", f"{first.subject} contradicts itself"
    do_taps_change = any(
        outlier.tapped and outlier.tensor == first.tensor and first.subject in outlier.runners
        for outlier in compared.outliers
    ) or any(remark.startswith(contradicts) for remark in compared.remarks)
    if first.wrong_runs is not None:
        sentence += " in the first inference; nodes are not tapped in later inferences"
    suspects = _word_suspects(first.subject, compared)
    if do_taps_change:
        return _join(f"with taps {sentence}, but taps change the result", *(suspects or [_SUSPECT_NODE]))
    return _join(sentence, *suspects)


def _word_suspects(runner: str, compared: Compared) -> list[str]:
    """Name nodes that may have a known defect which disappears when nodes are tapped."""
    nodes = compared.suspects.get(runner.removeprefix(SAVED), {})
    codes = dict.fromkeys(nodes.values())
    names = {code: [node for node in nodes if nodes[node] == code][:_MOST_NAMES] for code in codes}
    return [f"{listed(names[code])} may be affected by {code}, which taps hide" for code in codes]


def _word_rounding(outputs: Sequence[Comparison]) -> list[str]:
    """Count outputs that differ only by a runner's lower precision; name outputs without a verdict."""
    by_verdict: dict[Verdict, dict[str, Comparison]] = {Verdict.PRECISION: {}, Verdict.UNKNOWN: {}}
    for comparison in outputs:
        if comparison.measure.verdict in by_verdict:
            by_verdict[comparison.measure.verdict].setdefault(comparison.tensor, comparison)
    sentences = []
    if coarse := [*by_verdict[Verdict.PRECISION].values()]:
        precisions = dict.fromkeys(
            each.measure.explanation.precision for each in coarse if each.measure.explanation is not None
        )
        verb = "differs" if len(coarse) == 1 else "differ"
        where = f"{verb} on {_names(_subjects(coarse))}"
        sentences.append(
            f"{counted(len(coarse), 'output')} {where} within the rounding of {listed([*precisions])}"
        )
    if unknown := [*by_verdict[Verdict.UNKNOWN].values()]:
        noun = "output" if len(unknown) == 1 else "outputs"
        names = listed([each.tensor for each in unknown[:_MOST_NAMES]])
        more = f" and {len(unknown) - _MOST_NAMES} more" if len(unknown) > _MOST_NAMES else ""
        explanations = [each.measure.explanation for each in unknown]
        is_complete = all(each is None or each.is_complete for each in explanations)
        reason = (
            "rounding may change all digits"
            if is_complete
            else "the time limit is too short to measure rounding"
        )
        sentences.append(f"{reason} of {noun} {names}{more}: no verdict")
    return sentences


def _is_random(comparison: Comparison) -> bool:
    excuse = comparison.measure.excuse
    return comparison.measure.verdict is Verdict.CONTESTED and excuse is not None and excuse.is_random


def _word_random(compared: Compared) -> list[str]:
    """Name the operators that draw random numbers, and the outputs without a verdict because of them."""
    reason_of = dict[str, str]()
    for comparison in filter(_is_random, compared.comparisons):
        assert comparison.measure.excuse is not None
        reason_of.setdefault(comparison.tensor, comparison.measure.excuse.why)
    outputs_of = dict[str, list[str]]()
    for name, reason in reason_of.items():
        outputs_of.setdefault(reason, []).append(name)
    return [
        f"{reason}: no verdict on {'output' if len(names) == 1 else 'outputs'} {listed(names)}"
        for reason, names in outputs_of.items()
    ]


def _agreeing(compared: Compared, first: Comparison, wrong: Sequence[str]) -> list[str]:
    """Return the runners whose results agree with the reference of comparison `first`."""
    key, disagreeing = attrgetter("level", "tensor", "case", "reference"), (*wrong, first.reference)
    subjects = (each.subject for each in compared.comparisons if key(each) == key(first))
    return [subject for subject in subjects if subject not in disagreeing]


def _failures(failed: Sequence[Outcome]) -> list[str]:
    """Describe which runners did not run the model, grouped by status."""
    groups: dict[Status, list[str]] = {}
    for outcome in failed:
        groups.setdefault(outcome.status, []).append(outcome.runner)
    return [_with_verb(names, *_FAILURES[status]) for status, names in groups.items()]


def _word_untried(compared: Compared) -> list[str]:
    """Name the bodies that ran in no case, and other conditions that no case has tried."""
    names = compared.not_run
    if not names:
        return [*compared.not_tried]
    bodies = counted(len(names), "body", "bodies") if len(names) > _MOST_NAMES else listed(names)
    return [f"{bodies} {'was' if len(names) == 1 else 'were'} not run", *compared.not_tried]


def _word_agreement(compared: Compared) -> str:
    """Name the runners that agree, what they agree on, and the number of cases."""
    nodes = [comparison for comparison in compared.comparisons if comparison.level is Level.NODE]
    outputs = [comparison for comparison in compared.comparisons if comparison.level is Level.MODEL]
    random = {comparison.tensor for comparison in outputs if _is_random(comparison)}
    outputs = [comparison for comparison in outputs if comparison.tensor not in random]
    cases = counted(len(compared.feeds), "case")
    tensors = []
    if nodes:
        tensors.append(counted(len({comparison.node for comparison in nodes}), "node"))
    if outputs and not (nodes and compared.is_one_node):
        tensors.append(counted(len({comparison.tensor for comparison in outputs}), "output"))
    suffixes = []
    contested = {
        comparison.node or comparison.tensor
        for comparison in (*outputs, *nodes)
        if comparison.measure.verdict is Verdict.CONTESTED
    }
    if contested:
        suffixes.append(f"the specification allows several results for {len(contested)} of them")
    suffixes += [*_word_rounding(outputs), *_word_random(compared)]
    for outcome in compared.outcomes:
        if unknown := [name for name in outcome.not_computed if name not in random]:
            which = f"output {unknown[0]}" if len(unknown) == 1 else f"{len(unknown)} outputs"
            suffixes.append(f"NumPy does not compute {which}")
    for runner in compared.suspects if not outputs else ():
        suffixes += ["no output was compared", *_word_suspects(runner, compared)]
    bodies = tuple(f"{name.partition(' ')[2]}/" for name in compared.not_run)
    missing = {
        failure.node
        for failure in compared.not_tapped
        if failure.reason != NOT_COMPUTED or not failure.node.startswith(bodies)
    }
    if hidden := missing - {comparison.node for comparison in nodes}:
        suffixes.append(f"{counted(len(hidden), 'node')} could not be tapped")
    suffixes += _word_untried(compared)
    if unfit := unfit_inputs(compared.outcomes):
        suffixes.append(f"in other cases {_shorten(unfit)}")
    between_models = [comparison for comparison in outputs if comparison.relation is Relation.MODELS]
    if between_models:
        runners = _subjects(between_models)
        names = short_names(compared.model, compared.other)
        count = counted(len({comparison.tensor for comparison in between_models}), "output")
        for name in dict.fromkeys(each.subject for each in outputs if each.subject not in runners):
            path = next(each.subject_model for each in outputs if each.subject == name)
            suffixes.append(f"{name} agrees on {names[path != compared.model]}")
        sentence = f"{names[0]} and {names[1]} give the same results on {_names(runners)}"
        return _join(f"{sentence}: {count}, {cases}", *suffixes)
    names_of_outputs = {name for each in outputs for name in (each.reference, each.subject)}
    runners = [outcome.runner for outcome in compared.outcomes if outcome.runner in names_of_outputs]
    if len(runners) > 1:
        subject = f"{len(runners)} runners agree" if len(runners) > 2 else f"{_names(runners)} agree"
    else:
        runners = _subjects(nodes or outputs)
        subject = f"{_with_verb(runners, 'agrees', 'agree')} with the specification"
    return _join(f"{subject} on {listed(tensors)}, {cases}", *suffixes)
