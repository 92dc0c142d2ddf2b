"""What must be found for every row when exactly one thing is broken, and what must not be found.

An expectation is "CODE severity words of the message"; a case without one is clean.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from tests.rules.cases import Case, Tensor, legal, shaped, with_axis
from tests.rules.ir_text import Dims
from tests.rules.rows import (
    CACHE,
    ELEMENTS,
    IR_TYPES,
    ONNX_TYPES,
    SLICES,
    TUPLES,
    Row,
)

Expected: TypeAlias = tuple[str, Case, list[str]]

_INTEGERS_OF_TESTS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")


def every_case(row: Row) -> Iterator[Expected]:
    """Yield name, case and expectations."""
    yield "legal", legal(row), []
    yield from _ports(row)
    yield from _attributes(row)
    yield from _words(row)
    yield from _types(row)
    yield from _ranks(row)
    yield from {SLICES: _slices, ELEMENTS: _elements, TUPLES: _tuples, CACHE: _cache}[row.family](row)
    yield from _unknown(row)
    yield from _axes(row)
    yield from _stored(row)
    if row.family != CACHE:
        yield from _values(row)


def _names(row: Row) -> dict[str, str]:
    if row.family == CACHE:
        return {"data": "past_cache", "updates": "update", "indices": "write_indices"}
    return {name: name for name in ("data", "indices", "updates", "axis")}


def _ports(row: Row) -> Iterator[Expected]:
    case, names = legal(row), _names(row)
    last = "axis" if row.has_axis_input else "updates"
    for role in [last] if row.is_ir else ["data", "updates", "indices"]:
        is_optional = row.family == CACHE and role == "indices"
        expected = [] if is_optional else [f"SCT101 error {names[role]} is missing"]
        yield f"missing_{role}", replace(case, dropped=frozenset({role})), expected
    every = ["data", "indices", "updates", "axis"][: 4 if row.has_axis_input else 3]
    required = [role for role in every if row.family != CACHE or role != "indices"]
    nothing = replace(case, dropped=frozenset(every))
    yield "missing_all", nothing, [f"SCT101 error {names[role]} is missing" for role in required]
    count = 4 if row.has_axis_input else 3
    extra = replace(case, extra=[case.data])
    yield "superfluous", extra, [f"SCT102 error input {count} is superfluous"]
    two = replace(case, extra=[case.data, case.data])
    yield "superfluous_two", two, [f"SCT102 error input {count + n}" for n in range(2)]
    yield "two_outputs", replace(case, outputs=2), ["SCT109 error the node has 2 outputs, expected 1"]
    if row.is_ir:
        yield "no_output", replace(case, outputs=0), ["SCT109 error the node has 0 outputs, expected 1"]


def _attributes(row: Row) -> Iterator[Expected]:
    case = legal(row)

    def attributes(**written: Any) -> Case:
        return replace(case, attributes=written)

    yield "unknown_attribute", attributes(depth="1"), ["SCT103 error attribute depth is not documented"]
    if row.is_ir or row.family == TUPLES:
        yield "axis_attribute", attributes(axis="1"), ["SCT103 error attribute axis"]
    if row.later:
        other = "sum" if row.is_ir else "add"
        lowered = "warning" if row.is_ir else "error"
        yield "later", attributes(reduction=other), [f"SCT104 error attribute reduction is '{other}'"]
        yield "later_none", attributes(reduction="none"), [f"SCT104 {lowered} attribute reduction is 'none'"]
    elif not row.words:
        word = "sum" if row.is_ir else "add"
        yield "reduction_of_none", attributes(reduction=word), ["SCT103 error attribute reduction"]
    if "use_init_val" in row.later:
        written = attributes(use_init_val="false")
        yield "later_init", written, ["SCT104 error attribute use_init_val is 'false'"]
    if not row.is_ir and row.family != TUPLES:
        for name, value in (("float", 1.0), ("text", "1"), ("list", [1])):
            yield f"axis_{name}", attributes(axis=value), ["SCT107 error axis is a"]
    if not row.is_ir and row.words:
        yield "reduction_int", attributes(reduction=1), ["SCT107 error reduction is a"]
        yield "reduction_list", attributes(reduction=["add"]), ["SCT107 error reduction is a"]
    if row.words and row.is_ir and row.family == ELEMENTS:
        for word, expected in {
            "TRUE": [],
            "0": [],
            "no": ["SCT106 error use_init_val is 'no'"],
            "": ["SCT106 error use_init_val is ''"],
        }.items():
            yield f"init_{word}", attributes(reduction="sum", use_init_val=word), expected
        for given in ({"reduction": "none"}, {}):
            without = replace(case, attributes={**given, "use_init_val": "0"})
            yield f"init_without_{len(given)}", without, ["SCT108 note use_init_val is false"]


def _words(row: Row) -> Iterator[Expected]:
    case = legal(row)
    every = [
        *["none", "sum", "sub", "prod", "min", "max", "mean", "add", "mul", "SUM", "NONE", "ADD", "other"],
        "",
    ]
    for word in every if row.words else ():
        expected: list[str] = []
        if word not in row.words:
            is_lowered = (
                word.lower() in row.words if row.is_ir else row.version == 16 and word in ("min", "max")
            )
            severity = "warning" if is_lowered else "error"
            expected = [f"SCT105 {severity} reduction is '{word}', expected {', '.join(row.words)}"]
        yield f"word_{word}", replace(case, attributes={"reduction": word}), expected
    for mode in ("linear", "circular", "ring", "Linear") if row.family == CACHE else ():
        is_known = mode in ("linear", "circular")
        expected = [] if is_known else [f"SCT105 error mode is '{mode}', expected linear, circular"]
        yield f"mode_{mode}", replace(case, attributes={"mode": mode}), expected
    if row.family == CACHE:
        yield "mode_int", replace(case, attributes={"mode": 1}), ["SCT107 error mode is a"]
    if row.words and row.is_ir and "mean" in row.words:
        for word in row.words:
            masks = replace(
                case,
                data=replace(case.data, type="boolean"),
                updates=replace(case.updates, type="boolean"),
                attributes={"reduction": word},
            )
            expected = ["SCT213 error reduction is mean on boolean data"] if word == "mean" else []
            yield f"boolean_{word}", masks, expected


def _types(row: Row) -> Iterator[Expected]:
    case, names = legal(row), _names(row)
    for type in IR_TYPES if row.is_ir else ONNX_TYPES:
        data = replace(case, data=replace(case.data, type=type), updates=replace(case.updates, type=type))
        expected = [] if type in row.data_types else [f"SCT201 error {names['data']} is {type}"]
        if type == "boolean" and expected:
            expected = ["SCT214 warning data is boolean, expected a numeric type"]
        yield f"data_{type}", data, expected
        indices = replace(case, indices=replace(case.indices, type=type))
        expected = [] if type in row.index_types else [f"SCT204 error {names['indices']} is {type}, expected"]
        yield f"indices_{type}", indices, expected
        if row.has_axis_input:
            expected = [] if type in row.index_types else [f"SCT205 error axis is {type}, expected"]
            yield f"axis_type_{type}", replace(case, axis=Tensor(type, ())), expected
    other = "f16" if row.is_ir else "float16"
    mixed = replace(case, updates=replace(case.updates, type=other))
    yield "mixed", mixed, [f"SCT202 error {names['updates']} is {other}, expected {case.data.type} like"]
    unknown = "dynamic" if row.is_ir else "undefined"
    for role in ("data", "indices", "updates"):
        tensor = replace(getattr(case, role), type=unknown)
        yield f"unknown_type_{role}", case.with_tensor(role, tensor), []
    if row.has_axis_input:
        yield "unknown_type_axis", replace(case, axis=Tensor("dynamic", ())), []


def _ranks(row: Row) -> Iterator[Expected]:
    axis = Tensor("i64", ())
    if row.is_ir:
        expected = ["SCT206 error data is [] of rank 0"]
        if row.family == SLICES:
            yield "data_0d", shaped(row, (), (2,), None, axis=axis), expected
        elif row.family == ELEMENTS:
            yield "data_0d", shaped(row, (), (), (), axis=axis), expected
    if row.family == TUPLES:
        yield "data_0d", shaped(row, (), (2, "?"), None), ["SCT206 error data is [] of rank 0"]
        yield "indices_0d", shaped(row, (5, 3), (), None), ["SCT206 error indices is [] of rank 0"]
    if row.family == CACHE:
        # A cache of rank 1 has no dimension but the batch; axis is unknown here by a wrong type
        case = shaped(row, (7,), (7,), (7,), attributes={"axis": 1.0})
        yield "data_1d", case, ["SCT107 error axis", "SCT206 error past_cache is [7] of rank 1"]


def _slices(row: Row) -> Iterator[Expected]:
    bad = "SCT203 error updates is"
    yield "indices_0d", shaped(row, (5, 3), (), (3,)), []
    yield "indices_2d", shaped(row, (11, 3), (2, 5), (2, 5, 3)), []
    yield "one_dimension", shaped(row, (7,), (2,), (2,)), []
    yield "one_of_one", shaped(row, (1,), (), ()), []
    yield "third_dimension", with_axis(row, shaped(row, (2, 3, 7), (5,), (2, 3, 5)), 2), []
    yield "third_dimension_0d", with_axis(row, shaped(row, (2, 3, 7), (), (2, 3)), 2), []
    yield "middle", with_axis(row, shaped(row, (2, 7, 3), (5, 1), (2, 5, 1, 3)), 1), []
    yield "empty", shaped(row, (5, 3), (0,), (0, 3)), ["SCT305 note indices is [0]: nothing is written"]
    yield "empty_2d", shaped(row, (5, 3), (2, 0), (2, 0, 3)), ["SCT305 note indices is [2, 0]"]
    yield "data_empty_off_axis", shaped(row, (5, 0), (2,), (2, 0)), []
    yield "longer", shaped(row, (5, 3), (3,), (2, 3)), [f"{bad} [2, 3], expected [3, 3] = data[:axis]"]
    yield "swapped", shaped(row, (5, 3), (2,), (3, 2)), [f"{bad} [3, 2], expected [2, 3]"]
    yield "rank_low", shaped(row, (5, 3), (2,), (2,)), [f"{bad} [2], expected [2, 3]"]
    yield "rank_high", shaped(row, (5, 3), (2,), (2, 3, 1)), [f"{bad} [2, 3, 1], expected [2, 3]"]
    yield "scalar_updates", shaped(row, (5,), (2,), ()), [f"{bad} [], expected [2]"]
    yield "one_element_for_0d", shaped(row, (5,), (), (1,)), [f"{bad} [1], expected []"]
    yield "other_axis", shaped(row, (5, 3), (2,), (5, 2)), [f"{bad} [5, 2], expected [2, 3]"]
    unknown = Tensor("i64", ())
    yield "unknown_axis_first", shaped(row, (5, 3), (2,), (2, 3), axis=unknown), []
    yield "unknown_axis_second", shaped(row, (5, 3), (2,), (5, 2), axis=unknown), []
    neither = shaped(row, (5, 3), (2,), (2, 2), axis=unknown)
    yield "unknown_axis_neither", neither, [f"{bad} [2, 2], expected [2, 3] or [5, 2]"]
    many = ["SCT306 note 7 indices for 5 positions"]
    yield "many", shaped(row, (5, 3), (7,), (7, 3)), many
    yield "many_2d", shaped(row, (5, 3), (7, 1), (7, 1, 3)), many
    yield "as_many", shaped(row, (5, 3), (5,), (5, 3)), []
    yield "bound_fits", shaped(row, (5, 3), (2,), ("1..4", 3)), []
    yield "bound_open", shaped(row, (5, 3), (2,), ("2..", "..3")), []
    yield "bound_excludes", shaped(row, (5, 3), (2,), ("3..7", 3)), [f"{bad} [3..7, 3], expected [2, 3]"]
    yield "bound_below", shaped(row, (5, 3), (7,), ("..6", 3)), [f"{bad} [0..6, 3]", *many]
    yield "data_bound_excludes", shaped(row, (5, "7..9"), (2,), (2, 3)), [f"{bad} [2, 3], expected [2, 7..9]"]


def _elements(row: Row) -> Iterator[Expected]:
    bad = "SCT203 error updates is"
    off, on = "SCT210 error indices is", "SCT211 warning indices is"
    is_strict = row.is_ir and row.version == 3
    yield "one_dimension", shaped(row, (7,), (2,), (2,)), []
    yield "one_of_one", shaped(row, (1,), (1,), (1,)), []
    yield "shorter", shaped(row, (5, 7), (2, 3), (2, 3)), []
    yield "equal", shaped(row, (5, 3), (5, 3), (5, 3)), []
    yield "empty", shaped(row, (5, 3), (0, 3), (0, 3)), ["SCT305 note indices is [0, 3]: nothing is written"]
    yield "empty_off_axis", shaped(row, (5, 3), (2, 0), (2, 0)), ["SCT305 note indices is [2, 0]"]
    yield "all_empty", shaped(row, (0, 3), (0, 3), (0, 3)), ["SCT305 note indices is [0, 3]"]
    yield "other", shaped(row, (5, 3), (2, 3), (3, 3)), [f"{bad} [3, 3], expected [2, 3] = indices"]
    yield "scalar_updates", shaped(row, (5, 3), (2, 3), ()), [f"{bad} [], expected [2, 3]"]
    yield "one_update", shaped(row, (5, 3), (2, 3), (1, 1)), [f"{bad} [1, 1], expected [2, 3]"]
    yield "rank_low", shaped(row, (5, 3), (2, 3), (3,)), [f"{bad} [3], expected [2, 3]"]
    yield (
        "rank_differs",
        shaped(row, (5, 3), (2,), (2,)),
        ["SCT207 error indices is [2] of rank 1, expected rank 2"],
    )
    yield "rank_above", shaped(row, (5,), (2, 1), (2, 1)), ["SCT207 error indices is [2, 1] of rank 2"]
    yield "indices_0d", shaped(row, (5,), (), ()), ["SCT207 error indices is [] of rank 0, expected rank 1"]
    yield (
        "off_axis",
        shaped(row, (5, 3), (2, 7), (2, 7)),
        [f"{off} [2, 7], longer than data [5, 3] on dimension 1"],
    )
    second = with_axis(row, shaped(row, (5, 3), (7, 2), (7, 2)), 1)
    yield "off_second", second, [f"{off} [7, 2], longer than data [5, 3] on dimension 0"]
    last = with_axis(row, shaped(row, (5, 3), (7, 2), (7, 2)), -1)
    yield "off_last", last, [f"{off} [7, 2]"]
    many = ["SCT306 note 7 indices for 5 positions"]
    longer = [f"{on} [7, 3], longer than data [5, 3] on the axis 0"] if is_strict else many
    yield "on_axis", shaped(row, (5, 3), (7, 3), (7, 3)), longer
    both = [f"{off} [7, 11]", f"{on} [7, 11]"] if is_strict else [f"{off} [7, 11]", *many]
    yield "both", shaped(row, (5, 3), (7, 11), (7, 11)), both
    if row.words:
        word = {"reduction": "sum" if row.is_ir else "add"}
        yield "on_axis_summed", shaped(row, (5, 3), (7, 3), (7, 3), attributes=word), []
    if row.is_ir:
        bounded = shaped(row, (5, 3), ("7..9", 3), ("7..9", 3))
        yield "bound_on_axis", bounded, [f"{on} [7..9, 3]"] if is_strict else []
        yield "bound_off_axis", shaped(row, (5, 3), (2, "4.."), (2, "4..")), [f"{off} [2, 4..]"]
        yield "bound_fits", shaped(row, (5, "1..3"), (2, 3), (2, "2..4")), []
        unknown = Tensor("i64", ())
        neither = shaped(row, (5, 3), (7, 11), (7, 11), axis=unknown)
        yield "unknown_axis_both", neither, [f"{off} [7, 11]"]
        one = shaped(row, (5, 3), (7, 3), (7, 3), axis=unknown)
        # Version 3 forbids it on every axis, so that the axis need not be known
        yield "unknown_axis_one", one, [f"{on} [7, 3]"] if is_strict else []


def _tuples(row: Row) -> Iterator[Expected]:
    bad, long = "SCT203 error updates is", "SCT209 error indices is"
    yield "whole", shaped(row, (5, 3), (7, 2), (7,)), []
    yield "one_tuple", shaped(row, (5, 3), (1,), (3,)), []
    yield "one_whole_tuple", shaped(row, (5, 3), (2,), ()), []
    yield "grid", shaped(row, (5, 7, 11), (2, 3, 2), (2, 3, 11)), []
    yield "one_dimension", shaped(row, (7,), (3, 1), (3,)), []
    yield "empty", shaped(row, (5, 3), (0, 1), (0, 3)), ["SCT305 note indices is [0, 1]: nothing is written"]
    yield (
        "no_coordinates",
        shaped(row, (5, 3), (1, 0), (1, 5, 3)),
        ["SCT305 note indices is [1, 0], so k is 0"],
    )
    yield "no_coordinates_1d", shaped(row, (5, 3), (0,), (5, 3)), ["SCT305 note indices is [0], so k is 0"]
    one = [] if row.is_ir else [f"{bad} [1], expected []"]
    yield "one_element_for_0d", shaped(row, (5, 3), (2,), (1,)), one
    one = [] if row.is_ir else [f"{bad} [1, 1], expected []"]
    yield "one_element_2d_for_0d", shaped(row, (5, 3), (2,), (1, 1)), one
    yield "two_elements_for_0d", shaped(row, (5, 3), (2,), (2,)), [f"{bad} [2], expected []"]
    yield "no_element_for_0d", shaped(row, (5, 3), (2,), (0,)), [f"{bad} [0], expected []"]
    yield "0d_for_one", shaped(row, (5, 3), (1, 2), ()), [f"{bad} [], expected [1]"]
    yield "other", shaped(row, (5, 3), (2, 1), (3, 3)), [f"{bad} [3, 3], expected [2, 3] = indices[:-1]"]
    yield "whole_data", shaped(row, (5, 3), (2, 1), (2, 5, 3)), [f"{bad} [2, 5, 3], expected [2, 3]"]
    yield "elements_for_slices", shaped(row, (5, 3), (2, 1), (2,)), [f"{bad} [2], expected [2, 3]"]
    yield "slices_for_elements", shaped(row, (5, 3), (7, 2), (7, 3)), [f"{bad} [7, 3], expected [7]"]
    yield "long", shaped(row, (5, 3), (2, 7), (2,)), [f"{long} [2, 7], so k is 7, expected at most 2"]
    yield "long_by_one", shaped(row, (5,), (3, 2), (3,)), [f"{long} [3, 2], so k is 2, expected at most 1"]
    yield "flat", shaped(row, (4,), (5,), (5,)), [f"{long} [5], so k is 5, expected at most 1"]
    yield "unknown_depth", shaped(row, (5, 3), (2, "?"), (2, 11)), []
    many = ["SCT306 note 7 indices for 5 positions"]
    yield "many", shaped(row, (5, 3), (7, 1), (7, 3)), many
    yield "many_in_grid", shaped(row, (2, 3), (7, 2), (7,)), ["SCT306 note 7 indices for 6 positions"]
    yield "as_many", shaped(row, (2, 3), (6, 2), (6,)), []
    if row.words:
        word = {"reduction": "sum" if row.is_ir else "add"}
        yield "many_summed", shaped(row, (5, 3), (7, 1), (7, 3), attributes=word), []
    if row.is_ir:
        yield "bound_depth", shaped(row, (5, 3), (2, "3.."), None), [f"{long} [2, 3..], so k is 3.."]
        yield "bound_depth_fits", shaped(row, (5, 3), (2, "1..7"), None), []
        yield "bound_excludes", shaped(row, (5, 3), (2, 1), ("3..", 3)), [f"{bad} [3.., 3], expected [2, 3]"]
        yield "unknown_for_0d", shaped(row, (5, 3), (2,), ("?",)), []


def _cache(row: Row) -> Iterator[Expected]:
    bad, batch = "SCT203 error update is", "SCT208 error write_indices is"
    yield "full", shaped(row, (2, 7, 3), (2,), (2, 7, 3)), []
    yield "four", shaped(row, (2, 5, 7, 3), (2,), (2, 5, 1, 3)), []
    yield "two", with_axis(row, shaped(row, (2, 7), (2,), (2, 3)), 1), []
    yield "two_last", with_axis(row, shaped(row, (2, 7), (2,), (2, 3)), -1), []
    yield "first", with_axis(row, shaped(row, (2, 7, 3), (2,), (2, 5, 3)), 1), []
    yield "too_long", shaped(row, (2, 7, 3), (2,), (2, 11, 3)), [f"{bad} [2, 11, 3], expected [2, 0..7, 3]"]
    yield "other_batch", shaped(row, (2, 7, 3), (2,), (5, 4, 3)), [f"{bad} [5, 4, 3], expected [2, 0..7, 3]"]
    yield "other_width", shaped(row, (2, 7, 3), (2,), (2, 4, 5)), [f"{bad} [2, 4, 5]"]
    yield "rank", shaped(row, (2, 7, 3), (2,), (2, 4)), [f"{bad} [2, 4], expected [2, 0..7, 3]"]
    yield "one_index", shaped(row, (2, 7, 3), (1,), (2, 4, 3)), [f"{batch} [1], expected [2] = [batch_size]"]
    yield "index_0d", shaped(row, (2, 7, 3), (), (2, 4, 3)), [f"{batch} [], expected [2]"]
    yield "index_2d", shaped(row, (2, 7, 3), (2, 1), (2, 4, 3)), [f"{batch} [2, 1], expected [2]"]
    for name, axis in (("batch", 0), ("batch_negative", -3)):
        yield (
            f"axis_{name}",
            with_axis(row, legal(row), axis),
            [f"SCT301 error axis is {axis}, the batch of data"],
        )


def _unknown(row: Row) -> Iterator[Expected]:
    """Whatever is unknown is not wrong."""
    case = legal(row)
    for role in ("data", "indices", "updates"):
        tensor: Tensor = getattr(case, role)
        yield f"unknown_rank_{role}", case.with_tensor(role, replace(tensor, shape=None)), []
        dims = ["?"] * len(tensor.shape or ())
        yield f"unknown_dims_{role}", case.with_tensor(role, replace(tensor, shape=dims)), []
    nothing = shaped(row, None, None, None, output=replace(case.data, shape=None))
    yield "unknown_ranks", nothing, []
    if not row.is_ir:
        symbols = [f"D{number}" for number in range(len(case.data.shape or ()))]
        yield "symbols", replace(case, data=replace(case.data, shape=symbols)), []


def _axes(row: Row) -> Iterator[Expected]:
    case = legal(row)
    if row.family == TUPLES:
        return
    rank = len(case.data.shape or ())
    bad = f"expected {-rank} to {rank - 1} for data"
    for axis in (rank, -rank - 1, 2**40):
        yield f"axis_{axis}", with_axis(row, case, axis), [f"SCT301 error axis is {axis}, {bad}"]
    if row.family == CACHE:
        return
    yield "axis_lowest", with_axis(row, case, -rank), []
    last = (
        shaped(row, (5, 3), (5, 2), (5, 2)) if row.family == ELEMENTS else shaped(row, (5, 3), (2,), (5, 2))
    )
    yield "axis_last", with_axis(row, last, -1), []
    yield "axis_highest", with_axis(row, last, 1), []
    unranked = replace(case, data=replace(case.data, shape=None))
    yield "axis_unranked", with_axis(row, unranked, 7), []
    if not row.has_axis_input:
        return
    for type in _INTEGERS_OF_TESTS:
        yield f"axis_const_{type}", replace(case, axis=Tensor(type, (), 0)), []
    yield "axis_one", replace(case, axis=Tensor("i64", (1,), [0])), []
    yield "axis_one_bad", replace(case, axis=Tensor("i32", (1,), [7])), [f"SCT301 error axis is 7, {bad}"]
    for name, shape in (("scalar", ()), ("any", None), ("bound", ("..3",))):
        yield f"axis_{name}_unknown", replace(case, axis=Tensor("i64", shape)), []
    wrong = replace(case, axis=Tensor("i64", ("2..3",)))
    yield "axis_shape", wrong, ["SCT212 error axis is [2..3], expected [] or [1]"]


def _stored(row: Row) -> Iterator[Expected]:
    case, names = legal(row), _names(row)
    shape = list(case.data.shape or ())
    other = [11, *shape[1:]]
    name = "present_cache" if row.family == CACHE else "output"
    stored = replace(case, output=replace(case.data, shape=other))
    yield "stored_shape", stored, [f"SCT501 warning the stored shape of {name} is {_show(other)}, expected"]
    half = "f16" if row.is_ir else "float16"
    stored = replace(case, output=replace(case.data, type=half))
    yield "stored_type", stored, [f"SCT502 warning the stored type of {name} is {half}, expected"]
    yield "stored_unknown", replace(case, output=replace(case.data, shape=["?"] * len(shape))), []
    if not row.is_ir:
        return
    yield "stored_dynamic", replace(case, output=replace(case.data, type="dynamic")), []
    roles = ("data", "indices", "updates", "axis") if row.has_axis_input else ("data", "indices", "updates")
    for role in roles:
        tensor: Tensor = getattr(case, role)
        dims = [11, *list(tensor.shape or ())[1:]]
        wrong = replace(case, stored={role: replace(tensor, shape=dims)})
        expected = f"SCT503 warning the stored shape of {names[role]} is {_show(dims)}, but what flows in is"
        yield f"stored_input_{role}", wrong, [expected]
        type = "i16" if tensor.type == "i64" else "f16"
        wrong = replace(case, stored={role: replace(tensor, type=type)})
        expected = (
            f"SCT504 warning the stored type of {names[role]} is {type}, but what flows in is {tensor.type}"
        )
        yield f"stored_input_type_{role}", wrong, [expected]
        unknown = replace(
            case, stored={role: replace(tensor, shape=["?"] * len(tensor.shape or ()), type="dynamic")}
        )
        yield f"stored_input_unknown_{role}", unknown, []


def _show(dims: list[int | str]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _values(row: Row) -> Iterator[Expected]:
    """Constant indices that count on a dimension of size 5."""
    case = legal(row)
    first = {SLICES: "[0]", ELEMENTS: "[0, 0]", TUPLES: "[0, 0]"}[row.family]
    second = {SLICES: "[1]", ELEMENTS: "[1, 0]", TUPLES: "[1, 0]"}[row.family]

    def indices(*values: int, **more: Any) -> Case:
        """Give each of the two rows of indices one value."""
        width = 3 if row.family == ELEMENTS else 1
        spread = [value for value in values for _ in range(width)]
        return replace(case, indices=replace(case.indices, values=spread), **more)

    # Version 3 forbids what its runtimes take as meant: either range may be named
    range_of_5 = "" if str(row) == "ScatterElementsUpdate-3" else "-5 to 4" if row.wraps else "0 to 4"
    yield "inside", indices(4, 0), []
    yield "above", indices(5, 0), [f"SCT302 error indices{first} is 5, expected {range_of_5}"]
    yield "far", indices(0, 2**40), [f"SCT302 error indices{second} is {2**40}, expected {range_of_5}"]
    yield "below", indices(0, -6), [f"SCT302 error indices{second} is -6, expected {range_of_5}"]
    severity = "warning" if row.family == ELEMENTS else "error"
    for name, value in (("last", -1), ("lowest", -5)):
        expected = [f"SCT303 {severity} indices{second} is {value}, expected 0 to 4 in {row}"]
        yield f"negative_{name}", indices(3, value), [] if row.wraps else expected
    two = indices(-6, 5)
    yield (
        "two_outside",
        two,
        [f"SCT302 error indices{first} is -6, expected {range_of_5}"],
    )
    unknown: Dims = ("?", 3)
    yield "unknown_size", indices(100, 7, data=replace(case.data, shape=unknown)), []
    expected = [f"SCT303 {severity} indices{second} is -1, expected 0 at least in {row}"]
    yield (
        "unknown_size_negative",
        indices(3, -1, data=replace(case.data, shape=unknown)),
        [] if row.wraps else expected,
    )
    unranked = replace(case.data, shape=None)
    yield "unknown_rank", indices(100, 7, data=unranked), []
    empty = indices(0, 1, data=replace(case.data, shape=(0, 3)))
    extra = ["SCT211 warning indices"] if row.is_ir and row.version == 3 and row.family == ELEMENTS else []
    yield "no_size", empty, [f"SCT302 error indices{first} is 0, expected none", *extra]
    if row.is_ir:
        bounded = replace(case.data, shape=("2..4", 3))
        yield "bound_inside", indices(0, 3, data=bounded), []
        yield (
            "bound_above",
            indices(0, 4, data=bounded),
            [f"SCT302 error indices{second} is 4, expected"],
        )
    yield from _repeats(row)
    if row.family == TUPLES:
        yield from _coordinates(row)
    for type in row.index_types if row.is_ir else ():
        if type in _INTEGERS_OF_TESTS and row.family == SLICES:
            typed = replace(case.indices, type=type, values=[1, 127])
            yield f"value_{type}", replace(case, indices=typed), ["SCT302 error indices[1] is 127"]
    whole = replace(
        case.indices,
        type="f32" if row.is_ir else "float",
        values=[7.0] * (6 if row.family == ELEMENTS else 2),
    )
    yield "value_float", replace(case, indices=whole), ["SCT204 error indices is"]


def _count(row: Row, rows: int) -> int:
    return rows * 3 if row.family == ELEMENTS else rows


def _repeats(row: Row) -> Iterator[Expected]:
    case = legal(row)
    width = 3 if row.family == ELEMENTS else 1
    total = 2 * width
    what = "tuples" if row.family == TUPLES else "indices"

    def indices(values: list[int], **more: Any) -> Case:
        return replace(case, indices=replace(case.indices, values=values), **more)

    twice = [f"SCT304 warning {width} of {total} {what} repeat a target"]
    yield "repeated", indices([3] * total), twice
    yield "repeated_unknown_size", indices([3] * total, data=replace(case.data, shape=("?", 3))), twice
    if row.wraps:
        yield "repeated_negative", indices([4] * width + [-1] * width), twice
    for word in row.words:
        expected = twice if word == "none" else []
        yield f"repeated_{word}", indices([3] * total, attributes={"reduction": word}), expected
    if row.version == 16:
        yield (
            "repeated_undocumented",
            indices([3] * total, attributes={"reduction": "max"}),
            ["SCT105 warning"],
        )
    if row.family == ELEMENTS:
        yield "columns_apart", indices([1, 1, 1, 2, 2, 2]), []
        yield (
            "one_column",
            indices([1, 2, 3, 0, 2, 1]),
            ["SCT304 warning 1 of 6 indices repeat a target, first at [1, 1]"],
        )
        rows = with_axis(row, indices([1, 2, 0, 1, 2, 0]), 1)
        yield "rows_apart", rows, []
        row_twice = with_axis(row, indices([1, 2, 0, 1, 2, 1]), 1)
        yield (
            "one_row",
            row_twice,
            ["SCT304 warning 1 of 6 indices repeat a target, first at [1, 2] that of [1, 0]"],
        )


def _coordinates(row: Row) -> Iterator[Expected]:
    pairs = shaped(row, (5, 3), (2, 2), (2,))

    def tuples(*values: int) -> Case:
        return replace(pairs, indices=replace(pairs.indices, values=list(values)))

    yield "pairs", tuples(1, 2, 2, 1), []
    yield (
        "pair_twice",
        tuples(1, 2, 1, 2),
        ["SCT304 warning 1 of 2 tuples repeat a target, first at [1] that of [0]"],
    )
    low, lower = (-3, -5) if row.wraps else (0, 0)
    yield "pair_second", tuples(4, 2, 0, 3), [f"SCT302 error indices[1, 1] is 3, expected {low} to 2"]
    yield "pair_first", tuples(5, 2, 0, 1), [f"SCT302 error indices[0, 0] is 5, expected {lower} to 4"]
    yield "pair_below", tuples(4, -4, 0, 1), [f"SCT302 error indices[0, 1] is -4, expected {low} to 2"]
    expected = [f"SCT303 error indices[0, 1] is -3, expected 0 to 2 in {row}"]
    yield "pair_negative", tuples(4, -3, 0, 1), [] if row.wraps else expected
    if row.wraps:
        yield "pair_alike", tuples(4, -1, -1, 2), ["SCT304 warning 1 of 2 tuples"]
    none = shaped(row, (5, 3), (2, 0), (2, 5, 3))
    empty = replace(none, indices=replace(none.indices, values=[]))
    yield (
        "no_coordinates_twice",
        empty,
        ["SCT305 note indices is [2, 0], so k is 0", "SCT304 warning 1 of 2 tuples"],
    )
