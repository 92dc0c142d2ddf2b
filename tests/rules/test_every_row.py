"""What each row of the table says, held against `rows.py`: a legal node with exactly one thing broken at a time.

What rules say beyond that is in the case files. An expectation is "CODE severity words of the message"; a
case without one is clean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ir_scatter import Diagnostic, read, validate
from ir_scatter.ops.lookup import SPECS
from tests.rules.cases import Case, Tensor, legal, onnx_model, shaped, with_axis, write_ir
from tests.rules.rows import CACHE, ELEMENTS, IR_TYPES, ONNX_TYPES, ROWS, SLICES, TUPLES, Row

Expected: TypeAlias = tuple[str, Case, list[str]]

WORDS = ("none", "sum", "sub", "prod", "min", "max", "mean", "add", "mul", "SUM", "NONE", "ADD", "other", "")


def every_case(row: Row) -> Iterator[Expected]:
    """Yield name, case and expectations."""
    yield "legal", legal(row), []
    yield from _ports(row)
    yield from _attributes(row)
    yield from _words(row)
    yield from _types(row)
    yield from _ranks(row)
    yield from _shapes(row)
    yield from _unknown(row)
    if row.family != TUPLES:
        yield from _axes(row)
    if row.family != CACHE:
        yield from _values(row)


def _names(row: Row) -> dict[str, str]:
    if row.family == CACHE:
        return {"data": "past_cache", "updates": "update", "indices": "write_indices"}
    return {name: name for name in ("data", "indices", "updates", "axis")[: 4 if row.has_axis_input else 3]}


def _ports(row: Row) -> Iterator[Expected]:
    case, names = legal(row), _names(row)
    missing = {role: f"SCT101 error {name} is missing" for role, name in names.items()}
    if row.family == CACHE:
        del missing["indices"]
    for role in list(names)[-1:] if row.is_ir else names:
        expected = [missing[role]] if role in missing else []
        yield f"missing_{role}", replace(case, dropped=frozenset({role})), expected
    yield "missing_all", replace(case, dropped=frozenset(names)), list(missing.values())
    two = replace(case, extra=[case.data, case.data])
    yield "superfluous", two, [f"SCT102 error input {len(names) + n} is superfluous" for n in range(2)]
    yield "two_outputs", replace(case, outputs=2), ["SCT109 error the node has 2 outputs, expected 1"]
    if row.is_ir:
        yield "no_output", replace(case, outputs=0), ["SCT109 error the node has 0 outputs, expected 1"]
    stored = replace(case, output=replace(case.data, shape=[11, *(case.data.shape or ())[1:]]))
    output = "present_cache" if row.family == CACHE else "output"
    yield "stored_shape", stored, [f"SCT501 warning the stored shape of {output} is [11, "]


def _attributes(row: Row) -> Iterator[Expected]:
    def attributes(**written: Any) -> Case:
        return replace(legal(row), attributes=written)

    word = "sum" if row.is_ir else "add"
    yield (
        "unknown_attribute",
        attributes(depth="1"),
        ["SCT103 error attribute depth is not in the specification"],
    )
    if row.is_ir or row.family == TUPLES:
        yield "axis_attribute", attributes(axis="1"), ["SCT103 error attribute axis"]
    else:
        for name, value in (("float", 1.0), ("text", "1"), ("list", [1])):
            yield f"axis_{name}", attributes(axis=value), ["SCT107 error axis is a"]
    if row.later:
        lowered = "warning" if row.is_ir else "error"
        yield "later", attributes(reduction=word), [f"SCT104 error attribute reduction is '{word}'"]
        yield "later_none", attributes(reduction="none"), [f"SCT104 {lowered} attribute reduction is 'none'"]
    elif not row.words:
        yield "reduction_of_none", attributes(reduction=word), ["SCT103 error attribute reduction"]
    elif not row.is_ir:
        yield "reduction_int", attributes(reduction=1), ["SCT107 error reduction is a"]
        yield "reduction_list", attributes(reduction=["add"]), ["SCT107 error reduction is a"]
    if "use_init_val" in row.later:
        written = attributes(use_init_val="false")
        yield "later_init", written, ["SCT104 error attribute use_init_val is 'false'"]
    if row.words and row.is_ir and row.family == ELEMENTS:
        for text in ("TRUE", "0", "no", ""):
            expected = [] if text in ("TRUE", "0") else [f"SCT106 error use_init_val is '{text}'"]
            yield f"init_{text}", attributes(reduction="sum", use_init_val=text), expected
        yield "init_alone", attributes(use_init_val="0"), ["SCT108 note use_init_val is false"]


def _words(row: Row) -> Iterator[Expected]:
    case = legal(row)
    for word in WORDS if row.words else ():
        is_meant = word.lower() in row.words if row.is_ir else row.version == 16 and word in ("min", "max")
        severity = "warning" if is_meant else "error"
        wrong = [f"SCT105 {severity} reduction is '{word}', expected {', '.join(row.words)}"]
        attributes = {"reduction": word}
        yield f"word_{word}", replace(case, attributes=attributes), [] if word in row.words else wrong
        if word in row.words and "boolean" in row.data_types:
            data, updates = replace(case.data, type="boolean"), replace(case.updates, type="boolean")
            masks = replace(case, data=data, updates=updates, attributes=attributes)
            no_mean = ["SCT213 error reduction is mean on boolean data"]
            yield f"boolean_{word}", masks, no_mean if word == "mean" else []
    for mode in ("linear", "circular", "ring", "Linear", 1) if row.family == CACHE else ():
        wrong = ["SCT107 error mode is a" if mode == 1 else "SCT105 error mode is '"]
        is_known = mode in ("linear", "circular")
        yield f"mode_{mode}", replace(case, attributes={"mode": mode}), [] if is_known else wrong


def _types(row: Row) -> Iterator[Expected]:
    case, names = legal(row), _names(row)
    for type in IR_TYPES if row.is_ir else ONNX_TYPES:
        data = replace(case, data=replace(case.data, type=type), updates=replace(case.updates, type=type))
        wrong = [f"SCT201 error {names['data']} is {type}"]
        if type == "boolean":
            wrong = ["SCT214 warning data is boolean, expected a numeric type"]
        yield f"data_{type}", data, [] if type in row.data_types else wrong
        is_index = type in row.index_types
        indices = replace(case, indices=replace(case.indices, type=type))
        yield (
            f"indices_{type}",
            indices,
            [] if is_index else [f"SCT204 error {names['indices']} is {type}, e"],
        )
        if row.has_axis_input:
            wrong = [f"SCT205 error axis is {type}, expected"]
            yield f"axis_type_{type}", replace(case, axis=Tensor(type, ())), [] if is_index else wrong
    other = "f16" if row.is_ir else "float16"
    mixed = replace(case, updates=replace(case.updates, type=other))
    yield "mixed", mixed, [f"SCT202 error {names['updates']} is {other}, expected {case.data.type} like"]
    for role in ("data", "indices", "updates"):
        tensor = replace(getattr(case, role), type="dynamic" if row.is_ir else "undefined")
        yield f"unknown_type_{role}", case.with_tensor(role, tensor), []


def _ranks(row: Row) -> Iterator[Expected]:
    expected = ["SCT206 error data is [] of rank 0"]
    if row.family == TUPLES:
        yield "data_0d", shaped(row, (), (2, "?"), None), expected
        yield "indices_0d", shaped(row, (5, 3), (), None), ["SCT206 error indices is [] of rank 0"]
    elif row.family == CACHE:
        # A cache of rank 1 has no dimension but the batch; axis is unknown here by a wrong type
        case = shaped(row, (7,), (7,), (7,), attributes={"axis": 1.0})
        yield "data_1d", case, ["SCT107 error axis", "SCT206 error past_cache is [7] of rank 1"]
    elif row.is_ir:
        indices = (2,) if row.family == SLICES else ()
        yield "data_0d", shaped(row, (), indices, None, axis=Tensor("i64", ())), expected


def _shapes(row: Row) -> Iterator[Expected]:
    bad, unknown = "SCT203 error updates is", Tensor("i64", ())
    many = ["SCT306 warning 7 indices for 5 positions"]
    if row.family == SLICES:
        yield "indices_2d", shaped(row, (11, 3), (2, 5), (2, 5, 3)), []
        yield "longer", shaped(row, (5, 3), (3,), (2, 3)), [f"{bad} [2, 3], expected [3, 3] = data[:axis]"]
        yield "one_element_for_0d", shaped(row, (5,), (), (1,)), [f"{bad} [1], expected []"]
        neither = shaped(row, (5, 3), (2,), (2, 2), axis=unknown)
        yield "unknown_axis", neither, [f"{bad} [2, 2], expected [2, 3] or [5, 2]"]
        yield "bound_below", shaped(row, (5, 3), (7,), ("..6", 3)), [f"{bad} [0..6, 3]", *many]
    if row.family == ELEMENTS:
        on, off = "SCT211 warning indices is", "SCT210 error indices is"
        is_strict = row.is_ir and row.version == 3
        yield "other", shaped(row, (5, 3), (2, 3), (3, 3)), [f"{bad} [3, 3], expected [2, 3] = indices"]
        longer = [f"{on} [7, 3], longer than data [5, 3] on the axis 0"] if is_strict else many
        yield "on_axis", shaped(row, (5, 3), (7, 3), (7, 3)), longer
        yield "off_axis", shaped(row, (5, 3), (2, 7), (2, 7)), [f"{off} [2, 7], longer than data [5, 3] on"]
        yield "rank_differs", shaped(row, (5, 3), (2,), (2,)), ["SCT207 error indices is [2] of rank 1"]
        if row.is_ir:  # version 3 forbids it on every axis, so that the axis need not be known
            one = shaped(row, (5, 3), (7, 3), (7, 3), axis=unknown)
            yield "unknown_axis", one, [f"{on} [7, 3]"] if is_strict else []
    if row.family == TUPLES:
        yield "other", shaped(row, (5, 3), (2, 1), (3, 3)), [f"{bad} [3, 3], expected [2, 3] = indices[:-1]"]
        one_element = [] if row.is_ir else [f"{bad} [1, 1], expected []"]
        yield "one_element_for_0d", shaped(row, (5, 3), (2,), (1, 1)), one_element
        yield "flat", shaped(row, (4,), (5,), (5,)), ["SCT209 error indices is [5], so k is 5"]
        yield "many", shaped(row, (5, 3), (7, 1), (7, 3)), many
    if row.family == CACHE:
        wrong = ["SCT203 error update is [2, 11, 3], expected [2, 0..7, 3]"]
        yield "too_long", shaped(row, (2, 7, 3), (2,), (2, 11, 3)), wrong
        one_start = ["SCT208 error write_indices is [1], expected [2] = [batch_size]"]
        yield "one_index", shaped(row, (2, 7, 3), (1,), (2, 4, 3)), one_start
    if row.words:
        word, indices = "sum" if row.is_ir else "add", (7, 3) if row.family == ELEMENTS else (7, 1)
        yield "summed", shaped(row, (5, 3), indices, (7, 3), attributes={"reduction": word}), []


OF_OPEN_SIZES = {"SCT215", "SCT308"}
"""Notes that an open size must be a certain one: true of most cases here that leave sizes open."""


def _unknown(row: Row) -> Iterator[Expected]:
    """Whatever is unknown is not wrong."""
    case = legal(row)
    for role in ("data", "indices", "updates"):
        tensor: Tensor = getattr(case, role)
        yield f"unknown_rank_{role}", case.with_tensor(role, replace(tensor, shape=None)), []
        dims = ["?" if row.is_ir else f"D{number}" for number in range(len(tensor.shape or ()))]
        yield f"unknown_dims_{role}", case.with_tensor(role, replace(tensor, shape=dims)), []
    yield "unknown_ranks", shaped(row, None, None, None, output=replace(case.data, shape=None)), []


def _axes(row: Row) -> Iterator[Expected]:
    case = legal(row)
    rank = len(case.data.shape or ())
    for axis in (rank, -rank - 1, 2**40):
        wrong = [f"SCT301 error axis is {axis}, expected {-rank} to {rank - 1} for data"]
        yield f"axis_{axis}", with_axis(row, case, axis), wrong
    for axis in (0, -rank):
        batch = [f"SCT301 error axis is {axis}, the batch dimension of data"]
        yield f"axis_{axis}", with_axis(row, case, axis), batch if row.family == CACHE else []
    if row.has_axis_input:
        wrong = ["SCT212 error axis is [2..3], expected [] or [1]"]
        yield "axis_shape", replace(case, axis=Tensor("i64", ("2..3",))), wrong
        yield "axis_of_rank_1", replace(case, axis=Tensor("i64", ("..3",))), []


def _values(row: Row) -> Iterator[Expected]:
    """Constant indices that count on a dimension of size 5."""
    case = legal(row)
    width = 3 if row.family == ELEMENTS else 1
    first, second = ("[0]", "[1]") if row.family == SLICES else ("[0, 0]", "[1, 0]")

    def indices(*values: int, **more: Any) -> Case:
        """Give each of the two rows of indices one value."""
        spread = [value for value in values for _ in range(width)]
        return replace(case, indices=replace(case.indices, values=spread), **more)

    # Version 3 forbids what its runtimes take as meant: either range may be named
    is_lowered = str(row) == "ScatterElementsUpdate-3"
    legal_range = "" if is_lowered else "-5 to 4" if row.wraps else "0 to 4"
    yield "inside", indices(4, 0), []
    yield "above", indices(5, 0), [f"SCT302 error indices{first} is 5, expected {legal_range}"]
    yield "far", indices(0, 2**40), [f"SCT302 error indices{second} is {2**40}, expected {legal_range}"]
    yield "below", indices(0, -6), [f"SCT302 error indices{second} is -6, expected {legal_range}"]
    severity = "warning" if is_lowered else "error"
    for value in (-1, -5):
        expected = [f"SCT303 {severity} indices{second} is {value}, expected 0 to 4 in {row}"]
        yield f"negative_{value}", indices(3, value), [] if row.wraps else expected
    unknown_size = indices(3, -1, data=replace(case.data, shape=("?", 3)))
    expected = [f"SCT303 {severity} indices{second} is -1, expected 0 at least in {row}"]
    yield "negative_of_unknown_size", unknown_size, [] if row.wraps else expected
    empty = indices(0, 1, data=replace(case.data, shape=(0, 3)))
    longer = ["SCT211 warning indices"] if is_lowered else []
    yield "no_size", empty, [f"SCT302 error indices{first} is 0, expected no index", *longer]
    whole = replace(case.indices, type="f32" if row.is_ir else "float", values=[7.0] * 2 * width)
    yield "value_float", replace(case, indices=whole), ["SCT204 error indices is"]
    what = "tuples" if row.family == TUPLES else "indices"
    twice = [f"SCT304 warning {width} of {2 * width} {what} repeat a target"]
    yield "repeated", indices(3, 3), twice
    yield "repeated_unknown_size", indices(3, 3, data=replace(case.data, shape=("?", 3))), twice
    yield "unknown_rank", indices(100, 7, data=replace(case.data, shape=None)), []
    if row.family == TUPLES:
        none = shaped(row, (5, 3), (2, 0), (2, 5, 3))
        both = ["SCT304 warning 1 of 2 tuples", "SCT305 note indices is [2, 0], so k is 0"]
        yield "no_coordinates", replace(none, indices=replace(none.indices, values=[])), both
    if row.wraps:
        yield "repeated_negative", indices(4, -1), twice
    for word in row.words:
        case_of_word = indices(3, 3, attributes={"reduction": word})
        yield f"repeated_{word}", case_of_word, twice if word == "none" else []


def found(row: Row, cases: Mapping[str, Case], folder: Path) -> dict[str, list[Diagnostic]]:
    """Validate one model that holds every case as a node of its own; return what is found in each."""
    if row.is_ir:
        path = write_ir(row, cases, folder)
    else:
        path = str(folder / "model.onnx")
        Path(path).write_bytes(onnx_model(row, cases).SerializeToString())
    grouped: dict[str, list[Diagnostic]] = {name: [] for name in cases}
    for diagnostic in validate(read(path)):
        assert diagnostic.node is not None
        assert (diagnostic.node.type, diagnostic.node.version) == (row.type, row.version)
        grouped[diagnostic.node.name].append(diagnostic)
    return grouped


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_exactly_what_is_broken_is_found(row: Row, tmp_path: Path) -> None:
    cases = {name: case for name, case, _ in every_case(row)}
    expectations = {name: texts for name, _, texts in every_case(row)}
    assert len(cases) == len(list(every_case(row))), "a case has a name twice"
    always = []
    if row.type == "Scatter":
        severity = "warning" if row.version == 9 else "error"
        words = "legal here, deprecated at opset 11" if row.version == 9 else "Scatter is deprecated"
        always = [f"SCT401 {severity} {words}"]
    # Of an attribute that is a list inference makes an error: such a case has a model of its own.
    together = {name: case for name, case in cases.items() if not name.endswith("_list")}
    diagnostics = found(row, together, tmp_path)
    for name in cases.keys() - together.keys():
        diagnostics |= found(row, {name: cases[name]}, tmp_path)
    other = {}
    for name, expected in expectations.items():
        shown = [one for one in diagnostics[name] if one.code not in OF_OPEN_SIZES]
        texts = sorted(f"{one.code} {one.severity} {one.message}" for one in shown)
        starts = sorted([*expected, *always])
        if len(texts) != len(starts) or not all(map(str.startswith, texts, starts)):
            other[name] = texts, starts
    assert other == {}


def test_the_table_has_exactly_these_rows() -> None:
    assert {(key.type, key.version) for key in SPECS} == {(row.type, row.version) for row in ROWS}
