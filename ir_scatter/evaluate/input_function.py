"""Calls a function of a user's Python file in a child process, as it may crash or hang."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeAlias

from ir_scatter.core.process import Failure, shortened
from ir_scatter.core.words import with_article

_MOST_CASES = 1000
"""Maximum sets of inputs taken from a generator: an endless one would fill the memory."""

_Answer: TypeAlias = tuple[list[Any], list[str] | None, list[int]]
"""(arrays, their names or None if they are in input order, positions of arrays made from untyped numbers)."""


def handlers() -> Mapping[str, Callable[..., Any]]:
    return {"call": call}


def call(path: str, shown: str, function: str) -> list[_Answer]:
    """Call a function of a Python file; return its sets of inputs.

    Args:
        path: the absolute path of the file.
        shown: the path as the user wrote it, for messages.
        function: the name of the function.

    Raises:
        Failure: the file or the function fails, or the result is not a set of inputs.
    """
    sys.path.insert(0, os.path.dirname(path))  # as for `python FILE.py`, so that it can import its neighbours
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        module = sys.modules["inputs_of_user"] = ModuleType("inputs_of_user")
        module.__file__ = path
        exec(code, module.__dict__)
    except BaseException as error:
        raise _failure(error, path, shown) from None
    if not callable(made := getattr(module, function, None)):
        from ir_scatter.core.suggestions import did_you_mean

        functions = [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]
        raise Failure("refused", f"{shown} has no function {function!r}{did_you_mean(function, functions)}")
    try:
        returned = made()
        cases = _several(returned, f"{shown}:{function}") if isinstance(returned, Iterator) else [returned]
    except Failure:
        raise
    except BaseException as error:
        raise _failure(error, path, shown) from None
    if not cases:
        raise Failure("refused", f"{shown}:{function} yields nothing, expected sets of inputs")
    verb = "yields" if isinstance(returned, Iterator) else "returns"
    return [_arrays(case, f"{shown}:{function} {verb}") for case in cases]


def _several(iterator: Iterator[Any], source: str) -> list[Any]:
    cases = []
    for case in iterator:
        cases.append(case)
        if len(cases) > _MOST_CASES:
            raise Failure("refused", f"{source} yields more than {_MOST_CASES} sets of inputs")
    return cases


def _arrays(case: Any, subject: str) -> _Answer:
    expected = "expected a dict of arrays by name, or a list of arrays"
    if isinstance(case, Mapping):
        names, values = [*case], [*case.values()]
        for name in names:
            if not isinstance(name, str):
                raise Failure("refused", f"{subject} a dict with the key {shortened(repr(name))}, {expected}")
    elif isinstance(case, list | tuple):
        names, values = None, [*case]
    else:
        raise Failure("refused", f"{subject} {with_article(type(case).__name__)}, {expected}")
    labels = names or [f"item {number}" for number in range(len(values))]
    arrays = [_array(value, f"{subject} {label}") for label, value in zip(labels, values, strict=True)]
    untyped = [number for number, value in enumerate(values) if not hasattr(value, "dtype")]
    return arrays, names, untyped


def _array(value: Any, subject: str) -> Any:
    import numpy as np

    from ir_scatter.core.arrays import in_native_dtype

    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and not all(isinstance(text, str) for text in array.flat):
            raise TypeError
        return in_native_dtype(array)
    except Exception:  # any error of the object's own conversion
        kind = with_article(type(value).__name__)
        raise Failure("refused", f"{subject} as {kind} that NumPy makes no array of") from None


def _failure(error: BaseException, path: str, shown: str) -> Failure:
    """Return a failure that names the last line of the user's file in an exception's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    line = line or next(reversed(lines), None)
    place = shown if line is None else f"{shown}:{line}"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return Failure("refused", shortened(f"{place}: {type(error).__name__}: {message}".removesuffix(": ")))
