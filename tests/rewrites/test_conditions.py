"""What has to hold for a rewrite: proven, unknown, violated, promised; on models as they are read."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import convert
from ir_scatter.convert import Conversion
from ir_scatter.core.fragment import Fragment
from tests.rewrites.ir_models import Source, given, held, one_scatter
from tests.rules.ir_text import IrText, Output

SEU, SU, ND = "ScatterElementsUpdate", "ScatterUpdate", "ScatterNDUpdate"


def elements(
    folder: Path,
    indices: Source,
    *,
    shape: tuple[int, ...] = (2, 3),
    data: Source | None = None,
    updates: Source | None = None,
    axis: int = 1,
    opset: str = "opset12",
    type: str = "f32",
    **attributes: str,
) -> str:
    """Write a ScatterElementsUpdate of data [4, 5]."""
    return one_scatter(
        folder,
        SEU,
        opset,
        data or given("data", type, (4, 5)),
        indices,
        updates or given("updates", type, shape),
        held(axis, name="axis"),
        attributes,
    )


def tuples(
    folder: Path,
    indices: Source,
    *,
    updates: tuple[int, ...] = (3,),
    data: tuple[int, ...] = (4, 5),
    type: str = "f32",
    opset: str = "opset15",
    **attributes: str,
) -> str:
    """Write a ScatterNDUpdate."""
    return one_scatter(
        folder,
        ND,
        opset,
        given("data", type, data),
        indices,
        given("updates", type, updates),
        None,
        attributes,
    )


def slices(
    folder: Path,
    indices: Source,
    updates: tuple[int, ...],
    *,
    data: tuple[int, ...] = (4, 5),
    axis: int = 0,
    type: str = "f32",
) -> str:
    """Write a ScatterUpdate."""
    sources = given("data", type, data), indices, given("updates", type, updates)
    return one_scatter(folder, SU, "opset3", *sources, held(axis, name="axis"))


def types_of(conversion: Conversion) -> list[str]:
    return [new.type for new in fragment_of(conversion).news]


def fragment_of(conversion: Conversion) -> Fragment:
    (patch,) = conversion.patches
    return patch.fragment


def demand_converted(conversion: Conversion, *assumptions: str) -> None:
    assert [one.message for one in conversion.refused] == []
    (one,) = conversion.converted
    assert one.assumptions == assumptions
    (verified,) = conversion.verified
    assert verified.cases == 8


def demand_refused(conversion: Conversion, code: str, *words: str) -> None:
    assert conversion.converted == ()
    (one,) = conversion.refused
    assert one.code == code, one.message
    for word in words:
        assert word in one.message


# Non-negative indices


def test_indices_that_may_be_negative_are_counted_from_the_front(tmp_path: Path) -> None:
    found = convert(elements(tmp_path, given("indices", "i64", (2, 3))), f"{SEU}-3")
    demand_converted(found)
    assert types_of(found) == ["Less", "Add", "Select", SEU]


@pytest.mark.parametrize("type", ["u8", "u16", "u32", "u64"])
def test_unsigned_indices_are_never_negative(tmp_path: Path, type: str) -> None:
    found = convert(elements(tmp_path, given("indices", type, (2, 3))), f"{SEU}-3")
    demand_converted(found)
    assert types_of(found) == [SEU]


def test_constant_indices_prove_their_signs(tmp_path: Path) -> None:
    positive = convert(elements(tmp_path, held([[0, 1, 2], [4, 3, 2]])), f"{SEU}-3")
    assert types_of(positive) == [SEU]
    negative = convert(elements(tmp_path, held([[0, 1, -2], [4, 3, 2]])), f"{SEU}-3")
    demand_converted(negative)
    assert types_of(negative) == ["Less", "Add", "Select", SEU]


@pytest.mark.parametrize("type", ["i8", "i16"])
def test_narrow_indices_are_widened_before_a_size_is_added(tmp_path: Path, type: str) -> None:
    shape, name = (300, 2), f"{SEU}-3"
    sources = given("data", "f32", shape), given("indices", type, (3, 2)), given("updates", "f32", (3, 2))
    found = convert(one_scatter(tmp_path, SEU, "opset12", *sources, held(0, name="axis")), name)
    demand_converted(found)
    assert types_of(found) == ["Convert", "Less", "Add", "Select", SEU]


def test_a_promise_of_signs_is_recorded_and_leaves_nothing_to_count(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)))
    found = convert(path, f"{SEU}-3", assume=["non-negative-indices"])
    demand_converted(found, "non-negative-indices")
    assert types_of(found) == [SEU]


def test_a_promise_that_nothing_needs_is_not_recorded(tmp_path: Path) -> None:
    path = elements(tmp_path, held([[0, 1, 2], [4, 3, 2]]))
    every = ["non-negative-indices", "unique-indices", "equal-indices"]
    demand_converted(convert(path, f"{SEU}-3", assume=every))


def test_a_promise_does_not_overrule_what_the_file_proves(tmp_path: Path) -> None:
    path = elements(tmp_path, held([[0, 1, -2], [4, 3, 2]]))
    found = convert(path, f"{SEU}-3", assume=["non-negative-indices"])
    demand_converted(found)
    assert types_of(found) == ["Less", "Add", "Select", SEU]


def test_negative_indices_are_kept_where_the_user_vouches_for_them(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)))
    found = convert(path, f"{SEU}-3", keep_negative_indices=True)
    demand_converted(found, "negative-indices-kept")
    assert types_of(found) == [SEU]


def test_negative_indices_that_cannot_be_are_not_vouched_for(tmp_path: Path) -> None:
    found = convert(
        elements(tmp_path, given("indices", "u8", (2, 3))), f"{SEU}-3", keep_negative_indices=True
    )
    demand_converted(found)


def test_a_strict_source_has_no_negative_indices(tmp_path: Path) -> None:
    found = convert(slices(tmp_path, given("indices", "i64", (3,)), (3, 5)), f"{ND}-3")
    demand_converted(found)
    assert types_of(found) == ["Unsqueeze", ND]


# Unique indices


def test_a_reduction_that_the_target_lacks_needs_unique_indices(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), reduction="sum", use_init_val="true")
    demand_refused(convert(path, f"{SEU}-3"), "CVT105", "unique indices", "--assume unique-indices")
    demand_converted(convert(path, f"{SEU}-3", assume=["unique-indices"]), "unique-indices")


def test_the_promise_of_another_condition_does_not_help(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), reduction="sum", use_init_val="true")
    found = convert(path, f"{SEU}-3", assume=["equal-indices", "non-negative-indices"])
    demand_refused(found, "CVT105", "unique-indices")


@pytest.mark.parametrize("word", ["sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("keeps", ["true", "false"])
@pytest.mark.parametrize("target", [f"{SEU}-3", f"{ND}-3", f"{ND}-15"])
def test_constant_indices_that_differ_are_unique(tmp_path: Path, word: str, keeps: str, target: str) -> None:
    path = elements(tmp_path, held([[0, 1, 2], [4, -2, 2]]), reduction=word, use_init_val=keeps)
    demand_converted(convert(path, target))


def test_constant_indices_that_repeat_are_not_unique(tmp_path: Path) -> None:
    path = elements(tmp_path, held([[0, 1, 2], [4, 2, -1]]), reduction="sum", use_init_val="true")
    for assume in ([], ["unique-indices"]):
        demand_refused(convert(path, f"{SEU}-3", assume=assume), "CVT106", "unique indices")


def test_more_indices_than_positions_are_not_unique(tmp_path: Path) -> None:
    sources = given("data", "f32", (3,)), given("indices", "i64", (4,)), given("updates", "f32", (4,))
    attributes = {"reduction": "sum", "use_init_val": "true"}
    path = one_scatter(tmp_path, SEU, "opset12", *sources, held(0, name="axis"), attributes)
    demand_refused(convert(path, f"{ND}-3"), "CVT106", "4 indices for 3 positions")


def test_one_index_is_unique(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 1)), shape=(2, 1), reduction="prod")
    demand_converted(convert(path, f"{SEU}-3"))
    found = convert(
        tuples(tmp_path, given("indices", "i64", (1, 2)), updates=(1,), reduction="max"), f"{ND}-3"
    )
    demand_converted(found)


def test_a_run_of_numbers_is_unique(tmp_path: Path) -> None:
    def counted(ir: IrText) -> Output:
        ends = [ir.const(f"end{number}", "i64", number) for number in (1, 4, 1)]
        run = ir.add("run", "Range", "opset4", ends, [("i64", (3,))], {"output_type": "i64"})
        axes = ir.const("axes", "i64", [1])
        return ir.add("rows", "Unsqueeze", "opset1", [run, axes], [("i64", (3, 1))])

    path = tuples(tmp_path, counted, updates=(3, 5), reduction="sum")
    demand_converted(convert(path, f"{ND}-3"))


@pytest.mark.parametrize("word", ["sum", "sub", "prod", "min", "max"])
@pytest.mark.parametrize("target", [f"{ND}-3", f"{SEU}-3", f"{SU}-3"])
def test_unique_tuples_are_joined_before_they_are_written(tmp_path: Path, word: str, target: str) -> None:
    path = tuples(tmp_path, held([[0, 1], [-1, 2], [3, -4]]), reduction=word)
    demand_converted(convert(path, target))
    unknown = tuples(tmp_path, given("indices", "i64", (3, 2)), reduction=word)
    demand_refused(convert(unknown, target), "CVT105", "unique-indices")


def test_negative_indices_on_a_size_that_is_not_known_may_repeat(tmp_path: Path) -> None:
    """[-1, 3] is unique on 5 positions and repeats on 4."""
    for size, code in ((5, ""), (4, "CVT106"), ("?", "CVT105"), ("4..5", "CVT105")):
        sources = given("data", "f32", (size,)), held([-1, 3]), given("updates", "f32", (2,))
        attributes = {"reduction": "sum", "use_init_val": "true"}
        path = one_scatter(tmp_path, SEU, "opset12", *sources, held(0, name="axis"), attributes)
        if code:
            demand_refused(convert(path, f"{ND}-3"), code, "unique")
        else:
            demand_converted(convert(path, f"{ND}-3"))


def test_constant_indices_on_an_axis_that_is_not_known_may_repeat(tmp_path: Path) -> None:
    sources = given("data", "f32", (4, 5)), held([[0, 1], [0, 1]]), given("updates", "f32", (2, 2))
    attributes = {"reduction": "sum", "use_init_val": "true"}
    path = one_scatter(tmp_path, SEU, "opset12", *sources, given("axis", "i64", ()), attributes)
    demand_refused(convert(path, f"{ND}-3"), "CVT105", "unique")


def test_nodes_of_unknown_rank_do_not_share_what_their_indices_prove(tmp_path: Path) -> None:
    ir = IrText()
    data, updates = ir.parameter("data", "f32", None), ir.parameter("updates", "f32", (2,))
    axis, attributes = ir.const("axis", "i64", 0), {"reduction": "sum", "use_init_val": "true"}
    for place, numbers in enumerate([[0, 1], [1, 1]]):
        indices = ir.const(f"indices{place}", "i64", numbers)
        ir.add(f"scatter{place}", SEU, "opset12", [data, indices, updates, axis], [("f32", ())], attributes)
    found = convert(ir.write(tmp_path), f"{SEU}-3")
    assert [one.name for one in found.converted] == ["scatter0"]
    assert [(one.name, one.code) for one in found.refused] == [("scatter1", "CVT106")]


# Equal indices


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


@pytest.mark.parametrize("make", [_repeated, _repeated_and_converted])
def test_indices_that_were_repeated_are_equal(tmp_path: Path, make: Source) -> None:
    demand_converted(convert(elements(tmp_path, make, shape=(4, 3)), f"{SU}-3"))


def test_indices_repeated_along_the_axis_are_not_known_to_be_equal(tmp_path: Path) -> None:
    path = elements(tmp_path, partial(_repeated, size=5), shape=(4, 5), axis=0)
    demand_refused(convert(path, f"{SU}-3"), "CVT105", "equal indices", "--assume equal-indices")


def test_an_unknown_dimension_blocks_nothing_and_is_recorded(tmp_path: Path) -> None:
    """Data may be longer when the model runs: then the new node is illegal there, and says so."""
    data = given("data", "f32", ("?", 5))
    path = elements(tmp_path, _repeated, shape=(4, 3), data=data)
    demand_converted(convert(path, f"{SU}-3"), "full-indices")


def test_a_promise_of_equal_indices_is_recorded(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (4, 3)), shape=(4, 3))
    demand_refused(convert(path, f"{SU}-3"), "CVT105", "equal-indices")
    found = convert(path, f"{SU}-3", assume=["equal-indices"])
    demand_converted(found, "equal-indices")


def test_a_promise_of_equal_and_unique_indices(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (4, 3)), shape=(4, 3), reduction="sum")
    demand_refused(convert(path, f"{SU}-3", assume=["equal-indices"]), "CVT105", "unique-indices")
    found = convert(path, f"{SU}-3", assume=["equal-indices", "unique-indices"])
    demand_converted(found, "equal-indices", "unique-indices")


def test_constant_indices_tell_whether_they_are_equal(tmp_path: Path) -> None:
    same = convert(elements(tmp_path, held([[0, 2, -1]] * 4), shape=(4, 3)), f"{SU}-3")
    demand_converted(same)
    other = convert(elements(tmp_path, held([[0, 2, 4]] * 3 + [[0, 2, 3]]), shape=(4, 3)), f"{SU}-3")
    demand_refused(other, "CVT106", "indices differ along axis 0")


def test_a_column_of_indices_on_a_column_of_data_is_equal(tmp_path: Path) -> None:
    sources = given("data", "f32", (4, 1)), given("indices", "i64", (3, 1)), given("updates", "f32", (3, 1))
    path = one_scatter(tmp_path, SEU, "opset12", *sources, held(0, name="axis"))
    demand_converted(convert(path, f"{SU}-3"))


def test_indices_that_do_not_reach_all_of_data_are_no_slices(tmp_path: Path) -> None:
    path = elements(tmp_path, held([[0, 2, 4]] * 2))
    demand_refused(convert(path, f"{SU}-3"), "CVT106", "reach 2 of 4 positions on axis 0")


def test_an_axis_that_is_not_known_may_be_the_shorter_one(tmp_path: Path) -> None:
    def path(shape: tuple[int, ...]) -> str:
        sources = given("data", "f32", (4, 5)), given("indices", "i64", shape), given("updates", "f32", shape)
        return one_scatter(tmp_path, SEU, "opset12", *sources, given("axis", "i64", ()))

    found = convert(path((4, 3)), f"{SU}-3", assume=["equal-indices"])
    demand_converted(found, "equal-indices", "full-indices")
    two = convert(path((2, 3)), f"{SU}-3", assume=["equal-indices"])
    demand_refused(two, "CVT106", "reach 2 of 4 positions on axis 0")


# Shapes at the edge


def test_indices_longer_than_data_have_no_older_form(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 7)), shape=(2, 7))
    demand_refused(convert(path, f"{SEU}-3"), "CVT108", "SCT211", "indices is [2, 7]", "data [4, 5]")
    demand_converted(convert(path, f"{ND}-15"))


def test_more_indices_than_positions_have_no_older_form(tmp_path: Path) -> None:
    path = slices(tmp_path, given("indices", "i64", (6,)), (6, 5))
    demand_refused(convert(path, f"{SEU}-3"), "CVT108", "SCT211")
    for target in (f"{SEU}-12", f"{ND}-15", f"{ND}-3"):
        demand_converted(convert(path, target))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("target", [f"{SEU}-12", f"{SEU}-3", f"{ND}-3", f"{ND}-15", f"{SU}-3"])
def test_one_element_of_any_rank_may_be_the_update_of_one_tuple(
    tmp_path: Path, shape: tuple[int, ...], target: str
) -> None:
    opset = "opset14" if target == f"{ND}-15" else "opset15"
    path = tuples(tmp_path, given("indices", "i64", (2,)), updates=shape, opset=opset)
    demand_converted(convert(path, target))


@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_element_is_joined_whatever_its_rank(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tuples(tmp_path, given("indices", "i64", (2,)), updates=shape, reduction="sum")
    for target in (f"{SEU}-12", f"{SEU}-3", f"{ND}-3", f"{SU}-3"):
        demand_converted(convert(path, target))


@pytest.mark.parametrize("target", [f"{SEU}-12", f"{SEU}-3", f"{ND}-3", f"{SU}-3"])
@pytest.mark.parametrize("count", [(), (1,), (3,), (0,), (2, 2)])
def test_tuples_without_coordinates_name_all_of_data(
    tmp_path: Path, target: str, count: tuple[int, ...]
) -> None:
    path = tuples(tmp_path, given("indices", "i64", (*count, 0)), updates=(*count, 4, 5))
    demand_converted(convert(path, target))


@pytest.mark.parametrize("target", [f"{SEU}-12", f"{SEU}-3", f"{ND}-3", f"{SU}-3"])
@pytest.mark.parametrize("word", ["sum", "sub", "max"])
def test_one_tuple_without_coordinates_is_joined_with_all_of_data(
    tmp_path: Path, target: str, word: str
) -> None:
    path = tuples(tmp_path, given("indices", "i64", (1, 0)), updates=(1, 4, 5), reduction=word)
    demand_converted(convert(path, target))


@pytest.mark.parametrize("target", [f"{SEU}-12", f"{SEU}-3", f"{ND}-3", f"{SU}-3"])
@pytest.mark.parametrize("word", ["none", "sub"])
def test_tuples_may_name_single_elements(tmp_path: Path, target: str, word: str) -> None:
    path = tuples(tmp_path, held([[0, 1], [-1, 2], [3, -4]]), reduction=word)
    demand_converted(convert(path, target))


# Reductions


@pytest.mark.parametrize(
    "type", ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u32", "u16", "u8", "boolean"]
)
def test_a_difference_is_a_sum_of_negated_updates(tmp_path: Path, type: str) -> None:
    path = tuples(tmp_path, given("indices", "i64", (7, 2)), updates=(7,), type=type, reduction="sub")
    found = convert(path, f"{SEU}-12")
    demand_converted(found)
    wide = type.startswith("u") or type == "boolean"
    assert ("FloorMod" in types_of(found)) == wide
    assert fragment_of(found).result.type == "Reshape"


def test_a_difference_of_the_widest_unsigned_numbers_is_no_sum(tmp_path: Path) -> None:
    path = tuples(tmp_path, given("indices", "i64", (7, 2)), updates=(7,), type="u64", reduction="sub")
    demand_refused(convert(path, f"{SEU}-12"), "CVT105", "unique-indices")
    found = convert(path, f"{SEU}-12", assume=["unique-indices"])
    demand_converted(found, "unique-indices")
    assert "Subtract" in types_of(found)


@pytest.mark.parametrize("keeps", ["true", "false"])
@pytest.mark.parametrize("type", ["f64", "f32", "f16", "bf16", "i32", "i16", "i8", "u32", "u8"])
def test_a_mean_is_a_sum_and_a_count(tmp_path: Path, type: str, keeps: str) -> None:
    path = elements(
        tmp_path,
        given("indices", "i64", (2, 9)),
        shape=(2, 9),
        type=type,
        reduction="mean",
        use_init_val=keeps,
    )
    found = convert(path, f"{ND}-15")
    demand_converted(found)
    assert types_of(found).count(ND) == (2 if keeps == "true" else 3)


def test_a_mean_of_the_widest_numbers_needs_unique_indices(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), type="i64", reduction="mean")
    demand_refused(convert(path, f"{ND}-15"), "CVT105", "unique-indices")
    demand_converted(convert(path, f"{ND}-15", assume=["unique-indices"]), "unique-indices")


@pytest.mark.parametrize("type", ["f32", "i64", "u64", "i8", "u8"])
def test_a_mean_of_two_is_rounded_down(tmp_path: Path, type: str) -> None:
    path = elements(tmp_path, held([[0, 1, 2], [4, 3, 2]]), type=type, reduction="mean")
    demand_converted(convert(path, f"{SEU}-3"))


@pytest.mark.parametrize("word", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("type", ["f32", "f16", "i32", "u8", "boolean"])
def test_without_old_values_a_neutral_one_is_written_first(tmp_path: Path, word: str, type: str) -> None:
    path = elements(
        tmp_path, given("indices", "i64", (2, 3)), type=type, reduction=word, use_init_val="false"
    )
    found = convert(path, f"{ND}-15")
    demand_converted(found)
    assert types_of(found).count(ND) == 2


def test_nothing_is_written_first_without_a_reduction(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), reduction="none", use_init_val="false")
    found = convert(path, f"{ND}-15")
    demand_converted(found)
    assert types_of(found).count(ND) == 1


def test_one_value_may_be_data_and_updates(tmp_path: Path) -> None:
    both = given("both", "f32", (4, 5))
    sources = both, given("indices", "i64", (4, 5)), both
    attributes = {"reduction": "sum", "use_init_val": "true"}
    path = one_scatter(tmp_path, SEU, "opset12", *sources, held(0, name="axis"), attributes)
    demand_converted(convert(path, f"{ND}-15"))


def test_one_value_may_be_data_and_indices(tmp_path: Path) -> None:
    both = given("both", "i64", (3,))
    path = one_scatter(tmp_path, SEU, "opset12", both, both, both, held(0, name="axis"))
    for target in (f"{SEU}-3", f"{ND}-15", f"{ND}-3"):
        demand_converted(convert(path, target))
    path = one_scatter(tmp_path, SU, "opset3", both, both, both, held(0, name="axis"))
    for target in (f"{SEU}-12", f"{ND}-15"):
        demand_converted(convert(path, target))


def test_the_axis_may_be_one_of_the_indices(tmp_path: Path) -> None:
    number = held(0, name="zero")
    sources = given("data", "f32", (4, 5)), number, given("updates", "f32", (5,))
    path = one_scatter(tmp_path, SU, "opset3", *sources, number)
    for target in (f"{SEU}-12", f"{ND}-15", f"{SU}-3"):
        demand_converted(convert(path, target))


# Types that the target forbids


@pytest.mark.parametrize(
    ("type", "target", "code"),
    [
        ("boolean", f"{ND}-15", ""),
        ("boolean", f"{SEU}-3", "SCT214"),
        ("string", f"{ND}-15", "SCT201"),
        ("string", f"{SEU}-3", "SCT201"),
    ],
)
def test_a_type_that_the_target_forbids_is_refused(tmp_path: Path, type: str, target: str, code: str) -> None:
    found = convert(elements(tmp_path, given("indices", "i64", (2, 3)), type=type), target)
    if code:
        demand_refused(found, "CVT108", code, type)
    else:
        demand_converted(found)


def test_indices_get_a_type_that_the_target_takes(tmp_path: Path) -> None:
    found = convert(slices(tmp_path, given("indices", "u8", (3,)), (3, 5)), f"{ND}-15")
    demand_converted(found)
    assert types_of(found) == ["Convert", "Unsqueeze", ND]
    kept = convert(slices(tmp_path, given("indices", "i32", (3,)), (3, 5)), f"{ND}-15")
    assert types_of(kept) == ["Unsqueeze", ND]


# Attributes


@pytest.mark.parametrize("attributes", [{"reduction": "sum"}, {"use_init_val": "false"}])
def test_attributes_that_the_reader_drops_are_not_given_a_meaning(
    tmp_path: Path, attributes: dict[str, Any]
) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), opset="opset3", **attributes)
    demand_refused(convert(path, f"{SEU}-12"), "CVT101", "SCT104")


def test_words_keep_their_meaning_in_any_case(tmp_path: Path) -> None:
    path = elements(tmp_path, given("indices", "i64", (2, 3)), reduction="SUM", use_init_val="TRUE")
    found = convert(path, f"{ND}-15")
    assert fragment_of(found).result.attributes == {"reduction": "sum"}


def test_nodes_that_look_alike_share_a_form_and_others_do_not(tmp_path: Path) -> None:
    ir = IrText()
    data, updates = ir.parameter("data", "f32", (4, 5)), ir.parameter("updates", "f32", (2, 5))
    axis = ir.const("axis", "i64", 0)
    attributes = {"reduction": "sum", "use_init_val": "true"}
    numbers: list[Any] = [[0, 1], [2, 3], [1, 1]]
    for place, values in enumerate(numbers):
        indices = ir.const(f"indices{place}", "i64", np.repeat(np.array(values)[:, None], 5, 1))
        ir.add(
            f"scatter{place}", SEU, "opset12", [data, indices, updates, axis], [("f32", (4, 5))], attributes
        )
    found = convert(ir.write(tmp_path), f"{SEU}-3")
    assert [one.name for one in found.converted] == ["scatter0", "scatter1"]
    assert found.patches[0].fragment is found.patches[1].fragment
    assert [one.name for one in found.refused] == ["scatter2"]
