"""What has to hold for a rewrite: proven, unknown, violated, promised; on models as they are read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import convert
from tests.models.ir_text import IrText, Output
from tests.rewrites.ir_models import Source, given, held, one_scatter

SEU, SU, ND = "ScatterElementsUpdate", "ScatterUpdate", "ScatterNDUpdate"


def elements(
    folder: Path,
    indices: Source,
    *,
    shape: tuple[int, ...] = (2, 3),
    data: tuple[Any, ...] = (4, 5),
    axis: int | None = 1,
    opset: str = "opset12",
    type: str = "f32",
    **attributes: str,
) -> str:
    """Write a ScatterElementsUpdate; None is for an axis that is an input."""
    sources = given("data", type, data), indices, given("updates", type, shape)
    place = given("axis", "i64", ()) if axis is None else held(axis, name="axis")
    return one_scatter(folder, SEU, opset, *sources, place, attributes)


def tuples(
    folder: Path,
    indices: Source,
    *,
    updates: tuple[int, ...] = (3,),
    type: str = "f32",
    opset: str = "opset15",
    **attributes: str,
) -> str:
    """Write a ScatterNDUpdate of data [4, 5]."""
    sources = given("data", type, (4, 5)), indices, given("updates", type, updates)
    return one_scatter(folder, ND, opset, *sources, None, attributes)


def slices(
    folder: Path, indices: Source, updates: tuple[int, ...], *, data: tuple[int, ...] = (4, 5), axis: int = 0
) -> str:
    """Write a ScatterUpdate."""
    sources = given("data", "f32", data), indices, given("updates", "f32", updates)
    return one_scatter(folder, SU, "opset3", *sources, held(axis, name="axis"))


def shared(folder: Path, type: str, data: Source, indices: Source, updates: Source, **attributes: str) -> str:
    """Write a node on axis 0 of whose inputs some are one value."""
    axis = indices if indices is _ZERO else held(0, name="axis")
    opset = "opset12" if type == SEU else "opset3"
    return one_scatter(folder, type, opset, data, indices, updates, axis, attributes)


@dataclass(frozen=True)
class Case:
    """A node that is converted to each of some targets.

    It is `expected` to rest on these assumptions, or to be refused with a code and words of the message. Of
    the new nodes may be told the types, a type that is or "-" is not there, and how many scatter nodes.
    """

    make: Callable[..., str]
    given: Sequence[Any]
    attributes: dict[str, Any]
    to: str
    expected: str = ""
    assume: str = ""
    types: str = ""
    has: str = ""
    scatters: int = 0
    keeps_negative: bool = False


def case(make: Callable[..., str], *given: Any, **told: Any) -> Case:
    own = {field.name: told.pop(field.name) for field in fields(Case) if field.name in told}
    return Case(make, given, told, **own)


def _repeated(ir: IrText, size: int = 3) -> Output:
    column = ir.parameter("column", "i64", (size,))
    shape = ir.const("shape", "i64", [4, size])
    return ir.add("repeated", "Broadcast", "opset3", [column, shape], [("i64", (4, size))], {"mode": "numpy"})


def _repeated_and_converted(ir: IrText) -> Output:
    column = ir.parameter("column", "i32", (1, 3))
    wide = ir.add("wide", "Convert", "opset1", [column], [("i64", (1, 3))], {"destination_type": "i64"})
    shape = ir.const("shape", "i64", [4, 3])
    made = ir.add("made", "Broadcast", "opset3", [wide, shape], [("i64", (4, 3))], {"mode": "bidirectional"})
    return ir.add("narrow", "Convert", "opset1", [made], [("i32", (4, 3))], {"destination_type": "i32"})


def _counted(ir: IrText) -> Output:
    ends = [ir.const(f"end{number}", "i64", number) for number in (1, 4, 1)]
    run = ir.add("run", "Range", "opset4", ends, [("i64", (3,))], {"output_type": "i64"})
    return ir.add("rows", "Unsqueeze", "opset1", [run, ir.const("axes", "i64", [1])], [("i64", (3, 1))])


SEU3, SEU12, ND3, ND15, SU3 = f"{SEU}-3", f"{SEU}-12", f"{ND}-3", f"{ND}-15", f"{SU}-3"
ANY = partial(given, "indices", "i64")
FREE, POSITIVE, NEGATIVE = ANY((2, 3)), held([[0, 1, 2], [4, 3, 2]]), held([[0, 1, -2], [4, 3, 2]])
UNIQUE = held([[0, 1, 2], [4, -2, 2]])
TUPLES = held([[0, 1], [-1, 2], [3, -4]])
SUM: Any = {"reduction": "sum", "use_init_val": "true"}
COUNTED = f"Less Add Select {SEU}"
EVERY = "unique-indices non-negative-indices equal-indices full-indices"
_DROPPED: Any = (("reduction", "sum"), ("use_init_val", "false"))
_ZERO, _BOTH, _INDICES = held(0, name="zero"), given("both", "f32", (4, 5)), given("both", "i64", (3,))

SIGNS = {
    "may be negative, counted from the front": case(elements, FREE, to=SEU3, types=COUNTED),
    "positive": case(elements, POSITIVE, to=SEU3, types=SEU),
    "negative": case(elements, NEGATIVE, to=SEU3, types=COUNTED),
    "promised": case(elements, FREE, to=SEU3, assume="non-negative-indices", expected="non-negative-indices", types=SEU),
    "promises that nothing needs": case(elements, POSITIVE, to=SEU3, assume=EVERY),
    "a promise does not overrule the file": case(elements, NEGATIVE, to=SEU3, assume="non-negative-indices", types=COUNTED),
    "kept": case(elements, FREE, to=SEU3, keeps_negative=True, expected="negative-indices-kept", types=SEU),
    "kept as tuples": case(elements, NEGATIVE, to=ND3, keeps_negative=True, expected="negative-indices-kept"),
    "kept as slices": case(elements, held([[-1, 0]] * 4), shape=(4, 2), to=SU3, keeps_negative=True, expected="negative-indices-kept"),
    "kept, and never negative": case(elements, given("indices", "u8", (2, 3)), to=SEU3, keeps_negative=True),
    "a strict source": case(slices, ANY((3,)), (3, 5), to=ND3, types=f"Unsqueeze {ND}"),
    **{f"of {type}": case(elements, given("indices", type, (2, 3)), to=SEU3, types=SEU) for type in ("u8", "u16", "u32", "u64")},
    **{f"of {type}, widened before a size is added": case(elements, given("indices", type, (3, 2)), shape=(3, 2), data=(300, 2), axis=0, to=SEU3, types=f"Convert {COUNTED}") for type in ("i8", "i16")},
}  # fmt: skip

UNIQUENESS = {
    "unknown": case(elements, FREE, to=SEU3, expected="CVT105:unique indices:assume=\"unique-indices\"", **SUM),
    "promised": case(elements, FREE, to=SEU3, assume="unique-indices", expected="unique-indices", **SUM),
    "others are promised": case(elements, FREE, to=SEU3, assume="equal-indices non-negative-indices", expected="CVT105:unique-indices", **SUM),
    "repeated": case(elements, held([[0, 1, 2], [4, 2, -1]]), to=SEU3, expected="CVT106:unique indices", **SUM),
    "repeated and promised": case(elements, held([[0, 1, 2], [4, 2, -1]]), to=SEU3, assume="unique-indices", expected="CVT106:unique indices", **SUM),
    "more than positions": case(elements, ANY((4,)), shape=(4,), data=(3,), axis=0, to=ND3, expected="CVT106:4 indices for 3 positions", **SUM),
    "one index": case(elements, ANY((2, 1)), shape=(2, 1), to=SEU3, reduction="prod"),
    "one tuple": case(tuples, ANY((1, 2)), updates=(1,), to=ND3, reduction="max"),
    "a run of numbers": case(tuples, _counted, updates=(3, 5), to=ND3, reduction="sum"),
    # [-1, 3] is unique on 5 positions and repeats on 4.
    **{f"from the end of {size}": case(elements, held([-1, 3]), shape=(2,), data=(size,), axis=0, to=ND3, expected=expected, **SUM) for size, expected in ((5, ""), (4, "CVT106:unique"), ("?", "CVT105:unique"), ("4..5", "CVT105:unique"))},
    "on an unknown axis": case(elements, held([[0, 1], [0, 1]]), shape=(2, 2), axis=None, to=ND3, expected="CVT105:unique", **SUM),
    **{f"{word}, {keeps}": case(elements, UNIQUE, to=f"{SEU3} {ND3} {ND15}", reduction=word, use_init_val=keeps) for word in ("sum", "prod", "min", "max", "mean") for keeps in ("true", "false")},
    **{f"tuples, {word}": case(tuples, TUPLES, to=f"{ND3} {SEU3} {SU3}", reduction=word) for word in ("sum", "sub", "prod", "min", "max")},
    **{f"unknown tuples, {word}": case(tuples, ANY((3, 2)), to=f"{ND3} {SEU3} {SU3}", expected="CVT105:unique-indices", reduction=word) for word in ("sum", "sub", "prod", "min", "max")},
}  # fmt: skip

EQUALITY = {
    "repeated": case(elements, _repeated, shape=(4, 3), to=SU3),
    "repeated and converted": case(elements, _repeated_and_converted, shape=(4, 3), to=SU3),
    "repeated along the axis": case(elements, partial(_repeated, size=5), shape=(4, 5), axis=0, to=SU3, expected="CVT105:equal indices:assume=\"equal-indices\""),
    # Data may be longer when the model runs, and then the new node is illegal there.
    "an unknown dimension": case(elements, _repeated, shape=(4, 3), data=("?", 5), to=SU3, expected="CVT105:full indices are not proven:assume=\"full-indices\""),
    "an unknown dimension, promised": case(elements, _repeated, shape=(4, 3), data=("?", 5), to=SU3, assume="full-indices", expected="full-indices"),
    "an unknown rank": case(elements, ANY((4, 3)), shape=(4, 3), data=None, to=SU3, assume="equal-indices", expected="CVT105:full-indices"),
    "unknown": case(elements, ANY((4, 3)), shape=(4, 3), to=SU3, expected="CVT105:equal-indices"),
    "promised": case(elements, ANY((4, 3)), shape=(4, 3), to=SU3, assume="equal-indices", expected="equal-indices"),
    "promised, not unique": case(elements, ANY((4, 3)), shape=(4, 3), to=SU3, assume="equal-indices", expected="CVT105:unique-indices", reduction="sum"),
    "both promised": case(elements, ANY((4, 3)), shape=(4, 3), to=SU3, assume="equal-indices unique-indices", expected="equal-indices unique-indices", reduction="sum"),
    "constant": case(elements, held([[0, 2, -1]] * 4), shape=(4, 3), to=SU3),
    "constant, different": case(elements, held([[0, 2, 4]] * 3 + [[0, 2, 3]]), shape=(4, 3), to=SU3, expected="CVT106:indices differ along axis 0"),
    "a column": case(elements, ANY((3, 1)), shape=(3, 1), data=(4, 1), axis=0, to=SU3),
    "not all of data": case(elements, held([[0, 2, 4]] * 2), to=SU3, expected="CVT106:reach 2 of 4 positions on axis 0"),
    "an unknown axis may be the shorter one": case(elements, ANY((4, 3)), shape=(4, 3), axis=None, to=SU3, assume="equal-indices", expected="CVT105:full-indices"),
    "it may, and both are promised": case(elements, ANY((4, 3)), shape=(4, 3), axis=None, to=SU3, assume="equal-indices full-indices", expected="equal-indices full-indices"),
    "an unknown axis, all of data": case(elements, ANY((4, 5)), shape=(4, 5), axis=None, to=SU3, assume="equal-indices", expected="equal-indices"),
    "two shorter ones": case(elements, ANY((2, 3)), shape=(2, 3), axis=None, to=SU3, assume="equal-indices", expected="CVT106:reach 2 of 4 positions on axis 0"),
}  # fmt: skip

EDGES = {
    "indices longer than data, older": case(elements, ANY((2, 7)), shape=(2, 7), to=SEU3, expected="CVT108:SCT211:indices is [2, 7]:data [4, 5]"),
    "indices longer than data": case(elements, ANY((2, 7)), shape=(2, 7), to=ND15),
    "more indices than positions, older": case(slices, ANY((6,)), (6, 5), to=SEU3, expected="CVT108:SCT211"),
    "more indices than positions": case(slices, ANY((6,)), (6, 5), to=f"{SEU12} {ND15} {ND3}"),
    **{f"one element as {shape}": case(tuples, ANY((2,)), updates=shape, to=f"{SEU12} {SEU3} {ND3} {SU3}") for shape in ((), (1,), (1, 1))},
    **{f"one element as {shape} of the older one": case(tuples, ANY((2,)), updates=shape, opset="opset14", to=ND15) for shape in ((), (1,), (1, 1))},
    **{f"one element joined as {shape}": case(tuples, ANY((2,)), updates=shape, to=f"{SEU12} {SEU3} {ND3} {SU3}", reduction="sum") for shape in ((), (1,))},
    **{f"all of data, {count}": case(tuples, ANY((*count, 0)), updates=(*count, 4, 5), to=f"{SEU12} {SEU3} {ND3} {SU3}") for count in ((), (1,), (3,), (0,), (2, 2))},
    **{f"all of data, {word}": case(tuples, ANY((1, 0)), updates=(1, 4, 5), to=f"{SEU12} {SEU3} {ND3} {SU3}", reduction=word) for word in ("sum", "sub", "max")},
    **{f"single elements, {word}": case(tuples, TUPLES, to=f"{SEU12} {SEU3} {ND3} {SU3}", reduction=word) for word in ("none", "sub")},
    "data and updates are one": case(shared, SEU, _BOTH, ANY((4, 5)), _BOTH, to=ND15, **SUM),
    "data and indices are one": case(shared, SEU, _INDICES, _INDICES, _INDICES, to=f"{SEU3} {ND15} {ND3}"),
    "data and indices of slices are one": case(shared, SU, _INDICES, _INDICES, _INDICES, to=f"{SEU12} {ND15}"),
    "axis and indices are one": case(shared, SU, given("data", "f32", (4, 5)), _ZERO, given("updates", "f32", (5,)), to=f"{SEU12} {ND15} {SU3}"),
}  # fmt: skip

REDUCTIONS = {
    **{f"difference of {type}": case(tuples, ANY((7, 2)), updates=(7,), type=type, reduction="sub", to=SEU12, has="FloorMod" if type in {"u16", "u8", "i8", "boolean"} else "-FloorMod") for type in ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u32", "u16", "u8", "boolean")},
    "difference of u64": case(tuples, ANY((7, 2)), updates=(7,), type="u64", reduction="sub", to=SEU12, expected="CVT105:unique-indices"),
    "difference of u64, promised": case(tuples, ANY((7, 2)), updates=(7,), type="u64", reduction="sub", to=SEU12, assume="unique-indices", expected="unique-indices", has="Subtract"),
    **{f"mean of {type}, {keeps}": case(elements, ANY((2, 9)), shape=(2, 9), type=type, reduction="mean", use_init_val=keeps, to=ND15, scatters=2 if keeps == "true" else 3) for type in ("f64", "f32", "f16", "bf16", "i32", "i16", "i8", "u32", "u8") for keeps in ("true", "false")},
    "mean of i64": case(elements, FREE, type="i64", reduction="mean", to=ND15, expected="CVT105:unique-indices"),
    "mean of i64, promised": case(elements, FREE, type="i64", reduction="mean", to=ND15, assume="unique-indices", expected="unique-indices"),
    **{f"mean of two {type}": case(elements, POSITIVE, type=type, reduction="mean", to=SEU3) for type in ("f32", "i64", "u64", "i8", "u8")},
    **{f"{word} of {type} without old values": case(elements, FREE, type=type, reduction=word, use_init_val="false", to=ND15, scatters=2) for word in ("sum", "prod", "min", "max") for type in ("f32", "f16", "i32", "u8", "boolean")},
    "none without old values": case(elements, FREE, reduction="none", use_init_val="false", to=ND15, scatters=1),
    **{f"dropped {name}": case(elements, FREE, opset="opset3", to=SEU12, expected="CVT101:SCT104", **{name: word}) for name, word in _DROPPED},
}  # fmt: skip

TYPES = {
    "boolean": case(elements, FREE, type="boolean", to=ND15),
    "boolean, older": case(elements, FREE, type="boolean", to=SEU3, expected="CVT108:SCT214:boolean"),
    "string": case(elements, FREE, type="string", to=f"{ND15} {SEU3}", expected="CVT108:SCT201:string"),
    "indices of u8": case(
        slices, given("indices", "u8", (3,)), (3, 5), to=ND15, types=f"Convert Unsqueeze {ND}"
    ),
    "indices of i32": case(slices, given("indices", "i32", (3,)), (3, 5), to=ND15, types=f"Unsqueeze {ND}"),
}

GROUPS = {"signs": SIGNS, "unique": UNIQUENESS, "equal": EQUALITY, "edges": EDGES, "reductions": REDUCTIONS, "types": TYPES}  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{group}: {name}")
        for group, rows in GROUPS.items()
        for name, row in rows.items()
    ],
)
def test_what_has_to_hold(row: Case, tmp_path: Path) -> None:
    path = row.make(tmp_path, *row.given, **row.attributes)
    for target in row.to.split():
        found = convert(path, target, assume=row.assume.split(), keep_negative_indices=row.keeps_negative)
        if row.expected.startswith("CVT"):
            code, *words = row.expected.split(":")
            assert found.converted == ()
            (refused,) = found.refused
            assert refused.code == code, refused.message
            assert all(word in refused.message for word in words), refused.message
            continue
        assert [one.message for one in found.refused] == []
        (one,), (verified,) = found.converted, found.verified
        assert one.assumptions == tuple(row.expected.split())
        assert verified.cases == 8
        (patch,) = found.patches
        types = [new.type for new in patch.fragment.news]
        assert not row.types or types == row.types.split()
        assert not row.has or (row.has.removeprefix("-") in types) != row.has.startswith("-")
        assert not row.scatters or types.count(ND) == row.scatters


def test_words_keep_their_meaning_in_any_case(tmp_path: Path) -> None:
    path = elements(tmp_path, FREE, reduction="SUM", use_init_val="TRUE")
    (patch,) = convert(path, ND15).patches
    assert patch.fragment.result.attributes == {"reduction": "sum"}


@pytest.mark.parametrize("rank", [2, None])
def test_nodes_that_look_alike_share_a_form_and_others_do_not(rank: int | None, tmp_path: Path) -> None:
    """Of an unknown rank, they do not share what their indices prove, either."""
    ir = IrText()
    width = (5,) if rank else ()
    data, updates = (
        ir.parameter("data", "f32", (4, *width) if rank else None),
        ir.parameter("updates", "f32", (2, *width)),
    )
    axis = ir.const("axis", "i64", 0)
    for place, values in enumerate([[0, 1], [2, 3], [1, 1]]):
        indices = ir.const(
            f"indices{place}",
            "i64",
            np.broadcast_to(np.reshape(values, (2, *(1 for _ in width))), (2, *width)),
        )
        ir.add(
            f"scatter{place}",
            SEU,
            "opset12",
            [data, indices, updates, axis],
            [("f32", (4, *width) if rank else ())],
            SUM,
        )
    found = convert(ir.write(tmp_path), SEU3)
    assert [one.name for one in found.converted] == ["scatter0", "scatter1"]
    if rank:
        assert found.patches[0].fragment is found.patches[1].fragment
    assert [(one.name, one.code) for one in found.refused] == [("scatter2", "CVT106")]
