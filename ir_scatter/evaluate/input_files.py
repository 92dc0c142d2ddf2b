"""Reads the inputs of a model from files: an npz, a folder of ONNX tensors, or a function in a Python file.

Arrays have names, or follow the order of the model's inputs without a default: `arr_0`, `arr_1` ... of an
npz, `input_0.pb`, `input_1.pb` ... of a folder, and a list that a function returns.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.files import read_regular
from ir_scatter.core.process import Child, Failure
from ir_scatter.core.shortage import memory_of_machine
from ir_scatter.core.suggestions import why_missing
from ir_scatter.core.words import counted
from ir_scatter.evaluate import archive
from ir_scatter.runners.defaults import TIME_LIMIT

Feeds = Mapping[str, Array]

_FUNCTION = re.compile(r"(?s)(?P<file>.+\.py):(?P<function>.+)")
_SET, _INPUT = re.compile(r"test_data_set_(\d+)"), re.compile(r"input_(\d+)\.pb")
_IN_ORDER = re.compile(r"arr_(\d+)|(\d+)")
"""Names that `numpy.savez` gives to unnamed arrays ("arr_0"), or plain numbers."""

_MOST_BYTES = 1 << 31
"""Maximum bytes of a protobuf file: protobuf itself refuses larger ones."""

CHILD = "ir_scatter.evaluate.input_function"
"""The module that calls functions of users in a child process."""


class _Case(NamedTuple):
    """One set of inputs as read from a file.

    Attributes:
        arrays: the arrays, in order.
        names: their names; None if they follow the order of the model's inputs.
        source: the file or function, for messages.
        untyped: positions of arrays that were made from numbers without an element type, such as lists.
    """

    arrays: Sequence[Array]
    names: Sequence[str] | None
    source: str
    untyped: frozenset[int] = frozenset()
    are_names_optional: bool = False

    def in_order(self) -> "Sequence[Array] | None":
        """Return the arrays in the order of the numbers in their names; None if a name has no such number."""
        numbers = []
        for name in self.names or ():
            match = _IN_ORDER.fullmatch(name)
            if match is None:
                return None
            numbers.append(int(match[1] or match[2]))
        return [self.arrays[place] for place in sorted(range(len(numbers)), key=numbers.__getitem__)]


def read_cases(
    source: str, inputs: Sequence[GraphInput], limit: float = TIME_LIMIT
) -> list[dict[str, Array]]:
    """Return the sets of inputs in a file or folder, by names of the model's inputs.

    Args:
        source: "inputs.npz"; "test_data_set_0", a folder with `input_0.pb` ..., or a folder of several
            such folders; "make.py:inputs", a function without arguments that returns arrays by name, a list
            in the order of the inputs, or a generator of several of these.
        inputs: the inputs of the model.
        limit: seconds that a function may take.

    Raises:
        BadFeed: the source cannot be read, has another number of arrays than the model has inputs, or the
            function failed. Names, types and shapes of arrays are not checked.
    """
    match = _FUNCTION.fullmatch(source)
    if match is not None and not Path(source).exists():
        cases = _call(match["file"], match["function"], limit)
    elif Path(source).is_dir():
        cases = _read_folder(Path(source))
    elif source.endswith(".py"):
        raise BadFeed(f"{source} names no function, expected {source}:FUNCTION")
    else:
        arrays = archive.read_arrays(source)
        cases = [_Case([*arrays.values()], [*arrays], source)]
    return [archive.fit_types(_by_name(case, inputs), inputs) for case in cases]


def read_one_case(source: str, inputs: Sequence[GraphInput], limit: float = TIME_LIMIT) -> dict[str, Array]:
    """Return the only set of inputs of a source; see `read_cases`.

    Raises:
        BadFeed: there are several, or the source cannot be read.
    """
    cases = read_cases(source, inputs, limit)
    if len(cases) != 1:
        raise BadFeed(f"{source} has {counted(len(cases), 'set')} of inputs, expected one")
    return cases[0]


def files_of(source: str) -> list[str]:
    """Return the files that `read_cases` reads, so that outputs do not overwrite them."""
    match, folder = _FUNCTION.fullmatch(source), Path(source)
    if match is not None and not folder.exists():
        return [match["file"]]
    if not folder.is_dir():
        return [source]
    return [str(path) for pattern in ("*.pb", "*/*.pb") for path in sorted(folder.glob(pattern))]


def _by_name(case: _Case, inputs: Sequence[GraphInput]) -> dict[str, Array]:
    """Return the arrays by input name; unknown names are kept, so that a later check reports them."""
    known = {name for input in inputs for name in input.names}
    names, arrays = case.names, case.arrays
    if names is None or (case.are_names_optional and not known.issuperset(names)):
        names = None
    elif not known.intersection(names) and (in_order := case.in_order()):
        names, arrays = None, in_order
    if names is None:
        needed = [input for input in inputs if input.default is None]
        expected = list(inputs) if len(arrays) == len(inputs) else needed
        if len(arrays) != len(expected):
            listed = ", ".join(input.names[0] for input in needed) or "none"
            count = counted(len(arrays), "array")
            raise BadFeed(f"{case.source} has {count}, expected {len(needed)} for the inputs {listed}")
        names = [input.names[0] for input in expected]
    types = {name: input.element_type for input in inputs for name in input.names}
    fitted = {}
    for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
        type = types.get(name)
        numpy_type = None if type is None else dtype(type)
        is_free = place in case.untyped and numpy_type is not None
        fitted[name] = _converted(array, numpy_type) if is_free else array
    return fitted


def _converted(array: Array, numpy_type: Any) -> Array:
    """Convert an array to a type that can hold all its numbers; otherwise return it unchanged.

    Floating-point numbers are rounded.
    """
    with np.errstate(all="ignore"):
        converted = array.astype(numpy_type)
        is_rounded = array.dtype.kind == "f" and converted.dtype.kind not in "iub"
        is_exact = is_rounded or np.array_equal(converted.astype(array.dtype), array)
    return np.asarray(converted) if is_exact else array


# Folders of protobuf files


def _read_folder(folder: Path) -> list[_Case]:
    numbered = [(match, path) for path in folder.iterdir() if (match := _SET.fullmatch(path.name))]
    sets = [path for match, path in sorted(numbered, key=lambda pair: int(pair[0][1])) if path.is_dir()]
    if any(_INPUT.fullmatch(path.name) for path in folder.iterdir()) or not sets:
        sets = [folder]
    return [_read_set(path) for path in sets]


def _read_set(folder: Path) -> _Case:
    """Read `input_0.pb`, `input_1.pb` and so on; use the names in these files if all are input names."""
    files = {int(match[1]): path for path in folder.iterdir() if (match := _INPUT.fullmatch(path.name))}
    if not files:
        raise BadFeed(f"{folder} has no inputs, expected input_0.pb or folders test_data_set_0")
    missing = next((number for number in range(len(files)) if number not in files), None)
    if missing is not None:
        raise BadFeed(f"{folder} has {counted(len(files), 'input')}, but no input_{missing}.pb")
    tensors = [_read_tensor(files[number]) for number in range(len(files))]
    names = [name for name, _ in tensors]
    are_distinct = len(set(names)) == len(names)
    arrays = [array for _, array in tensors]
    return _Case(arrays, names if are_distinct else None, str(folder), are_names_optional=True)


def _read_tensor(path: Path) -> tuple[str, Array]:
    from ir_scatter.formats.onnx.tensors import parse_tensor

    try:
        return parse_tensor(read_regular(path, min(_MOST_BYTES, memory_of_machine() or _MOST_BYTES)))
    except FileNotFoundError:
        raise BadFeed(f"{path}: {why_missing(path, ['.pb'])}") from None
    except OSError as error:
        raise BadFeed(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise BadFeed(f"{path}: {error}") from None


# Functions of users


def _call(file: str, function: str, limit: float) -> list[_Case]:
    """Call a function of a Python file in a child process."""
    source = f"{file}:{function}"
    if not function.isidentifier():
        raise BadFeed(f"{source}: {function!r} is not the name of a function, expected FILE.py:FUNCTION")
    if not Path(file).exists():
        raise BadFeed(f"{file}: {why_missing(file, ['.py'])}")
    child = Child(CHILD)
    try:
        answers, _ = child.ask("call", str(Path(file).absolute()), file, function, limit=limit, again=False)
    except Failure as failure:
        match failure.status:
            case "timeout":
                message = f"the function did not end within {limit:g} seconds"
            case "refused":  # with the place in the file
                raise BadFeed(failure.message) from None
            case _:
                message = failure.message
        raise BadFeed(f"{source}: {message}") from None
    finally:
        child.close()
    return [
        _Case(arrays, names, source if len(answers) == 1 else f"{source}, case {number},", frozenset(untyped))
        for number, (arrays, names, untyped) in enumerate(answers)
    ]
