"""What came of a comparison in one sentence, the same in every report."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter

from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import (
    NEVER,
    NUMPY,
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

_FEW = 3
"""So many runners are named, of more their number is."""
_LONGEST = 120
"""Letters of a runtime's own words that a sentence holds."""
NOTHING = "nothing was compared"
"""What a remark begins with that says why."""

_FAILURES = {
    Status.REFUSED: ("refuses the model", "refuse the model"),
    Status.UNSUPPORTED: ("does not know all of the model", "do not know all of the model"),
    Status.UNAVAILABLE: ("does not run here", "do not run here"),
    Status.CRASHED: ("crashed", "crashed"),
    Status.TIMEOUT: ("took too long", "took too long"),
}


class State(StrEnum):
    """How it went, the worst first."""

    DIFFERS = "differs"
    ILLEGAL = "illegal"
    """Nodes get indices that their documents forbid."""
    FAILED = "failed"
    """Nothing differs, and a runner that was named did not run the model."""
    INTERRUPTED = "interrupted"
    """Nothing differs in what was finished."""
    NOTHING = "nothing"
    """Nothing was compared."""
    AGREES = "agrees"


@dataclass(frozen=True, slots=True, eq=False)
class Headline:
    """The sentence, and what it is about, so that nobody needs to say that again."""

    state: State
    sentence: str
    subject: Comparison | Guarded | Outcome | None = None


def headline(found: Compared) -> Headline:
    """Word what came of a model: what is wrong and where, who failed, or who agrees on what."""
    told = _headline(found)
    if found.apart:
        told = replace(told, sentence=_joined(found.apart, told.sentence))
    return _and_interrupted(told, found.interrupted)


def _and_interrupted(told: Headline, missing: str) -> Headline:
    if not missing:
        return told
    is_worse = told.state in {State.DIFFERS, State.ILLEGAL, State.FAILED}
    return replace(
        told,
        state=told.state if is_worse else State.INTERRUPTED,
        sentence=missing if told.state is State.NOTHING else _joined(told.sentence, missing),
    )


def _headline(found: Compared) -> Headline:
    differing = [one for one in found.comparisons if one.measure.verdict.is_difference]
    illegal = [one for one in found.guarded if one.is_illegal]
    more = _failures([one for one in found.failed if not (illegal and one.runner == NUMPY)])
    order = list(found.operators)
    nodes = [one for one in differing if one.level is Level.NODE]
    nodes.sort(key=lambda one: order.index(one.node) if one.node in order else len(order))
    if nodes:
        wrong = [one for one in nodes if one.relation is Relation.DOCUMENT] or nodes
        if illegal:
            more = [f"{counted(len({one.node for one in illegal}), 'node')} with illegal indices", *more]
        return Headline(State.DIFFERS, _joined(_of_node(wrong, found), *more), wrong[0])
    if illegal:
        return Headline(State.ILLEGAL, _joined(_of_illegal(illegal, found), *more), illegal[0])
    if differing:
        return Headline(State.DIFFERS, _joined(_of_output(differing, found), *more), differing[0])
    refusal = [
        f"NumPy refuses the model: {_short(one.message)}"
        for one in found.outcomes
        if (one.runner, one.status) == (NUMPY, Status.REFUSED) and one not in found.failed
    ]
    if found.failed:
        rest = _agreement(found) if found.comparisons else NOTHING
        if len(found.failed) == 1 and found.failed[0].message and not refusal:
            more = [f"{more[0]}: {_short(found.failed[0].message)}"]
        return Headline(State.FAILED, _joined(*refusal, *more, rest), found.failed[0])
    if found.comparisons and all(map(_is_random, found.comparisons)):
        return Headline(State.NOTHING, _joined(*refusal, *_of_random(found)))
    if not found.comparisons:
        reasons = (remark for remark in found.remarks if remark.startswith(NOTHING))
        return Headline(State.NOTHING, _joined(*refusal, next(reasons, NOTHING)))
    return Headline(State.AGREES, _agreement(found))


def is_single(done: ComparedModels) -> bool:
    """Tell whether one model is all there is to tell of."""
    return len(done.found) == 1 and not done.failures and done.interrupted in {"", done.found[0].interrupted}


def headline_of_many(done: ComparedModels) -> Headline:
    """Word what came of models that were each compared for themselves; of a single one what came of it."""
    if is_single(done):
        return headline(done.found[0])
    states = [*(headline(one).state for one in done.found), *(State.FAILED for _ in done.failures)]
    parts = []
    wrong = [_subjects(filter(_is_wrong, found.comparisons)) for found in done.found]
    if differing := states.count(State.DIFFERS):
        verb = "differs" if differing == 1 else "differ"
        runners = dict.fromkeys(runner for each in wrong for runner in each)
        counts = [f"{runner} in {sum(runner in each for each in wrong)}" for runner in runners]
        parts.append(f"{differing} of {counted(len(done.found), 'model')} {verb}: {listed(counts)}")
    illegal = sum(any(one.is_illegal for one in found.guarded) for found in done.found)
    for count, words in (
        (illegal, "{} with illegal indices"),
        (states.count(State.FAILED) - len(done.failures), "{} not run by every runner that was named"),
        (states.count(State.NOTHING), "{} with nothing to compare"),
        (states.count(State.AGREES), "no difference in {}"),
        (len(done.failures), "{} could not be compared"),
    ):
        if count:
            parts.append(words.format(counted(count, "model")))
    state = min(states, key=list(State).index, default=State.NOTHING)
    return _and_interrupted(Headline(state, _joined(*parts) or "there are no models"), done.interrupted)


def _short(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _is_wrong(one: Comparison) -> bool:
    return one.measure.verdict.is_difference


def _names(runners: Sequence[str]) -> str:
    return listed(runners) if len(runners) <= _FEW else f"{len(runners)} runners"


def _do(runners: Sequence[str], singular: str, plural: str) -> str:
    return f"{_names(runners)} {singular if len(runners) == 1 else plural}"


def _subjects(found: Iterable[Comparison]) -> list[str]:
    return list(dict.fromkeys(one.subject for one in found))


def _of_node(wrong: Sequence[Comparison], found: Compared) -> str:
    """Word what is wrong at the first node, and at how many others."""
    first = wrong[0]
    runners = {one.node: _subjects(other for other in wrong if other.node == one.node) for one in wrong}
    here = runners[first.node]
    if first.relation is Relation.DOCUMENT:
        worst = first.measure.worst  # no document says what becomes of NaN
        is_nan = worst is not None and worst.expected != worst.expected
        known = "NumPy computes" if is_nan else "the document says"
        start = f"{_do(here, 'is', 'are')} wrong at {first.node}{_how_often(first, found)}"
        sentence = f"{start}: {_element(first, here, known)}"
    else:
        start = f"{_do(here, 'changes', 'change')} from run to run at {first.node}"
        sentence = f"{start}: {_element(first, here)}"
    if len(runners) == 1:
        return sentence
    total = len({one.node for one in found.comparisons if one.level is Level.NODE})
    verb = "are wrong" if first.relation is Relation.DOCUMENT else "change"
    others = "" if all(each == here for each in runners.values()) else " on one runner or another"
    return f"{sentence}; {len(runners)} of {counted(total, 'node')} {verb}{others}"


def _how_often(one: Comparison, found: Compared) -> str:
    parts = []
    if one.wrong_runs is not None:
        parts.append(f" in {one.wrong_runs[0]} of {one.wrong_runs[1]} runs")
    key = attrgetter("level", "node", "tensor", "subject", "reference")
    same = [other for other in found.comparisons if key(other) == key(one)]
    cases = {other.case for other in same}
    wrong = {other.case for other in same if _is_wrong(other)}
    if len(wrong) < len(cases):
        parts.append(f" in {len(wrong)} of {len(cases)} cases")
    return "".join(parts)


def _element(one: Comparison, runners: Sequence[str] = (), known: str = "") -> str:
    """Word the worst element: what it is, and what it is by others."""
    found = one.measure
    if found.remark:
        return f"the output {found.remark}"
    if found.worst is None:
        return f"{found.mismatched} of {counted(found.elements, 'element')} differ"
    place, got, expected = found.worst.words
    if known:
        on = f" on {one.subject}" if len(runners) > 1 else ""
        return f"{place} {got}{on}, {known} {expected}"
    return f"{place} {one.both(got, expected)}"


def _of_illegal(illegal: Sequence[Guarded], found: Compared) -> str:
    first = illegal[0]
    nodes = {one.node for one in illegal}
    runners = list(dict.fromkeys(one.runner for one in illegal if one.node == first.node))
    on = "" if set(runners) >= {*found.ran} else f" on {_names(runners)}"
    what = "inputs" if first.kind == "illegal" else "indices"
    others = f"; {counted(len(nodes), 'node')} in all" if len(nodes) > 1 else ""
    return f"{first.node} gets illegal {what}{on}: {first.message}{others}"


def _of_output(differing: list[Comparison], found: Compared) -> str:
    """Word what differs at the first output, where every node is right or could not be looked at."""
    order = list(Relation)
    if found.other:  # whether the models differ comes first
        order.sort(key=lambda relation: relation is not Relation.MODELS)
    named = [one.tensor for one in found.outliers if found.other]
    differing.sort(key=lambda one: (one.tensor not in named, order.index(one.relation)))
    first = differing[0]
    same = [one for one in differing if (one.tensor, one.relation) == (first.tensor, first.relation)]
    here, where = _subjects(same), f"at output {first.tensor}"
    outputs = len({one.tensor for one in differing})
    total = len({one.tensor for one in found.comparisons if one.level is Level.MODEL})
    parts = [f"{outputs} of {counted(total, 'output')} differ"] if outputs > 1 else []
    blamed = next(
        (one.runners for one in found.outliers if (one.node, one.tensor) == (None, first.tensor)), None
    )
    often = _how_often(first, found)
    if blamed is not None and found.other:
        message = next(one.message for one in found.outliers if one.tensor == first.tensor)
        return _joined(f"output {first.tensor}: {message}", *parts)
    match first.relation:
        case Relation.DOCUMENT if blamed is not None and blamed[0].removeprefix(SAVED) == NUMPY:
            start = f"{_names(here)} agree with each other against NumPy {where}{often}"
            sentence = f"{start}: {_element(first, (), 'NumPy computes')}"
        case Relation.DOCUMENT:
            start = f"{_do(here, 'is', 'are')} wrong {where}{often}"
            sentence = f"{start}: {_element(first, here, 'NumPy computes')}"
            nodes = [
                one for one in found.comparisons if one.level is Level.NODE and one.subject == first.subject
            ]
            if nodes and not any(one.runner == first.subject for one in found.not_tapped):
                parts.append(_of_right_nodes(first, found))
        case Relation.RUNNERS:
            others = _names([first.reference, *_right(found, first, here)])
            start = f"{_do(here, 'differs', 'differ')} from {others} {where}{often}"
            sentence = f"{start}: {_element(first)}"
            parts.append("NumPy does not say who is right")
        case Relation.MODELS:
            names = short_names(first.subject_model, first.reference_model)
            worst = first.measure.worst
            how = _element(first)
            if worst is not None and not first.measure.remark:
                place, got, expected = worst.words
                how = f"{place} {got}, not {expected}"
            sentence = f"{names[0]} departs from {names[1]} on {_names(here)} {where}{often}: {how}"
        case Relation.EARLIER:
            start = _do(here, "is not what it was", "are not what they were")
            sentence = f"{start} {where}{often}: {_element(first)}"
        case Relation.REPEAT if not first.tapped:
            sentence = f"{_do(here, 'changes', 'change')} from run to run {where}: {_element(first)}"
        case Relation.REPEAT:
            told = (one.message for one in found.outliers if one.tapped and one.tensor == first.tensor)
            message = next(told, f"{first.subject} changes when nodes are tapped: {_element(first)}")
            sentence = f"output {first.tensor}: {message}"
            parts += _of_suspects(first.subject, found)
    return _joined(sentence, *parts)


def _of_right_nodes(first: Comparison, found: Compared) -> str:
    """Word what follows for an output that is wrong without taps from nodes that are right with taps."""
    begin, contradicts = "every scatter node is right", f"{first.subject} contradicts itself"
    is_other = any(
        one.tapped and one.tensor == first.tensor and first.subject in one.runners for one in found.outliers
    ) or any(remark.startswith(contradicts) for remark in found.remarks)
    if first.wrong_runs is not None:
        begin += " in the first inference, and none was looked at in later ones"
    suspects = _of_suspects(first.subject, found)
    if is_other:
        return _joined(f"with taps {begin}, but taps change the result", *(suspects or [_ONE_IS_SUSPECT]))
    return _joined(begin, *suspects)


_ONE_IS_SUSPECT = "a node before the output is suspect"


def _of_suspects(runner: str, found: Compared) -> list[str]:
    """Word which nodes meet a known defect of a runner that taps hide."""
    nodes = found.suspects.get(runner.removeprefix(SAVED), {})
    codes = dict.fromkeys(nodes.values())
    return [
        f"{listed([node for node in nodes if nodes[node] == code][:_FEW])} may meet {code}, which taps hide"
        for code in codes
    ]


def _is_random(one: Comparison) -> bool:
    excuse = one.measure.excuse
    return one.measure.verdict is Verdict.CONTESTED and excuse is not None and excuse.is_random


def _of_random(found: Compared) -> list[str]:
    """Word which operators draw random numbers, and of which outputs nothing can be said therefore."""
    outputs = dict[str, str]()
    for one in filter(_is_random, found.comparisons):
        assert one.measure.excuse is not None
        outputs.setdefault(one.tensor, one.measure.excuse.why)
    reasons = dict[str, list[str]]()
    for name, why in outputs.items():
        reasons.setdefault(why, []).append(name)
    word = {True: "output", False: "outputs"}
    return [f"{why}: no verdict on {word[len(names) == 1]} {listed(names)}" for why, names in reasons.items()]


def _right(found: Compared, first: Comparison, wrong: Sequence[str]) -> list[str]:
    """Return the other runners that agree with the reference of a comparison."""
    key, others = attrgetter("level", "tensor", "case", "reference"), (*wrong, first.reference)
    same = (one.subject for one in found.comparisons if key(one) == key(first))
    return [subject for subject in same if subject not in others]


def _failures(failed: Sequence[Outcome]) -> list[str]:
    """Word who did not run the model, those together that ended alike."""
    groups: dict[Status, list[str]] = {}
    for one in failed:
        groups.setdefault(one.status, []).append(one.runner)
    return [_do(names, *_FAILURES[status]) for status, names in groups.items()]


def _untried(found: Compared) -> list[str]:
    """Word which bodies ran in no case, and what else may hide a difference."""
    names = found.not_run
    if not names:
        return [*found.not_tried]
    shown = counted(len(names), "body", "bodies") if len(names) > _FEW else listed(names)
    return [f"{shown} {'was' if len(names) == 1 else 'were'} not run", *found.not_tried]


def _agreement(found: Compared) -> str:
    """Word who agrees on what, and on how many cases that rests."""
    levels = {
        level: [one for one in found.comparisons if one.level is level] for level in (Level.NODE, Level.MODEL)
    }
    outputs, nodes = levels[Level.MODEL], levels[Level.NODE]
    random = {one.tensor for one in outputs if _is_random(one)}
    outputs = [one for one in outputs if one.tensor not in random]
    cases = counted(len(found.feeds), "case")
    what = []
    if nodes:
        what.append(counted(len({one.node for one in nodes}), "node"))
    if outputs and not (nodes and found.is_one_node):
        what.append(counted(len({one.tensor for one in outputs}), "output"))
    parts = []
    if contested := {
        one.node or one.tensor for one in (*outputs, *nodes) if one.measure.verdict is Verdict.CONTESTED
    }:
        parts.append(f"the document leaves {len(contested)} of them open")
    parts += _of_random(found)
    for runner in found.suspects if not outputs else ():
        parts += ["no output was compared", *_of_suspects(runner, found)]
    scopes = tuple(f"{name.partition(' ')[2]}/" for name in found.not_run)
    missing = {one.node for one in found.not_tapped if one.reason != NEVER or not one.node.startswith(scopes)}
    if hidden := missing - {one.node for one in nodes}:
        parts.append(f"{counted(len(hidden), 'node')} could not be looked at")
    parts += _untried(found)
    between = [one for one in outputs if one.relation is Relation.MODELS]
    if between:
        runners = _subjects(between)
        names = short_names(found.model, found.other)
        on = counted(len({one.tensor for one in between}), "output")
        for name in dict.fromkeys(one.subject for one in outputs if one.subject not in runners):
            path = next(one.subject_model for one in outputs if one.subject == name)
            parts.append(f"{name} agrees on {names[path != found.model]}")
        sentence = f"{_do(runners, 'computes', 'compute')} the same for {names[0]} and {names[1]}"
        return _joined(f"{sentence}: {on}, {cases}", *parts)
    runners = list(dict.fromkeys(name for one in outputs for name in (one.reference, one.subject)))
    runners = [one.runner for one in found.outcomes if one.runner in runners]
    if len(runners) > 1:
        who = f"{len(runners)} runners agree" if len(runners) > 2 else f"{_names(runners)} agree"
    else:
        runners = _subjects(nodes or outputs)
        who = f"{_do(runners, 'agrees', 'agree')} with the documents"
    return _joined(f"{who} on {listed(what)}, {cases}", *parts)
