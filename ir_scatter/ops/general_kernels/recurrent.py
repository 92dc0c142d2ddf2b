"""Kernels of recurrent networks: RNN, GRU and LSTM of ONNX, cells and sequences of OpenVINO.

Gates are [directions, gates * hidden, ...]. Their order is that of ONNX internally:
    LSTM input, output, forget, cell; GRU update, reset, hidden.
OpenVINO's order for LSTM is forget, input, cell, output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    REAL,
    KernelCase,
    UnsupportedCase,
    require_kind,
    require_same_type,
    widen,
)
from ir_scatter.ops.general_kernels.functions import sigmoid, softplus, softsign

_Function = Callable[[Array], Any]

_IR_ORDER_OF_LSTM = (1, 3, 0, 2)
"""The positions of ONNX's gates (input, output, forget, cell) in OpenVINO's order."""

_ALPHAS = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
_BETAS = {"hardsigmoid": 0.5}


def _activation(name: str, alpha: float | None, beta: float | None) -> _Function:
    name = name.lower()
    first = alpha if alpha is not None else _ALPHAS.get(name, 1.0)
    second = beta if beta is not None else _BETAS.get(name, 0.0 if name == "affine" else 1.0)
    functions: dict[str, _Function] = {
        "sigmoid": sigmoid,
        "tanh": np.tanh,
        "relu": lambda data: np.maximum(data, 0),
        "affine": lambda data: first * data + second,
        "leakyrelu": lambda data: np.where(data < 0, first * data, data),
        "thresholdedrelu": lambda data: np.where(data > first, data, 0),
        "scaledtanh": lambda data: first * np.tanh(second * data),
        "hardsigmoid": lambda data: np.clip(first * data + second, 0, 1),
        "elu": lambda data: np.where(data < 0, first * np.expm1(np.minimum(data, 0)), data),
        "softsign": softsign,
        "softplus": softplus,
    }
    if name not in functions:
        raise UnsupportedCase(f"{name} is not an activation")
    return functions[name]


def _activations(case: KernelCase, usual: Sequence[str], directions: int) -> list[list[_Function]]:
    """Return the activation functions for each direction."""
    names = case.attributes.value("activations", list(usual) * directions)
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    names = [name.decode() if isinstance(name, bytes) else name for name in names] or list(usual) * directions
    prefix = "activation" if case.is_onnx else "activations"
    given = [case.attributes.numbers(f"{prefix}_{word}", ()) for word in ("alpha", "beta")]
    pools = [list(numbers) for numbers in given]
    functions = []
    if not case.is_onnx and directions == 2 and len(names) == len(usual):
        names = names * 2
        pools = [numbers * 2 for numbers in pools]
    for place, name in enumerate(names):
        parameters = []
        for numbers, table in zip(
            pools, (_ALPHAS | {"scaledtanh": 1.0}, _BETAS | {"affine": 0.0, "scaledtanh": 1.0}), strict=True
        ):
            # in ONNX the numbers follow the order of those activations that have such a parameter
            parameters.append(numbers[place] if place < len(numbers) and name.lower() in table else None)
        functions.append(_activation(name, *parameters))
    count = len(usual)
    if len(functions) != count * directions:
        raise UnsupportedCase(f"there are {len(functions)} activations, expected {count * directions}")
    return [functions[first : first + count] for first in range(0, len(functions), count)]


@dataclass(frozen=True, slots=True)
class Direction:
    """The weights of one direction, with gates in ONNX's order.

    Attributes:
        weights: [gates, hidden, input].
        recurrence: [gates, hidden, hidden].
        bias: [gates, hidden], for the inputs.
        recurrent_bias: [gates, hidden], for the hidden state.
    """

    weights: Array
    recurrence: Array
    bias: Array
    recurrent_bias: Array
    peepholes: Array | None
    functions: Sequence[_Function]
    clip: float
    is_linear_before_reset: bool
    couples: bool

    def limited(self, data: Array) -> Array:
        return np.clip(data, -self.clip, self.clip) if self.clip else data


def _product(data: Array, matrix: Array) -> Array:
    return np.asarray(data @ matrix.T)


def _step_rnn(way: Direction, data: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    (hidden,) = state
    total = _product(data, way.weights[0]) + _product(hidden, way.recurrence[0])
    return (way.functions[0](way.limited(total + way.bias[0] + way.recurrent_bias[0])),)


def _step_gru(way: Direction, data: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    (hidden,) = state
    inner, outer = way.functions

    def gate(number: int) -> Array:
        total = _product(data, way.weights[number]) + _product(hidden, way.recurrence[number])
        return np.asarray(inner(way.limited(total + way.bias[number] + way.recurrent_bias[number])))

    update, reset = gate(0), gate(1)
    fresh = _product(data, way.weights[2]) + way.bias[2]
    if way.is_linear_before_reset:
        fresh = fresh + reset * (_product(hidden, way.recurrence[2]) + way.recurrent_bias[2])
    else:
        fresh = fresh + _product(reset * hidden, way.recurrence[2]) + way.recurrent_bias[2]
    return ((1 - update) * outer(way.limited(fresh)) + update * hidden,)


def _step_lstm(way: Direction, data: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    hidden, cell = state
    inner, fresh, outer = way.functions
    peepholes = way.peepholes

    def gate(number: int) -> Array:
        total = _product(data, way.weights[number]) + _product(hidden, way.recurrence[number])
        return np.asarray(total + way.bias[number] + way.recurrent_bias[number])

    first, forget, last = gate(0), gate(2), gate(1)
    if peepholes is not None:
        first, forget = first + peepholes[0] * cell, forget + peepholes[2] * cell
    opens = np.asarray(inner(way.limited(first)))
    keeps = 1 - opens if way.couples else inner(way.limited(forget))
    cell = keeps * cell + opens * fresh(way.limited(gate(3)))
    if peepholes is not None:
        last = last + peepholes[1] * cell
    return inner(way.limited(last)) * outer(cell), cell


_Step = Callable[[Direction, Array, tuple[Array, ...]], tuple[Array, ...]]


def _run(
    way: Direction, step: _Step, data: Array, state: tuple[Array, ...], lengths: Array, *, is_backward: bool
) -> tuple[Array, tuple[Array, ...]]:
    """Run over [time, batch, input]; return [time, batch, hidden] and the last states.

    Beyond the length of a sequence the state stays, and the outputs are 0.
    """
    steps = data.shape[0]
    outputs = np.zeros((steps, *state[0].shape), state[0].dtype)
    is_short = bool((lengths < steps).any())
    for time in range(steps):
        place = steps - 1 - time if is_backward else time
        new = step(way, data[place], state)
        if is_short:
            active = (place < lengths)[:, None]
            state = tuple(np.where(active, fresh, old) for fresh, old in zip(new, state, strict=True))
            outputs[place] = np.where(active, new[0], 0)
        else:
            state = new
            outputs[place] = new[0]
    return outputs, state


_KINDS: dict[str, tuple[int, _Step, Sequence[str]]] = {
    "rnn": (1, _step_rnn, ("tanh",)),
    "gru": (3, _step_gru, ("sigmoid", "tanh")),
    "lstm": (4, _step_lstm, ("sigmoid", "tanh", "tanh")),
}


def recurrent(kind: str) -> Any:
    """Return the kernel of RNN, GRU or LSTM of ONNX."""
    gates, step, usual = _KINDS[kind]

    def kernel(case: KernelCase) -> tuple[Array, ...]:
        data, weights, recurrence = case.arrays(3)
        require_kind(REAL, data)
        type = require_same_type(data, weights, recurrence)
        is_batch_first = case.attributes.boolean("layout", False)
        word = case.attributes.text("direction", "forward", {"forward", "reverse", "bidirectional"})
        directions = 2 if word == "bidirectional" else 1
        wide = widen(data).swapaxes(0, 1) if is_batch_first else widen(data)
        steps, batch, _ = wide.shape
        hidden = recurrence.shape[-1]
        if weights.shape[:2] != (directions, gates * hidden):
            raise UnsupportedCase(
                f"W has shape {show(weights.shape)}, expected [{directions}, {gates * hidden}, ...]"
            )
        bias = widen(case.array(3)) if case.has(3) else np.zeros((directions, 2 * gates * hidden), wide.dtype)
        lengths = case.array(4) if case.has(4) else np.full(batch, steps)
        states = []
        for port in (5, 6)[: 2 if kind == "lstm" else 1]:
            initial = widen(case.array(port)) if case.has(port) else None
            if initial is None:
                initial = np.zeros((directions, batch, hidden), wide.dtype)
            elif is_batch_first:
                initial = initial.swapaxes(0, 1)
            states.append(initial)
        functions = _activations(case, usual, directions)
        ways = []
        for number in range(directions):
            half = gates * hidden
            peepholes = (
                widen(case.array(7))[number].reshape(3, hidden) if kind == "lstm" and case.has(7) else None
            )
            ways.append(
                Direction(
                    widen(weights)[number].reshape(gates, hidden, -1),
                    widen(recurrence)[number].reshape(gates, hidden, hidden),
                    bias[number, :half].reshape(gates, hidden),
                    bias[number, half:].reshape(gates, hidden),
                    peepholes,
                    functions[number],
                    case.attributes.number("clip", 0.0),
                    case.attributes.boolean("linear_before_reset", False),
                    case.attributes.boolean("input_forget", False),
                )
            )
        results = [
            _run(
                way,
                step,
                wide,
                tuple(state[number] for state in states),
                lengths,
                is_backward=number == 1 or word == "reverse",
            )
            for number, way in enumerate(ways)
        ]
        output = np.stack([outputs for outputs, _ in results], 1)  # [time, directions, batch, hidden]
        last = [np.stack([state[place] for _, state in results]) for place in range(len(states))]
        if is_batch_first:
            output = output.transpose(2, 0, 1, 3)
            last = [state.swapaxes(0, 1) for state in last]
        return tuple(array.astype(type) for array in (output, *last))

    return kernel


rnn, gru, lstm = (recurrent(kind) for kind in ("rnn", "gru", "lstm"))


# OpenVINO.


def _ir_direction(
    case: KernelCase, kind: str, arrays: Sequence[Array], functions: Sequence[_Function]
) -> Direction:
    """Convert OpenVINO's weights [gates * hidden, input], [gates * hidden, hidden] and bias."""
    gates = _KINDS[kind][0]
    weights, recurrence, bias = map(widen, arrays)
    hidden = recurrence.shape[-1]
    order = _IR_ORDER_OF_LSTM if kind == "lstm" else range(gates)
    is_linear = case.attributes.boolean("linear_before_reset", False)
    split = bias.reshape(-1, hidden)
    recurrent_bias = np.zeros((gates, hidden), split.dtype)
    if kind == "gru" and is_linear:
        recurrent_bias[2], split = split[3], split[:3]
    return Direction(
        weights.reshape(gates, hidden, -1)[list(order)],
        recurrence.reshape(gates, hidden, hidden)[list(order)],
        split[list(order)],
        recurrent_bias,
        None,
        functions,
        case.attributes.number("clip", 0.0),
        is_linear,
        False,
    )


def cell(kind: str) -> Any:
    """Return the kernel of RNNCell, GRUCell or LSTMCell of OpenVINO."""
    count = 2 if kind == "lstm" else 1
    _, step, usual = _KINDS[kind]

    def kernel(case: KernelCase) -> tuple[Array, ...]:
        arrays = case.arrays(4 + count)
        require_kind(REAL, *arrays)
        type = require_same_type(*arrays)
        functions = _activations(case, usual, 1)[0]
        way = _ir_direction(case, kind, arrays[1 + count : 4 + count], functions)
        states = step(way, widen(arrays[0]), tuple(map(widen, arrays[1 : 1 + count])))
        return tuple(np.asarray(state).astype(type) for state in states)

    return kernel


rnn_cell, gru_cell, lstm_cell = (cell(kind) for kind in ("rnn", "gru", "lstm"))


def sequence(kind: str) -> Any:
    """Return the kernel of OpenVINO's RNNSequence, GRUSequence or LSTMSequence: [batch, time, input]."""
    count = 2 if kind == "lstm" else 1
    _, step, usual = _KINDS[kind]

    def kernel(case: KernelCase) -> tuple[Array, ...]:
        data, *initial = case.arrays(1 + count)
        lengths, weights, recurrence, bias = (case.array(port) for port in range(1 + count, 5 + count))
        require_kind(REAL, data, *initial, weights, recurrence, bias)
        type = require_same_type(data, *initial, weights, recurrence, bias)
        words = {"forward", "reverse", "bidirectional"}
        word = case.attributes.text("direction", "forward", words)
        directions = 2 if word == "bidirectional" else 1
        if weights.shape[0] != directions:
            raise UnsupportedCase(f"W has shape {show(weights.shape)}, expected {directions} directions")
        functions = _activations(case, usual, directions)
        wide = widen(data).swapaxes(0, 1)
        results = []
        for number in range(directions):
            way = _ir_direction(
                case, kind, [part[number] for part in (weights, recurrence, bias)], functions[number]
            )
            states = tuple(widen(state)[:, number] for state in initial)
            backward = number == 1 or word == "reverse"
            results.append(_run(way, step, wide, states, lengths, is_backward=backward))
        output = np.stack([outputs for outputs, _ in results], 1).transpose(2, 1, 0, 3)
        last = [np.stack([state[place] for _, state in results], 1) for place in range(count)]
        return tuple(array.astype(type) for array in (output, *last))

    return kernel


rnn_sequence, gru_sequence, lstm_sequence = (sequence(kind) for kind in ("rnn", "gru", "lstm"))
