"""Runs models with taps: in one batch if the tapped tensors fit, without those that do not work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.kept import identity
from ir_scatter.runners.openvino.inputs import input_names, shapes_by_parameter
from ir_scatter.runners.openvino.messages import sentence, status
from ir_scatter.runners.openvino.models import Models
from ir_scatter.runners.openvino.taps import TappedModel, placed, sizes, tap
from ir_scatter.runners.openvino.tensors import to_array
from ir_scatter.runners.service import Failure
from ir_scatter.runners.tapping import Done, part_of, with_taps


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is to be run.

    Attributes:
        asked: as it came.
        model: of OpenVINO.
        feeds: by the names that the caller used.
        tensors: one for each Parameter.
        outputs: how many the model has.
    """

    asked: Mapping[str, Any]
    model: Any
    feeds: Mapping[str, Array]
    tensors: Sequence[Any]
    outputs: int

    @property
    def names(self) -> list[list[str]]:
        """Return every name of each Parameter."""
        return input_names(self.model, self.feeds, self.asked["model"])

    @property
    def taps(self) -> tuple[tuple[str, str], ...]:
        """Return scope and first output of the nodes that are asked for."""
        return tuple((scope, output) for scope, output, *_ in self.asked["taps"])


def run_tapped(models: Models, question: Question) -> Done:
    """Run a model with as many taps as it bears.

    Raises:
        Failure: it does not run without taps either.
    """
    return with_taps(
        len(question.taps),
        lambda bodies: _run_batch(models, question, bodies=bodies),
        lambda: _run(models, question, None, ()),
    )


def prepare(models: Models, asked: Mapping[str, Any]) -> None:
    """Make ready what a run without taps will look for.

    Raises:
        Failure: the device is missing, or does not take the model.
    """
    path = asked["model"]
    model = models.read(path)
    models.start(model, identity(path), asked["device"], asked["precision"], profile=asked["profile"])


def _run_batch(models: Models, question: Question, *, bodies: bool) -> Done:
    """Run the model with as many taps, from the first on, as memory allows."""
    tapped = _tapped(models, question, question.taps, bodies=bodies)
    shapes = shapes_by_parameter(question.model, question.names, question.feeds)
    batch = part_of(
        len(question.taps),
        lambda: sizes(tapped, shapes, lambda model: _measured(models, question, model)),
        question.asked,
    )
    taps = question.taps[: batch.count]
    if batch.is_whole:
        done = _run(models, question, tapped, (taps, bodies))
    else:
        key = ("tapped", *identity(question.asked["model"]), question.taps, bodies)
        models.kept.forget(key)
        tapped = tap(question.model, taps, bodies=bodies)
        done = _run(models, question, tapped, None)
    return batch.entered(done)


def _measured(models: Models, question: Question, model: Any) -> list[Any]:
    """Return the shapes that a model gives out."""
    asked = question.asked
    _, request = models.make(model, asked["device"], asked["precision"], profile=False)
    _infer(request, question.tensors)
    return [_output(request, index) for index in range(len(model.outputs))]


def _run(models: Models, question: Question, tapped: TappedModel | None, key: tuple[Any, ...] | None) -> Done:
    """Run the model, tapped or not; what runs it is kept under a key, if there is one."""
    started, asked = perf_counter(), question.asked
    model = question.model if tapped is None else tapped.model
    device, precision, profile = asked["device"], asked["precision"], asked["profile"]
    done = Done()
    if key is None:
        done.ran = models.make(model, device, precision, profile=profile)
    else:
        whole_key = (*identity(asked["model"]), *key)
        done.ran = models.start(model, whole_key, device, precision, profile=profile)
    _, request = done.ran
    for number in range(asked["repeat"]):
        _infer(request, question.tensors)
        done.runs.append([_output(request, index) for index in range(question.outputs)])
        if tapped is not None and not number:
            done.arrays = [_output(request, index) for index in tapped.added]
        done.seconds = done.seconds or perf_counter() - started
    if tapped is not None:
        done.taps = placed(tapped, question.names, question.feeds, len(done.arrays))
        done.arrays += tapped.constants
    return done


def _infer(request: Any, tensors: Sequence[Any]) -> None:
    """Run once; a model with a memory begins anew."""
    try:
        request.reset_state()
        for number, tensor in enumerate(tensors):
            request.set_input_tensor(number, tensor)
        request.infer()
    except Exception as error:  # whatever the runtime says is the answer
        raise Failure(status(error), sentence(error)) from None


def _output(request: Any, index: int) -> Array:
    return to_array(request.get_output_tensor(index))


def _tapped(
    models: Models, question: Question, taps: tuple[tuple[str, str], ...], *, bodies: bool
) -> TappedModel:
    key = ("tapped", *identity(question.asked["model"]), taps, bodies)
    found: TappedModel = models.kept.get(key, lambda: tap(question.model, taps, bodies=bodies))
    return found
