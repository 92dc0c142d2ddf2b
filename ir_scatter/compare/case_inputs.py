"""Provides the inputs of each case of a comparison: saved, passed by the caller, or generated."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ir_scatter.compare.judge import ModelSide
from ir_scatter.compare.pairing import Pairing
from ir_scatter.compare.phases import begin, case_of
from ir_scatter.compare.result import Compared, CompareSettings
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import BadFeed, Error, NoInputs
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Shape
from ir_scatter.evaluate.model import check_feeds, make_sketch
from ir_scatter.formats import dataflow_of
from ir_scatter.inputs.coverage import REPEATED, Coverage, are_repeats_untried, draw_further
from ir_scatter.inputs.givens import GivenInputs
from ir_scatter.inputs.model import Drawn, draw_feeds, ranges_by_number

Feeds = Mapping[str, Array]


@dataclass(slots=True, eq=False)
class CaseInputs:
    """The inputs of all cases of a comparison; a case is one set of inputs on which all runners run.

    Attributes:
        cases: for each case, its arrays by input name, with the names and types of the first model.
        drawn: the generated cases; `drawn[0]` is the case number `first_drawn`.
        coverage: the conditions (a loop body runs, an index repeats ...) that generated cases try or miss.
        notes: remarks for the user, a sentence each.
    """

    cases: list[Feeds] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    first_drawn: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    notes: list[str] = field(default_factory=list)


def check_saved_inputs(saved: Compared, model: Model) -> Sequence[Feeds]:
    """Return the inputs that were saved with earlier results; raise BadFeed if they do not fit the model."""
    for feeds in saved.feeds:
        try:
            check_feeds(dataflow_of(model).inputs, feeds)
        except BadFeed as error:
            raise BadFeed(f"{model.path}, with the saved inputs of {saved.model}: {error}") from None
    return saved.feeds


def draw_inputs(
    sides: Sequence[ModelSide], pairing: Pairing | None, settings: CompareSettings, passed: Sequence[Feeds]
) -> CaseInputs:
    """Return the inputs of all cases: first those that the caller passed, then generated ones.

    Generated inputs are legal for both models, if such inputs exist. Cases are added to the requested number
    if no case runs some branch or loop body, or if none repeats an index that only one model allows.

    Raises:
        BadFeed: passed inputs or value ranges do not fit a model, or passed inputs break conditions
            that the user gave.
        NoInputs: no legal inputs were found.
    """
    model, inputs, shapes, ranges = sides[0].model, CaseInputs(), settings.input_shapes, settings.input_ranges
    givens = GivenInputs(model, settings.given)
    for feeds in passed:
        if pairing is not None:
            feeds, notes = pairing.adapt_feeds(feeds)
            inputs.notes += [note for note in notes if note not in inputs.notes]
        check_feeds(dataflow_of(model).inputs, feeds)
        givens.demand(feeds)
        inputs.cases.append(feeds)
    if pairing is not None:
        shapes, ranges = pairing.shapes(shapes), pairing.ranges(ranges)
    if ranges:
        ranges_by_number([input for input in dataflow_of(model).inputs if input.default is None], ranges)
    numbers = range(len(inputs.cases), settings.cases)
    twin = None if pairing is None or not numbers else pairing.twin()
    program = make_sketch(model) if numbers else model

    def draw(seed: int, **options: Any) -> Drawn:
        def draw_once(seed: int, shapes: Mapping[str, Shape], **more: Any) -> Drawn:
            return draw_feeds(program, seed, shapes, settings.values, twin=twin, **options, **more)

        return givens.draw(draw_once, seed, shapes, ranges, options.pop("fixed", None))

    for number in numbers:
        begin(f"drawing inputs{case_of(number, settings.cases)}")
        try:
            case = draw(settings.seed + number)
        except NoInputs as error:
            if twin is None:
                raise
            twin = None
            note = "no inputs were found that are legal for both models; these are legal for the first"
            inputs.notes.append(f"{note}: {error}")
            case = draw(settings.seed + number)
        inputs.drawn.append(case)
    if inputs.drawn:
        inputs.first_drawn = len(inputs.cases)
        inputs.coverage = _draw_further(sides, draw, inputs.drawn, settings.seed + numbers.stop)
        inputs.drawn += inputs.coverage.cases
    elif inputs.cases and pairing is not None:
        begin("looking for repeated indices")
        if all(_are_repeats_untried(model, feeds, pairing) for feeds in inputs.cases):
            inputs.coverage.not_tried.append(REPEATED)
    for case in inputs.drawn:
        inputs.cases.append(case.feeds if pairing is None else pairing.feeds(case.feeds)[0])
    return inputs


def _are_repeats_untried(model: Model, feeds: Feeds, pairing: Pairing) -> bool:
    """Return whether no index repeats although exactly one of the models allows that."""
    fixed = dict[int, Array]()
    for number, input in enumerate(dataflow_of(model).inputs):
        name = next((name for name in input.names if name in feeds), None)
        if name is not None:
            fixed[number] = feeds[name]
    with suppress(Error):
        program, twin = make_sketch(model), pairing.twin()
        shapes = {name: array.shape for name, array in feeds.items()}
        drawn = draw_feeds(program, input_shapes=shapes, twin=twin).run
        run = draw_feeds(program, input_shapes=shapes, twin=twin, fixed=fixed).run
        return drawn is not None and run is not None and are_repeats_untried(drawn, run)
    return False


def _draw_further(
    sides: Sequence[ModelSide], draw: Callable[..., Drawn], drawn: Sequence[Drawn], seed: int
) -> Coverage:
    """Draw cases that run the branches and loop bodies that no case has run, and one with repeated indices.

    The case with repeated indices is drawn only if one of two models forbids them.
    """
    begin("drawing inputs for all bodies")
    bodies = [
        (place, body.scope)
        for place, side in enumerate(sides)
        for body in side.reference.optional_bodies(has_scatter=len(sides) == 1)
    ]
    return draw_further(draw, drawn, bodies, seed)
