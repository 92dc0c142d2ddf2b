"""What operators of OpenVINO take, against OpenVINO itself: its opsets, and uses drawn at random."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ir_scatter.core.element_types import ELEMENT_TYPES, OPENVINO_TYPES
from ir_scatter.core.model import OperatorUse
from ir_scatter.core.shapes import UNKNOWN_DIM
from ir_scatter.ops.general import ROWS
from ir_scatter.ops.general_use import outputs, problem
from ir_scatter.ops.lookup import is_scatter
from ir_scatter.ops.openvino_opsets import Signature, find, show_opsets, signatures
from tests.campaigns.children import Child
from tests.models.ir_text import IrText
from tests.ops.drawn_uses import ATTRIBUTES, drawn, write
from tests.scale import cases, generator, in_part_and_whole, thinned

F32, I64, BOOLEAN = (ELEMENT_TYPES[name] for name in ("f32", "i64", "boolean"))
_LACKING = "doesn't contain the operation with type"
_SUGAR = {"constant", "absolute", "ceil", "ifop", "ops"}
_WITH_BODIES = {"If", "Loop", "TensorIterator"}
_ENDS_THE_PROCESS = {"Broadcast": 2, "MaxPool": 1}
"""Types that end OpenVINO's process with fewer inputs than these."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[IrText], str]]:
    """What OpenVINO says of a model that it does not read."""
    pytest.importorskip("openvino")
    folder, child = tmp_path_factory.mktemp("uses"), Child("tests.campaigns.test_ir_reader", "theirs")

    def ask(ir: IrText) -> str:
        found = child.ask(Path(ir.write(folder)))
        return "the process ended" if found is None else str(found["said"])

    yield ask
    child.close()


def use_of(type: str, opset: int, types: list[str], shape: tuple[int, ...] | None = None) -> IrText:
    """Write one node; inputs of type and rank that are not known are of type "dynamic"."""
    ir = IrText()
    sources = [ir.parameter(f"p{port}", one, shape) for port, one in enumerate(types)]
    node = ir.add("n", type, f"opset{opset}", sources, [("f32", ())], {"variable_id": "v"})
    ir.add("result", "Result", "opset1", [node], [])
    return ir


def some_signatures(is_whole: bool) -> Iterator[Sequence[Signature]]:
    return islice(signatures().values(), 0, None, 1 if is_whole else 5)


@pytest.mark.openvino
@in_part_and_whole
def test_operators_are_in_these_opsets_and_in_no_others(
    said: Callable[[IrText], str], is_whole: bool
) -> None:
    wrong = []
    for found in some_signatures(is_whole):
        type, opsets = found[0].type, {opset for one in found for opset in one.opsets}
        ends = {end + by for end in (min(opsets), max(opsets)) for by in (-1, 0, 1)} & {*range(1, 18)}
        for opset in sorted(ends | ({*range(min(opsets), max(opsets))} - opsets)):
            inputs = ["dynamic"] * _ENDS_THE_PROCESS.get(found[0].type, 0)
            is_lacking = _LACKING in said(use_of(type, opset, inputs))
            wrong += [(type, opset)] if is_lacking == (opset in opsets) else []
    assert wrong == []


@pytest.mark.openvino
def test_no_operator_is_left_out() -> None:
    pytest.importorskip("openvino")
    left_out = set[str]()
    for opset in range(1, 18):
        module = import_module(f"openvino.opset{opset}")
        names = {name.replace("_", "") for name in dir(module) if name[0].islower()}
        known = {*signatures(), *_SUGAR}
        left_out |= {name for name in names - known if not is_scatter(name)}
    assert left_out == set()
    internal = {"rms"}  # made by OpenVINO's own passes
    types = {row.type_in("openvino").lower() for row in ROWS if row.type_in("openvino")}
    assert types - {*signatures()} == internal


@pytest.mark.openvino
@in_part_and_whole
def test_other_numbers_of_inputs_are_refused(said: Callable[[IrText], str], is_whole: bool) -> None:
    taken = []
    for found in some_signatures(is_whole):
        for one in found:
            if one.least is None or one.type in {"Const", "ReadValue"}:
                continue
            wrong = {one.least - 1} if one.repeats else {one.least - 1, len(one.inputs) + 1}
            for count in wrong - {-1} - {*range(_ENDS_THE_PROCESS.get(one.type, 0))}:
                ir = use_of(one.type, one.opsets[-1], ["dynamic"] * count)
                taken += [] if said(ir) else [(one, count)]
    assert taken == []


@pytest.mark.openvino
@in_part_and_whole
def test_element_types_that_an_input_is_not_to_have_are_refused(
    said: Callable[[IrText], str], is_whole: bool
) -> None:
    taken = []
    for found in some_signatures(is_whole):
        for one in found:
            if one.least is None or one.type in _WITH_BODIES:
                continue
            letters = one.inputs[: one.least]
            for port, letter in enumerate(letters):
                for name in ("f32", "f8e4m3", "i64", "boolean") if letter not in "_T" else ():
                    types = ["dynamic"] * len(letters)
                    types[port] = name
                    known = [ELEMENT_TYPES.get(type) for type in types]
                    use = OperatorUse(
                        one.type, f"opset{one.opsets[-1]}", {}, known, [None] * len(types), lambda port: None
                    )
                    wrong = problem(use)
                    if wrong is not None and wrong.part.name == "type":
                        taken += [] if said(use_of(one.type, one.opsets[-1], types)) else [(one, types)]
    assert taken == []


SHAPED = [
    *[
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Broadcast",
        "Tile",
        "Concat",
        "Split",
        "VariadicSplit",
        "Gather",
        "GatherND",
        "Slice",
    ],
    *[
        "GatherElements",
        "StridedSlice",
        "ShapeOf",
        "NonZero",
        "Range",
        "Convert",
        "ConvertLike",
        "Add",
        "Select",
        "Less",
        "LogicalAnd",
    ],
    *["MatMul", "ReduceSum", "ReduceL1", "OneHot", "Pad", "Abs"],
]


@pytest.mark.openvino
@pytest.mark.parametrize("of", thinned(["shapes", "everything"], 2))
def test_uses(of: str, tmp_path: Path, figures: Counter[str]) -> None:
    """Nothing is refused here that OpenVINO takes; of what it refuses, most is."""
    pytest.importorskip("openvino")
    child = Child("tests.campaigns.test_ir_reader", "theirs")
    every = [one for found in signatures().values() for one in found if one.type not in _WITH_BODIES]
    every = [one for one in every if one.type not in {"Assign", "ReadValue", "Const", "Parameter", "Result"}]
    some = [one for one in every if one.type in SHAPED]
    assert {*SHAPED} <= {one.type for one in some}
    assert {*ATTRIBUTES} <= {one.type for one in every}
    wrong = []
    try:
        for number in cases(30):
            chance = generator(f"uses {of}", number)
            found = drawn(chance, chance.choice(some if of == "shapes" else every))
            if len(found.use.types) < _ENDS_THE_PROCESS.get(found.use.type, 0):
                continue
            said = child.ask(write(found, tmp_path))
            ours, is_refused = problem(found.use), said is None or bool(said["said"])
            figures[
                f"{'refused' if ours else 'taken'}, by OpenVINO {'refused' if is_refused else 'taken'}"
            ] += 1
            if ours and not is_refused:
                wrong.append((number, ours.message))
    finally:
        child.close()
    assert wrong == []
    if of == "shapes":
        assert figures["refused, by OpenVINO refused"] > 5 * figures["taken, by OpenVINO refused"]


def use(type: str, opset: str | None = "opset1", **facts: object) -> OperatorUse:
    given = {"attributes": {}, "types": [], "shapes": [], "numbers": lambda port: None} | facts
    return OperatorUse(type, opset, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("opset", ["extension", "custom_ops", "7", "", None, "Opset1"])
def test_an_extension_may_bring_any_operator(opset: str | None) -> None:
    assert problem(use("Mine", opset)) is None
    found = problem(use("Add", opset))
    assert (found and found.kind) == (None if opset is None else "custom-version")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (use("Mine"), "opset1 has no operator 'Mine'"),
        (use("Slice"), "Slice is not in opset1, expected opset8 to opset16"),
        (use("reverse", "opset2"), "reverse is not in opset2, expected opset1"),
        (use("Add", "opset99"), "Add is not in opset99, expected opset1 to opset16"),
        (use("ROIPooling", types=[F32]), "ROIPooling has 1 input, expected 2"),
        (use("Squeeze"), "Squeeze has 0 inputs, expected 1 to 2"),
        (use("Concat"), "Concat has 0 inputs, expected 1 or more"),
        (
            use("Add", types=[F32, I64], shapes=[None, None]),
            "input 1 of Add is i64, expected f32 like input 0",
        ),
        (use("Abs", types=[BOOLEAN], shapes=[None]), "input 0 of Abs is boolean, expected a number"),
        (
            use("Slice", "opset8", types=[F32, I64, I64, I64], shapes=[(3,), (), (1,), (1,)]),
            "input 1 of Slice is [], expected a list",
        ),
        (
            use("Concat", types=[F32], shapes=[(2,)], attributes={"axis": "x"}),
            "attribute axis of Concat is 'x', expected a number",
        ),
        (
            use("ShapeOf", "opset3", types=[F32], shapes=[(2,)]),
            "attribute output_type of ShapeOf is missing, expected i32 or i64",
        ),
        (
            use("Add", types=[F32, F32], shapes=[(2, 3), (2, 5)]),
            "Add does not accept inputs of shapes [2, 3], [2, 5]: 3 and 5 differ",
        ),
    ],
)
def test_sentences(wrong: OperatorUse, message: str) -> None:
    found = problem(wrong)
    assert found is not None
    assert found.message == message
    assert found.kind == "misused-operator"


@pytest.mark.parametrize(
    ("type", "opset", "facts", "made"),
    [
        ("Convert", "opset1", {"attributes": {"destination_type": "i64"}}, ("i64", (2, 3))),
        ("Convert", "opset1", {"attributes": {"destination_type": "dynamic"}}, (None, (2, 3))),
        ("ShapeOf", "opset3", {"attributes": {"output_type": "i32"}}, ("i32", None)),
        ("ShapeOf", "opset1", {"attributes": {"output_type": "i32"}}, ("i64", None)),
        ("Greater", "opset1", {"types": [F32] * 2, "shapes": [(2, 3), (3,)]}, ("boolean", (2, 3))),
        ("Add", "opset1", {"types": [F32] * 2, "shapes": [(2, UNKNOWN_DIM), (3,)]}, ("f32", (2, 3))),
        ("Add", "opset1", {"types": [F32] * 2, "shapes": [(2, 3), (5,)]}, ("f32", None)),
        ("Squeeze", "opset1", {"types": [F32, I64], "shapes": [(1, 3), None]}, ("f32", None)),
        (
            "Slice",
            "opset8",
            {"types": [F32, *[I64] * 4], "shapes": [(4, 3), *[(1,)] * 3, None]},
            ("f32", None),
        ),
        ("Mystery", "opset1", {}, None),
        ("Add", "extension", {"types": [F32] * 2, "shapes": [(2, 3), (3,)]}, None),
    ],
)
def test_what_is_made(type: str, opset: str, facts: dict[str, object], made: object) -> None:
    found = [*outputs(use(type, opset, **({"types": [F32], "shapes": [(2, 3)]} | facts)))]
    shown = [(type and type.name, shape) for type, shape in found]
    assert shown == ([] if made is None else [made])


@pytest.mark.parametrize(("data", "target"), [((2,), [2, 3]), ((6, 2, 4), [])])
def test_axes_that_are_not_known_yet_refuse_nothing(data: tuple[int, ...], target: list[int]) -> None:
    """Without numbers of the axes no dimension of the data is held against the target, not even their count."""
    numbers = {1: np.array(target, np.int64)}
    axes = (len(data),)
    facts = {"types": [F32, I64, I64], "shapes": [data, (len(target),), axes], "numbers": numbers.get}
    explicit = use("Broadcast", "opset3", attributes={"mode": "explicit"}, **facts)
    assert problem(explicit) is None
    assert [shape for _, shape in outputs(explicit)] == [tuple(target)]


def test_the_table() -> None:
    assert show_opsets("mvn") == "opset1 to opset16"
    assert show_opsets("xor") == "opset1"
    assert show_opsets("nothing") == ""
    assert find("MVN", 5) != find("MVN", 6)
    letters = re.compile(r"[_abcdefilnorsvwTNFDI]*")
    for found in signatures().values():
        assert all(letters.fullmatch(one.inputs) for one in found)
        opsets = [opset for one in found for opset in one.opsets]
        assert len(opsets) == len({*opsets})
    assert {name for name in OPENVINO_TYPES if name.startswith("f")} >= {"f32", "f16", "f64"}
