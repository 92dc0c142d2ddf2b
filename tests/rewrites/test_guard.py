"""`--guard`: runtime indices that are limited to their range, or counted from the end."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import parser

from ir_scatter import UsageError, convert, evaluate_model, read, runners, validate
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.scatter_node import scatter_nodes
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.runners.base import Runner, Status
from tests.rewrites.ir_models import given, held, one_onnx, one_scatter
from tests.scale import thinned

Feeds = dict[str, Array]


class Form(NamedTuple):
    """A model of one node, the indices that it is given, and what is legal there.

    Attributes:
        sizes: that indices count on, one or one for each column.
        lows: whether negative indices count from the end by the text, or as runtimes take them.
        name: of the input of the indices.
    """

    path: str
    feeds: Feeds
    sizes: Any
    is_wrapping: bool
    name: str = "indices"

    def clamped(self, indices: Array) -> Array:
        wide = np.asarray(self.sizes, np.int64)
        low = -wide if self.is_wrapping else 0 * wide
        return np.minimum(np.maximum(indices.astype(np.int64), low), wide - 1).astype(indices.dtype)

    def wrapped(self, indices: Array) -> Array:
        wide = indices.astype(np.int64)
        return np.where(wide < 0, wide + self.sizes, wide).astype(indices.dtype)


def feeds(data: tuple[int, ...], updates: tuple[int, ...], indices: Any, type: str = "i64") -> Feeds:
    return {
        "data": np.arange(np.prod(data), dtype=np.float32).reshape(data),
        "updates": 100 + np.arange(np.prod(updates), dtype=np.float32).reshape(updates),
        "indices": np.array(indices, dtype(ELEMENT_TYPES[type])),
    }


def ir(
    folder: Path,
    type: str,
    opset: str,
    indices: Any,
    *,
    known: str = "static",
    index_type: str = "i64",
    axis: int | None = None,
    data: tuple[int, ...] = (5, 7),
    updates: tuple[int, ...] = (2, 7),
    is_wrapping: bool = False,
    sizes: Any = 5,
    **attributes: str,
) -> Form:
    """Write an IR; of its shapes all is known, the rank only, or nothing; the axis may be an input, too."""

    def shown(shape: tuple[int, ...]) -> tuple[int, ...] | None:
        return {"dynamic": (-1,) * len(shape), "ranks": None}.get(known, shape)

    fed = feeds(data, updates, indices, index_type)
    place = None
    if axis is not None and known.endswith("axis"):
        place = given("axis", "i64", ())
        fed["axis"] = np.array(axis)
    elif axis is not None:
        place = held(axis, name="axis")
    sources = (
        given("data", "f32", shown(data)),
        given("indices", index_type, shown(fed["indices"].shape)),
        given("updates", "f32", shown(updates)),
    )
    path = one_scatter(folder, type, opset, *sources, place, attributes)
    return Form(path, fed, sizes, is_wrapping)


SU = partial(ir, type="ScatterUpdate", opset="opset3")
SEU3 = partial(ir, type="ScatterElementsUpdate", opset="opset3", updates=(2, 3))
SEU12 = partial(ir, type="ScatterElementsUpdate", opset="opset12", updates=(2, 3), is_wrapping=True)
ND3 = partial(ir, type="ScatterNDUpdate", opset="opset4", updates=(2,), sizes=(5, 7))
ND15 = partial(ND3, opset="opset15", is_wrapping=True)


def of_onnx(
    folder: Path,
    type: str,
    opset: int,
    indices: Any,
    *,
    data: Any = (5, 7),
    updates: Any = (2, 3),
    **more: Any,
) -> Form:
    sizes, is_static = more.pop("sizes", 5), more.pop("is_static", True)
    fed = feeds(data, updates, indices)
    shapes = [array.shape if is_static else tuple("abcdefghi"[: array.ndim]) for array in fed.values()]
    path = folder / "model.onnx"
    names = dict(zip(fed, shapes, strict=True))
    path.write_bytes(one_onnx(type, opset, names["data"], names["indices"], names["updates"], **more))
    return Form(str(path), fed, sizes, type != "TensorScatter")


ELEMENTS = [[-5, 0, 4], [3, 2, -1]]
FROM_FRONT = [[1, 0, 4], [3, 2, 0]]
FORMS = {
    "slices": partial(SU, indices=[1, 4], axis=0),
    "slices, axis 1": partial(SU, indices=[1, 6], axis=-1, updates=(5, 2), sizes=7),
    "slices, one index": partial(SU, indices=3, axis=0, updates=(7,)),
    "slices, sizes at run time": partial(SU, indices=[1, 4], axis=0, known="dynamic"),
    "slices, axis at run time": partial(SU, indices=[1, 6], axis=1, updates=(5, 2), sizes=7, known="static axis"),
    "slices, rank at run time": partial(SU, indices=[1, 4], axis=-2, known="ranks"),
    "slices, i32": partial(SU, indices=[1, 4], axis=0, index_type="i32"),
    "slices, i32, sizes at run time": partial(SU, indices=[1, 4], axis=0, index_type="i32", known="dynamic"),
    "slices, i8": partial(SU, indices=[1, 4], axis=0, index_type="i8"),
    "slices, u8": partial(SU, indices=[1, 4], axis=0, index_type="u8"),
    "slices, u32": partial(SU, indices=[1, 4], axis=0, index_type="u32"),
    "elements 3": partial(SEU3, indices=FROM_FRONT, axis=0),
    "elements 3, sizes at run time": partial(SEU3, indices=FROM_FRONT, axis=0, known="dynamic"),
    "elements 12": partial(SEU12, indices=ELEMENTS, axis=0),
    "elements 12, sum, sizes at run time": partial(
        SEU12, indices=ELEMENTS, axis=0, known="dynamic", reduction="sum", use_init_val="false"
    ),
    "tuples 3": partial(ND3, indices=[[0, 6], [4, 2]]),
    "tuples 3, sizes at run time": partial(ND3, indices=[[0, 6], [4, 2]], known="dynamic"),
    "tuples 3, one coordinate": partial(ND3, indices=[[0], [4]], updates=(2, 7), sizes=(5,)),
    "tuples 15": partial(ND15, indices=[[-5, 6], [4, -7]]),
    "tuples 15, i32, sizes at run time": partial(
        ND15, indices=[[-5, 6], [4, -7]], index_type="i32", known="dynamic", reduction="sum"
    ),
    "ONNX elements 11": partial(of_onnx, type="ScatterElements", opset=11, indices=ELEMENTS),
    "ONNX elements 18": partial(of_onnx, type="ScatterElements", opset=18, indices=ELEMENTS, reduction="add"),
    "ONNX elements 18, sizes at run time": partial(
        of_onnx, type="ScatterElements", opset=18, indices=ELEMENTS, is_static=False
    ),
    "ONNX Scatter 9, sizes at run time": partial(
        of_onnx, type="Scatter", opset=9, indices=ELEMENTS, is_static=False
    ),
    "ONNX tuples 13": partial(
        of_onnx, type="ScatterND", opset=13, indices=[[-5, 6], [4, -7]], updates=(2,), sizes=(5, 7)
    ),
    "ONNX tuples 11, sizes at run time": partial(
        of_onnx, type="ScatterND", opset=11, indices=[[0, 6], [4, -7]], updates=(2,), sizes=(5, 7), is_static=False
    ),
    "ONNX sequence": partial(
        of_onnx, type="TensorScatter", opset=24, indices=[0, 3], data=(2, 5, 3), updates=(2, 2, 3), sizes=4
    ),
    "ONNX sequence, sizes at run time": partial(
        of_onnx, type="TensorScatter", opset=24, indices=[0, 3], data=(2, 5, 3), updates=(2, 2, 3), sizes=4,
        is_static=False,
    ),
}  # fmt: skip
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
half_of_the_forms, other_half = (
    pytest.mark.parametrize(
        "form",
        [
            pytest.param(form, id=name, marks=[] if number % 2 == half else [pytest.mark.long])
            for number, (name, form) in enumerate(FORMS.items())
        ],
    )
    for half in range(2)
)
"""In the default profile; the long one has all forms."""


DROPPED = {
    **FORMS,
    "slices, 0-D data row": partial(SU, indices=[0], axis=0, data=(3,), updates=(1,), sizes=3),
    "slices, last axis unknown rank": partial(
        SU, indices=[1, 6], axis=-1, updates=(5, 2), sizes=7, known="ranks"
    ),
    "elements 12, mean": partial(SEU12, indices=ELEMENTS, axis=0, reduction="mean"),
    "elements 12, mean without old values": partial(
        SEU12, indices=ELEMENTS, axis=0, reduction="mean", use_init_val="false"
    ),
    "elements 12, min, sizes at run time": partial(
        SEU12, indices=ELEMENTS, axis=0, known="dynamic", reduction="min"
    ),
    "elements 12, prod, last axis": partial(
        SEU12, indices=[[-7, 0, 6], [3, 2, -1]], axis=-1, sizes=7, reduction="prod", use_init_val="false"
    ),
    "tuples 15, sub": partial(ND15, indices=[[-5, 6], [4, -7]], reduction="sub"),
    "tuples 15, max, one coordinate": partial(
        ND15, indices=[[0], [4]], updates=(2, 7), sizes=(5,), reduction="max", known="dynamic"
    ),
    "ONNX tuples 18, mul, sizes at run time": partial(
        of_onnx, type="ScatterND", opset=18, indices=[[0, 6], [4, -7]], updates=(2,), sizes=(5, 7),
        is_static=False, reduction="mul",
    ),
}  # fmt: skip
OPSET_9 = "ONNX Scatter 9, sizes at run time"
AT_RUN_TIME = "slices, axis at run time"


def _repeat(form: Form, indices: Array) -> bool:
    """Tell whether two indices name one target; those of elements only do in the same column."""
    if np.shape(form.sizes) == () and indices.ndim == 2:
        return any(len({*column}) < len(column) for column in indices.T.tolist())
    rows = indices.reshape(-1, np.size(form.sizes))
    return len(np.unique(rows, axis=0)) < len(rows)


def guarded(form: Form, guard: str, stem: str = "guarded", **options: Any) -> Path:
    found, after = convert(form.path, guard=guard, **options), Path(form.path).with_stem(stem)
    assert [one.message for one in found.refused] == []
    found.write(after, overwrite=True)
    return after


def computed(path: Path | str, feeds: Feeds) -> Array:
    (found,) = evaluate_model(path, feeds).values()
    return np.asarray(found)


def with_indices(form: Form, indices: Array) -> Feeds:
    return {**form.feeds, form.name: indices}


def out_of_range(form: Form) -> Iterator[Array]:
    """Yield indices that the type of indices holds, and no dimension."""
    indices = form.feeds[form.name]
    limits = np.iinfo(indices.dtype)
    for shift in (1, 3, 100):
        for sign in (1, -1):
            shifted = np.clip(indices.astype(np.int64) + sign * shift, max(limits.min, -(2**31)), limits.max)
            yield shifted.astype(indices.dtype)


@other_half
@pytest.mark.parametrize("guard", ["clamp", "wrap"])
def test_legal_indices_mean_what_they_meant(form: Any, guard: str, tmp_path: Path) -> None:
    made = form(folder=tmp_path)
    if guard == "wrap" and made.feeds["indices"].dtype.kind == "u":
        assert convert(made.path, guard=guard).is_empty
        return
    after = guarded(made, guard)
    np.testing.assert_array_equal(computed(after, made.feeds), computed(made.path, made.feeds))
    model = read(after)
    assert not [one for one in validate(model) if one.severity == "error"]
    (name,) = [one.node.name for one in scatter_nodes(model, Facts())]
    assert name in {"scatter", "node"}


@half_of_the_forms
def test_indices_out_of_range_are_limited(form: Any, tmp_path: Path) -> None:
    made = form(folder=tmp_path)
    after = guarded(made, "clamp")
    for indices in out_of_range(made):
        limited = made.clamped(indices)
        if made.is_wrapping:
            limited = made.wrapped(limited)
        if "TensorScatter" not in str(form) and _repeat(made, limited):
            continue  # which of two updates stays, no document says
        expected = computed(made.path, with_indices(made, limited))
        np.testing.assert_array_equal(computed(after, with_indices(made, indices)), expected)


@other_half
def test_negative_indices_count_from_the_end(form: Any, tmp_path: Path) -> None:
    made = form(folder=tmp_path)
    indices = made.feeds["indices"]
    if indices.dtype.kind == "u":
        return
    after = guarded(made, "wrap")
    sizes = np.asarray(made.sizes)
    if made.name == "indices" and "TensorScatter" in str(form):
        sizes = np.asarray(5)
    front = np.where(indices < 0, indices + sizes, indices)
    expected = computed(made.path, with_indices(made, front.astype(indices.dtype)))
    negative = (front - sizes).astype(indices.dtype)
    np.testing.assert_array_equal(computed(after, with_indices(made, negative)), expected)


def with_drops(form: Form, made: Any, indices: Array) -> Array:
    """Return what remains if updates with illegal indices are left out, one update after the other.

    A loop of its own: what is legal by the version, where each update goes, and what meets there.
    """
    keywords = made.keywords
    type, more = keywords["type"] if "type" in keywords else made.func.keywords["type"], keywords
    data, updates = form.feeds["data"], form.feeds["updates"]
    is_counted = not (
        type == "ScatterUpdate" or type == "TensorScatter" or "opset3" in str(made) or "opset4" in str(made)
    )
    axis = (more.get("axis") or (1 if type == "TensorScatter" else 0)) % data.ndim

    def place(number: int, size: int) -> int | None:
        low = -size if is_counted else 0
        return number % size if low <= number < size else None

    hits: dict[tuple[int, ...], list[float]] = {}
    for at in np.ndindex(updates.shape):
        coordinates: list[int | None] = list(at)
        if type == "TensorScatter":
            start, run = int(indices[at[0]]), updates.shape[axis]
            coordinates[axis] = start + at[axis] if 0 <= start <= data.shape[axis] - run else None
        elif "ND" in type:
            depth = indices.shape[-1]
            index = indices[at[: indices.ndim - 1]]
            sizes = data.shape[:depth]
            front = [place(int(one), size) for one, size in zip(index, sizes, strict=True)]
            coordinates = [*front, *at[indices.ndim - 1 :]]
        elif type == "ScatterUpdate":
            number = int(indices[at[axis : axis + indices.ndim]])
            coordinates = [*at[:axis], place(number, data.shape[axis]), *at[axis + indices.ndim :]]
        else:
            coordinates[axis] = place(int(indices[at]), data.shape[axis])
        if None not in coordinates:
            hits.setdefault(tuple(map(int, coordinates)), []).append(float(updates[at]))  # type: ignore[arg-type]
    found, word = data.astype(np.float64), more.get("reduction", "none")
    joined: dict[str, Any] = {
        "none": lambda values: values[-1], "sum": sum, "add": sum, "min": min, "max": max,
        "mean": np.mean, "prod": np.prod, "mul": np.prod, "sub": lambda values: values[0] - sum(values[1:]),
    }  # fmt: skip
    for target, values in hits.items():
        is_new = word == "none" or more.get("use_init_val") == "false"
        found[target] = joined[word](values if is_new else [found[target], *values])
    return found.astype(data.dtype)


def some_out_of_range(form: Form) -> Iterator[Array]:
    """Yield indices of which some, none or all are out of range, so that no two updates meet."""
    indices = form.feeds[form.name]
    limits, sizes = np.iinfo(indices.dtype), np.broadcast_to(form.sizes, indices.shape)
    yield indices
    for number in range(6):
        wide = indices.astype(np.int64)
        beyond = sizes + (number if number % 2 else 100 * number)
        bad = np.where(np.arange(wide.size).reshape(wide.shape) % 2, beyond, -1 - beyond)
        is_bad = (np.arange(wide.size).reshape(wide.shape) + number) % 3 < (3 if number == 5 else 1)
        yield np.clip(np.where(is_bad, bad, wide), limits.min, limits.max).astype(indices.dtype)


@pytest.mark.parametrize("name", thinned([name for name in DROPPED if name not in {OPSET_9, AT_RUN_TIME}], 2))
def test_updates_out_of_range_are_dropped(name: str, tmp_path: Path) -> None:
    made = DROPPED[name](folder=tmp_path)
    after = guarded(made, "drop")
    for indices in some_out_of_range(made):
        expected = with_drops(made, DROPPED[name], indices)
        np.testing.assert_allclose(computed(after, with_indices(made, indices)), expected, 1e-6)
    assert convert(after, guard="drop").is_empty
    assert convert(after, guard="clamp").is_empty
    assert not [one for one in validate(after) if one.severity == "error"]


@half_of_the_forms
@pytest.mark.parametrize("guard", ["clamp", "wrap"])
def test_twice_changes_nothing(form: Any, guard: str, tmp_path: Path) -> None:
    made = form(folder=tmp_path)
    if guard == "wrap" and made.feeds["indices"].dtype.kind == "u":
        return
    after = guarded(made, guard)
    assert convert(after, guard=guard).is_empty
    assert guard == "wrap" or convert(after, guard="wrap").is_empty


OTHERS = [
    "ScatterUpdate", "ScatterElementsUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-3",
    "ScatterNDUpdate-15", "ScatterElements", "ScatterND",
]  # fmt: skip


@pytest.mark.long
@every_form
@pytest.mark.parametrize("guard", ["clamp", "wrap", "drop"])
@pytest.mark.parametrize("to", OTHERS)
def test_twice_to_another_operator_changes_nothing(form: Any, guard: str, to: str, tmp_path: Path) -> None:
    """However the new form hides what guards its indices; both ways, and wrapping what is limited."""
    made = form(folder=tmp_path)
    if made.path.endswith("onnx") == ("Update" in to):
        return
    options: dict[str, Any] = {"to": to, "assume": ["unique-indices"]}
    found, after = convert(made.path, guard=guard, **options), Path(made.path).with_stem("guarded")
    if found.refused or not found.converted:
        return
    found.write(after)
    assert convert(after, guard=guard, verify=0, **options).is_empty
    assert convert(after, guard=guard, verify=0).is_empty
    assert guard == "wrap" or convert(after, guard="wrap", verify=0).is_empty


ON_DEVICES_DROPPED = [
    "slices", "slices, i32, sizes at run time", "elements 12", "elements 12, mean", "tuples 15",
    "tuples 3, sizes at run time", "ONNX elements 11", "ONNX tuples 18, mul, sizes at run time",
]  # fmt: skip


@pytest.fixture(
    scope="module", params=["CPU", pytest.param("openvino:GPU@cpu", marks=pytest.mark.long), "onnxruntime"]
)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    found = runners.find(request.param)
    if not found.availability().is_available:
        pytest.skip(f"{request.param} does not run here")
    yield found
    found.close()


ON_DEVICES = [
    "slices", "slices, i32, sizes at run time", "elements 12", "tuples 15", "tuples 3, sizes at run time",
    "ONNX elements 11", "ONNX Scatter 9, sizes at run time", "ONNX tuples 13",
]  # fmt: skip


@pytest.mark.parametrize("name", thinned(ON_DEVICES, 3))
def test_devices_compute_what_is_limited(name: str, runner: Runner, tmp_path: Path) -> None:
    if name.startswith("ONNX") == ("openvino" in runner.name):
        return
    made = FORMS[name](folder=tmp_path)
    after = guarded(made, "clamp")
    for indices in (made.feeds["indices"], *out_of_range(made)):
        fed = with_indices(made, indices)
        found = runner.run(after, fed)
        assert found.status is Status.OK, found.message
        (got,) = found.outputs.values()
        limited = made.clamped(indices)
        if not _repeat(made, made.wrapped(limited) if made.is_wrapping else limited):
            np.testing.assert_array_equal(got, computed(after, fed))


@pytest.mark.parametrize("name", thinned(ON_DEVICES_DROPPED, 3))
def test_devices_drop_what_is_out_of_range(name: str, runner: Runner, tmp_path: Path) -> None:
    if name.startswith("ONNX") == ("openvino" in runner.name):
        return
    made = DROPPED[name](folder=tmp_path)
    after = guarded(made, "drop")
    for indices in some_out_of_range(made):
        outcome = runner.run(after, with_indices(made, indices))
        assert outcome.status is Status.OK, outcome.message
        (found,) = outcome.outputs.values()
        np.testing.assert_allclose(found, with_drops(made, DROPPED[name], indices), 1e-6)


def test_constants_that_are_legal_need_nothing(tmp_path: Path) -> None:
    sources = given("data", "f32", (5,)), held([0, 4]), given("updates", "f32", (2,)), held(0, name="axis")
    path = one_scatter(tmp_path, "ScatterUpdate", "opset3", *sources)
    for guard in ("clamp", "wrap"):
        assert convert(path, guard=guard).is_empty


def test_constants_that_are_illegal_are_guarded(tmp_path: Path) -> None:
    sources = given("data", "f32", (5,)), held([0, -1]), given("updates", "f32", (2,)), held(0, name="axis")
    path = one_scatter(tmp_path, "ScatterUpdate", "opset3", *sources)
    assert [one.code for one in validate(path)] == ["SCT303"]
    (found,) = convert(path, guard="wrap").converted
    assert found.rewrites == ("indices-wrapped",)
    convert(path, guard="wrap").write(after := tmp_path / "after.xml")
    assert validate(after) == []
    fed = {"data": np.zeros(5, np.float32), "updates": np.array([1, 2], np.float32)}
    np.testing.assert_array_equal(computed(after, fed), [1, 0, 0, 0, 2])


def test_elements_out_of_range_are_limited_by_the_version(tmp_path: Path) -> None:
    """Version 3 forbids negative indices, so that -1 is limited to 0; version 12 counts it from the end."""
    for form, expected in ((SEU3, 0), (SEU12, 4)):
        made = form(folder=tmp_path, indices=[[1, 0, 4]], axis=0, updates=(1, 3))
        after = guarded(made, "clamp")
        found = computed(after, with_indices(made, np.array([[-1, 0, 4]])))
        assert found[expected, 0] == 100


ONE_MORE = {"u32": 2**31 + 1, "u64": 2**63 + 5}


@pytest.mark.parametrize("type", ONE_MORE)
@pytest.mark.parametrize("guard", ["clamp", "drop"])
def test_wide_indices_without_a_sign(type: str, guard: str, tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=[1, 2], axis=0, index_type=type)
    indices = made.feeds["indices"].copy()
    indices[0] = ONE_MORE[type]
    found = computed(guarded(made, guard), with_indices(made, indices))
    expected = made.feeds["data"].copy()
    expected[2] = made.feeds["updates"][1]
    if guard == "clamp":
        expected[4] = made.feeds["updates"][0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.openvino
@pytest.mark.parametrize("type", ["i64", *ONE_MORE])
@pytest.mark.parametrize("guard", ["clamp", "drop"])
def test_openvino_writes_nowhere_else(type: str, guard: str, tmp_path: Path) -> None:
    """It computes wide numbers in 32 bits: where they come out is not what is documented, but in range."""
    pytest.importorskip("openvino")
    made = SU(folder=tmp_path, indices=[1, 2], axis=0, index_type=type)
    after, runner = guarded(made, guard), runners.find("CPU")
    for number in (2**31 + 1, 2**32 - 1, 2**40 + 1, -(2**33) - 3):
        if number < 0 and type != "i64":
            continue
        indices = made.feeds["indices"].astype(np.int64)
        indices[0] = min(number, np.iinfo(made.feeds["indices"].dtype).max)
        outcome = runner.run(after, with_indices(made, indices.astype(made.feeds["indices"].dtype)))
        assert outcome.status is Status.OK, outcome.message
        (found,) = outcome.outputs.values()
        changed = found != made.feeds["data"]
        assert changed.any(1).sum() <= 2
    runner.close()


def test_indices_beyond_32_bits_are_noted(tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=[1, 4], axis=0)
    (warning,) = convert(made.path, guard="clamp").warnings
    assert warning.code == "CVT117"
    assert warning.message == "indices are i64, and OpenVINO's CPU and GPU plugins compute them in 32 bits"
    assert not convert(
        SU(folder=tmp_path, indices=[1, 4], axis=0, index_type="i32").path, guard="clamp"
    ).warnings
    assert not convert(of_onnx(tmp_path, "ScatterElements", 18, ELEMENTS).path, guard="clamp").warnings


NEGATIVE = {
    "position": "p = ArgMax<axis=0, keepdims=0>(d)\n i = Sub(p, five)",
    "clipped": "m = Neg(five)\n e = Neg(one)\n i = Clip(g, m, e)",
    "counted": "r = Range(zero, five, one)\n s = Slice(r, start, stop)\n i = Sub(s, five)",
    "constant": "e = Neg(five)\n i = Reshape(e, last)",
}


@pytest.mark.onnxruntime
@pytest.mark.parametrize("lines", NEGATIVE.values(), ids=NEGATIVE)
def test_what_is_proven_to_be_negative_is_wrapped(lines: str, tmp_path: Path) -> None:
    """It is legal, and devices may not count from the end: constants and what is in range are no exception."""
    path = of_text(tmp_path, lines)
    assert convert(path, guard="clamp").is_empty
    (one,) = convert(path, guard="wrap").converted
    assert one.rewrites == ("indices-wrapped",)
    convert(path, guard="wrap").write(after := tmp_path / "after.onnx")
    model = read(after)
    (scatter,) = scatter_nodes(model, Facts(1 << 20, model))
    assert scatter.indices is not None
    (bounds,) = bounds_of(scatter.facts, scatter.indices.value, are_legal=True)
    assert bounds.low >= 0
    assert convert(after, guard="wrap").is_empty
    pytest.importorskip("onnxruntime")
    data = np.array([[0], [3], [9], [1], [2]], np.float32)
    fed = {"d": data, "g": np.array([-3]), "u": np.full((1, 1), 7, np.float32)}
    runner = runners.find("onnxruntime")
    before, now = [runner.run(str(one), fed) for one in (path, after)]
    runner.close()
    assert (before.status, now.status) == (Status.OK, Status.OK), (before.message, now.message)
    np.testing.assert_array_equal(now.outputs["o"], before.outputs["o"])


SENTINEL = """
    <ir_version: 8, opset_import: ["" : 18]>
    graph (float[5, 2] d, float[3, 2] u) => (float[5, 2] o)
    <int64[3, 1] i = {0, 5, 3}>
    { o = ScatterND<reduction = "add">(d, i, u) }"""


def test_a_constant_that_means_nothing_is_dropped_not_limited(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(SENTINEL), path := tmp_path / "model.onnx")
    (finding,) = validate(path)
    assert finding.help.endswith('if 5 means that nothing is written, convert it with guard="drop"')
    (refused,) = convert(path, guard="clamp").refused
    assert refused.code == "CVT116"
    assert refused.message == (
        "indices[1, 0] is 5, expected -5 to 4 in ScatterND-18; "
        'guard="clamp" would move its update to another position, guard="drop" drops its update'
    )
    convert(path, guard="drop").write(after := tmp_path / "after.onnx")
    assert validate(after) == []
    fed = {"d": np.ones((5, 2), np.float32), "u": np.arange(6, dtype=np.float32).reshape(3, 2)}
    np.testing.assert_array_equal(computed(after, fed), [[1, 2], [1, 1], [1, 1], [5, 6], [1, 1]])
    assert convert(after, guard="drop").is_empty


@pytest.mark.parametrize(
    ("number", "guard", "way"),
    [
        (-1, "clamp", 'guard="wrap" counts it from the end, guard="drop" drops its update'),
        (
            7,
            "clamp",
            'guard="clamp" would move its update to another position, guard="drop" drops its update',
        ),
        (-9, "wrap", 'guard="wrap" would leave it illegal, guard="drop" drops its update'),
    ],
)
@pytest.mark.parametrize(
    "version", ["ScatterUpdate opset3", "ScatterElementsUpdate opset3", "ScatterNDUpdate opset4"]
)
def test_illegal_constants_of_version_3(
    version: str, number: int, guard: str, way: str, tmp_path: Path
) -> None:
    is_tuples = "ND" in version
    indices = held([[0], [number]]) if is_tuples else held([0, number])
    axis = None if is_tuples else held(0, name="axis")
    sources = given("data", "f32", (5,)), indices, given("updates", "f32", (2,)), axis
    type, opset = version.split()
    path = one_scatter(tmp_path, type, opset, *sources)
    (refused,) = convert(path, guard=guard).refused
    assert (refused.code, refused.message.endswith(way)) == ("CVT116", True), refused.message
    convert(path, guard="drop").write(after := tmp_path / "after.xml")
    fed = {"data": np.zeros(5, np.float32), "updates": np.array([1, 2], np.float32)}
    np.testing.assert_array_equal(computed(after, fed), [1, 0, 0, 0, 0])


def test_what_is_proven_to_be_out_of_range_is_not_clamped(tmp_path: Path) -> None:
    path = of_text(tmp_path, "i = Clip(g, six, seven)")
    (refused,) = convert(path, guard="clamp").refused
    assert refused.code == "CVT116"
    assert refused.message.startswith("indices are at least 6, expected -5 to 4 in ScatterND-18")
    assert not convert(path, guard="drop").refused


@pytest.mark.parametrize("size", [0, 5])
def test_data_without_rows_keeps_none(size: int, tmp_path: Path) -> None:
    """Nothing is in range of nothing, and what is dropped needs no range."""
    made = SU(folder=tmp_path, indices=[1, 9], axis=0, data=(size, 7), known="dynamic")
    expected = made.feeds["data"].copy()
    if size:
        expected[1] = made.feeds["updates"][0]
    np.testing.assert_array_equal(computed(guarded(made, "drop"), made.feeds), expected)


def test_further_coordinates_of_size_0_are_refused(tmp_path: Path) -> None:
    made = ND15(folder=tmp_path, indices=[[0, 0], [1, 1]], data=(5, 0))
    (refused,) = convert(made.path, guard="drop").refused
    assert refused.code == "CVT114"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (AT_RUN_TIME, "the axis is known only when the model runs"),
        (OPSET_9, "opset 9 has no Slice with inputs; move to opset 10 before"),
    ],
)
def test_where_no_row_can_be_added_nothing_is_dropped(name: str, why: str, tmp_path: Path) -> None:
    made = DROPPED[name](folder=tmp_path)
    (refused,) = convert(made.path, guard="drop").refused
    assert refused.code == "CVT112"
    assert refused.message == f"no row can be added for dropped updates: {why}"


@pytest.mark.parametrize("reduction", ["min", "max", "sum", "mean"])
@pytest.mark.parametrize("use_init_val", ["true", "false"])
def test_dropped_updates_touch_nothing(reduction: str, use_init_val: str, tmp_path: Path) -> None:
    """Neither NaN nor -0.0 nor an old value that would go: no neutral update is written in their place."""
    more: dict[str, Any] = {"reduction": reduction, "use_init_val": use_init_val}
    made = SEU12(folder=tmp_path, indices=[[5, -6, 9]], axis=0, updates=(1, 3), **more)
    data = made.feeds["data"].copy()
    data[0], data[4] = np.nan, -0.0
    found = computed(guarded(made, "drop"), {**made.feeds, "data": data})
    assert found.tobytes() == data.tobytes()


CLAMPED_ONCE = {
    "elements 12": (partial(SEU12, indices=ELEMENTS, axis=0, known="dynamic"), "ScatterNDUpdate"),
    "elements 3": (partial(SEU3, indices=FROM_FRONT, axis=0, known="dynamic"), "ScatterElementsUpdate-12"),
    "slices": (partial(SU, indices=[1, 4], axis=0, known="dynamic"), "ScatterNDUpdate"),
    "slices to elements": (partial(SU, indices=[1, 4], axis=0, known="dynamic"), "ScatterElementsUpdate"),
    "tuples": (
        partial(ND15, indices=[[0], [4]], updates=(2, 7), sizes=(5,), known="dynamic"), "ScatterElementsUpdate"
    ),
}  # fmt: skip


@pytest.mark.parametrize("guard", ["clamp", "wrap", "drop"])
@pytest.mark.parametrize("name", CLAMPED_ONCE)
def test_with_another_operator_open_shapes_are_guarded_once(name: str, guard: str, tmp_path: Path) -> None:
    form, to = CLAMPED_ONCE[name]
    made = form(folder=tmp_path)
    (one,) = convert(made.path, to, guard=guard).converted
    names = [
        word for word in one.rewrites if word in {"indices-clamped", "indices-wrapped", "updates-dropped"}
    ]
    assert len(names) == 1, one.rewrites
    after = guarded(made, guard, to=to)
    assert convert(after, to, guard=guard).is_empty
    assert convert(after, guard=guard).is_empty
    if guard == "wrap":
        return
    plain = guarded(made, guard, "plain")
    for indices in out_of_range(made):
        if _repeat(made, made.wrapped(made.clamped(indices))):
            continue
        fed = with_indices(made, indices)
        np.testing.assert_array_equal(computed(after, fed), computed(plain, fed))


IN_RANGE = {
    "position": "i = ArgMax<axis=0, keepdims=0>(d)",
    "remainder": "i = Mod(g, five)",
    "clipped": "i = Clip(g, zero, four)",
    "chosen": "m = Mod(g, five)\n n = Min(m, four)\n c = Less(g, five)\n i = Where(c, m, n)",
    "counted": "r = Range(zero, five, one)\n i = Slice(r, start, stop)",
    "summed": "m = Mod(g, three)\n i = Add(m, one)",
    "lesser": "m = Mod(g, six)\n c = Less(m, four)\n i = Where(c, m, four)",
    "not below": "n = Min(g, four)\n c = Less(zero, n)\n i = Where(c, n, zero)",
    "counted from the end": "m = Mod(g, five)\n c = Less(m, zero)\n f = Add(m, five)\n i = Where(c, f, m)",
    "joined": "m = Mod(g, three)\n p = Concat<axis=0>(m, m)\n i = ReduceSum(p, low)",
    "joined by rows": "m = Mod(g, pairs)\n p = Mul(m, strides)\n i = ReduceSum<keepdims=0>(p, low)",
}
OUT_OF_RANGE = {
    "remainder of more": "i = Mod(g, six)",
    "cut remainder": "i = Mod<fmod=1>(g, five)",
    "one more": "m = Mod(g, five)\n i = Add(m, one)",
    "clipped elsewhere": "i = Clip(g, zero, six)",
    "greater": "m = Mod(g, six)\n c = Less(m, four)\n i = Where(c, four, m)",
    "counted from far": "c = Less(g, zero)\n f = Add(g, five)\n i = Where(c, f, g)",
    "joined by other rows": "m = Mod(g, pairs)\n p = Mul(m, three)\n i = ReduceSum<keepdims=0>(p, low)",
    "joined on another axis": "m = Mod(g, pairs)\n p = Mul(m, strides)\n i = ReduceSum(p, zeros)",
    "counted too far": "r = Range(zero, seven, one)\n i = Slice(r, g, last)",
}


def of_text(folder: Path, lines: str) -> Path:
    text = f"""
        <ir_version: 8, opset_import: ["" : 18]>
        graph (float[5, 1] d, int64[1] g, float[1, 1] u) => (float[5, 1] o)
        <int64 zero = {{0}}, int64 one = {{1}}, int64 three = {{3}}, int64 four = {{4}}, int64 five = {{5}},
         int64 six = {{6}}, int64 seven = {{7}}, int64[1] start = {{2}}, int64[1] stop = {{3}}, int64[1] last = {{1}},
         int64[1] low = {{-1}}, int64[1] zeros = {{0}}, int64[1, 2] pairs = {{2, 2}}, int64[2] strides = {{2, 1}}>
        {{
            {lines}
            t = Unsqueeze(i, last)
            o = ScatterND(d, t, u)
        }}"""
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.mark.parametrize("lines", IN_RANGE.values(), ids=IN_RANGE)
def test_what_is_proven_to_be_in_range_needs_nothing(lines: str, tmp_path: Path) -> None:
    path = of_text(tmp_path, lines)
    assert convert(path, guard="clamp").is_empty
    assert convert(path, guard="wrap").is_empty


@pytest.mark.parametrize("lines", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_what_may_be_out_of_range_is_guarded(lines: str, tmp_path: Path) -> None:
    assert not convert(of_text(tmp_path, lines), guard="clamp").is_empty


def test_coordinates_have_bounds_of_their_own(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 18]>
        graph (float[5, 7] d, int64[3, 1] g, float[3] u) => (float[5, 7] o)
        <int64 five = {5}, int64 seven = {7}>
        { a = Mod(g, five) b = Mod(g, seven) i = Concat<axis=-1>(a, b) o = ScatterND(d, i, u) }"""
    onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
    (scatter,) = scatter_nodes(read(path), Facts())
    assert scatter.indices is not None
    assert bounds_of(scatter.facts, scatter.indices.value, 2) == ((0, 4), (0, 6))
    assert convert(path, guard="clamp").is_empty
    onnx.save(parser.parse_model(text.replace("(a, b)", "(b, a)")), path)
    assert not convert(path, guard="clamp").is_empty


def test_nothing_is_in_range_of_nothing(tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=[1, 4], axis=0, data=(0, 7))
    (refused,) = convert(made.path, guard="clamp").refused
    assert refused.code == "CVT114"
    assert refused.message == "indices refer to a dimension of size 0, where no index is in range"


def test_no_indices_need_nothing(tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=np.zeros(0), axis=0, data=(0, 7), updates=(0, 7))
    assert convert(made.path, guard="clamp").is_empty


def test_any_position_is_legal_where_positions_wrap(tmp_path: Path) -> None:
    more = {"data": (2, 5, 3), "updates": (2, 2, 3), "mode": "circular"}
    made = of_onnx(tmp_path, "TensorScatter", 24, [0, 3], **more)
    assert convert(made.path, guard="clamp").is_empty


def test_another_word_is_wrong_usage(tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=[1, 4], axis=0)
    with pytest.raises(UsageError, match="'clmp' is not a guard"):
        convert(made.path, guard="clmp")


@pytest.mark.parametrize("guard", ["clamp", "wrap"])
def test_with_another_operator(guard: str, tmp_path: Path) -> None:
    made = SU(folder=tmp_path, indices=[1, 4], axis=0)
    found = convert(made.path, "ScatterElementsUpdate", guard=guard)
    (one,) = found.converted
    assert one.rewrites == (
        {"clamp": "indices-clamped", "wrap": "indices-wrapped"}[guard],
        "slices-to-elements",
    )
    found.write(after := tmp_path / "after.xml")
    indices = np.array([-1, 3])
    expected = made.clamped(indices) if guard == "clamp" else made.wrapped(indices)
    np.testing.assert_array_equal(
        computed(after, with_indices(made, indices)), computed(made.path, with_indices(made, expected))
    )
    assert convert(after, "ScatterElementsUpdate", guard=guard).is_empty


def test_in_a_function_of_onnx(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        graph (float[5, 7] d, int64[2, 3] i, float[2, 3] u) => (float[5, 7] o)
        { o = own.put(d, i, u) }
        <domain: "own", opset_import: ["" : 18]>
        put (d, i, u) => (o) { o = ScatterElements(d, i, u) }"""
    onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
    convert(path, guard="clamp").write(after := tmp_path / "after.onnx")
    fed = {"d": np.zeros((5, 7), np.float32), "i": np.array([[9, 0, -9], [1, -2, 2]]),
           "u": np.arange(1, 7, dtype=np.float32).reshape(2, 3)}  # fmt: skip
    expected = computed(path, {**fed, "i": np.array([[4, 0, 0], [1, 3, 2]])})
    np.testing.assert_array_equal(computed(after, fed), expected)
    assert convert(after, guard="clamp").is_empty


@pytest.mark.parametrize("guard", ["clamp", "wrap"])
@pytest.mark.parametrize("missing", ["data", "updates"])
def test_an_input_from_nothing_is_refused(missing: str, guard: str, tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    graph = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18]>
        main (float[3, 4] data, int64[2, 4] indices, float[2, 4] updates) => (float[3, 4] y) {
          y = ScatterElements (data, indices, updates)
        }"""
    )
    names = graph.graph.node[0].input
    names[list(names).index(missing)] = "nothing"
    onnx.save(graph, path)
    refused = convert(path, guard=guard).refused
    assert [(one.code, "is connected to a value that does not exist" in one.message) for one in refused] == [
        ("CVT101", True)
    ]
