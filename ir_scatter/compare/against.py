"""A model here and now, held against results that were saved."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ir_scatter.compare.outputs import compare_outputs, find_odd
from ir_scatter.compare.request import Voices
from ir_scatter.compare.saved import load
from ir_scatter.compare.session import SAVED, Compared, Session, Settings
from ir_scatter.compare.tolerances import Tolerances
from ir_scatter.compare.verdicts import Comparison
from ir_scatter.runners.outcome import Outcome, Status
from ir_scatter.validate import read


def compare_against(folder: "str | Path", path: "str | Path", voices: Voices, settings: Settings) -> Compared:
    """Run a model on the inputs that were saved, and compare with what was saved.

    Each runner is compared with the saved one of its name, or with the first saved one that ran.
    Saved taps are judged again, so that tolerances can change without running anything.

    Args:
        folder: what `save` wrote.
        path: of the model.
        voices: who runs here; nobody if only what is saved is to be looked at.
        settings: the tolerances, precision and time limits.

    Raises:
        BadFeed: the folder holds no results, or the model does not take their inputs.
        UnreadableModel: the model cannot be read.
    """
    saved = load(folder)
    session = Session(read(path), str(path), voices.runners, settings, with_numpy=voices.with_numpy)
    for number, (feeds, old) in enumerate(zip(saved.feeds, saved.runs, strict=True)):
        if voices.runners or voices.with_numpy:
            session.run_case(number, feeds)
            new = session.runs[-1]
            compared = list(_pairs(new, old, number, settings.tolerances))
            session.of_outputs += compared
        else:
            _again(session, old, number)
    for outcome in saved.runs[0] if saved.runs else ():
        session.outcomes.setdefault(outcome.runner, outcome)
    session.remarks[f"saved results of {saved.model}, from {folder}"] = None
    return session.result(saved.feeds)


def _pairs(
    new: Sequence[Outcome], old: Sequence[Outcome], case: int, tolerances: Tolerances
) -> Iterator[Comparison]:
    ran = [one for one in old if one.status is Status.OK]
    for subject in new:
        same = [one for one in ran if one.runner == SAVED + subject.runner]
        reference = next(iter(same or ran), None)
        if reference is not None and subject.status is Status.OK:
            yield from compare_outputs([reference, replace(subject, runs=subject.runs[:1])], case, tolerances)


def _again(session: Session, old: Sequence[Outcome], case: int) -> None:
    """Judge what was saved once more."""
    for outcome in old:
        for tapped in outcome.tapped:
            session.judge_tap(tapped, outcome.runner, case, outcome.precision)
    compared = list(compare_outputs(old, case, session.settings.tolerances))
    session.of_outputs += compared
    session.odd += find_odd(compared, old)
