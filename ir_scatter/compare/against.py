"""A model here and now, held against results that were saved."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.compare.one_model import Session
from ir_scatter.compare.outputs import compare_pair
from ir_scatter.compare.request import Voices
from ir_scatter.compare.saved import Saved, load
from ir_scatter.compare.session import SAVED, Compared, Settings, without_arrays
from ir_scatter.compare.voices import NUMPY
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model
from ir_scatter.runners.base import Outcome, Status

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def compare_against(folder: "str | Path", model: Model, voices: Voices, settings: Settings) -> Compared:
    """Run a model on the inputs that were saved, and compare with what was saved.

    A runner is compared with the saved one of its name. Saved ones that nobody runs here are compared
    with NumPy, that of today or the saved one, or else with the first that runs. What was tapped
    then is judged again, so that tolerances can change without running anything.

    Args:
        folder: what `save` wrote.
        model: as it was read.
        voices: who runs here; nobody if only what is saved is to be looked at.
        settings: the tolerances, precision and time limits.

    Raises:
        BadFeed: the folder holds no results, or the model does not take their inputs.
    """
    saved = load(folder)
    _demand_fit(saved, model)
    session = Session(model, model.path, voices.runners, settings, with_numpy=voices.with_numpy)
    try:
        for number, (feeds, old) in enumerate(zip(saved.feeds, saved.runs, strict=True)):
            _case(session, number, feeds, old, is_run=bool(voices.runners) or voices.with_numpy)
    finally:
        session.close()
    for runner, facts in saved.facts.items():
        session.facts.setdefault(runner, facts)
    session.remarks[f"saved results of {saved.model}, from {folder}"] = None
    return session.result(saved.feeds)


def _case(
    session: Session, number: int, feeds: "Mapping[str, Array]", old: Sequence[Outcome], *, is_run: bool
) -> None:
    """Run one case, judge what was saved of it once more, and compare the two."""
    settings = session.settings
    new = session.run_case(number, feeds) if is_run else ()
    session.again(number, feeds, old, with_outputs=not is_run)
    open = session.open_outputs(number)
    for subject, reference in _pairs(new, old) if is_run else ():
        found = compare_pair(subject, reference, number, settings.tolerances, open, open)
        session.of_outputs += map(without_arrays, found)
    if settings.keeps_runs and not is_run:
        session.runs.append(tuple(old))


def _pairs(new: Sequence[Outcome], old: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield who is compared: the subject, and what it is held against."""
    here = [one for one in new if one.status is Status.OK]
    then = {one.runner: one for one in old if one.status is Status.OK}
    for subject in here:
        if SAVED + subject.runner in then:
            yield subject, then[SAVED + subject.runner]
    numpy = [one for one in (*here, *then.values()) if one.runner in {NUMPY, SAVED + NUMPY}]
    reference = next(iter([*numpy, *here]), None)
    names = {SAVED + one.runner for one in here}
    for name, outcome in then.items():
        if reference is not None and outcome is not reference and name not in names:
            yield outcome, reference


def _demand_fit(saved: Saved, model: Model) -> None:
    """Do nothing if the model takes the inputs that were saved.

    Raises:
        BadFeed: it does not.
    """
    from ir_scatter.analysis.interpreter import wire
    from ir_scatter.evaluate.model import check_feeds

    inputs = wire(model).inputs
    for feeds in saved.feeds:
        try:
            check_feeds(inputs, feeds)
        except BadFeed as error:
            raise BadFeed(
                f"{model.path}, with the inputs of {saved.model} that were saved: {error}"
            ) from None
