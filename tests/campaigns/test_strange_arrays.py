"""Evaluation with arrays that are not what NumPy makes by itself, against naive loops.

Every operator, type, reduction and layout of memory, shapes with dimensions of 0 and 1; general
operators against Python's own arithmetic; whole models with strange feeds; sums in many orders.
"""

import operator as python
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ir_scatter import evaluate, evaluate_detailed, evaluate_model
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.ops.general import ROWS as GENERAL_ROWS
from ir_scatter.ops.general import find_computed
from ir_scatter.ops.general_kernels import compute
from ir_scatter.ops.spec import OpSpec, Role
from tests.compare.models import write_node
from tests.models.cases import random_case
from tests.models.onnx_text import save
from tests.ops import naive_scatter
from tests.ops.scatter_cases import ROWS, numbers
from tests.ops.strange_arrays import FORMS, plain
from tests.scale import cases, generator, in_part_and_whole

Array = Any
ANY_FORM = [plain, *FORMS.values()]
NUMBERS = [
    row.name
    for row in ELEMENT_TYPES.values()
    if row.kind in {"float", "signed", "unsigned"} and dtype(row) is not None and row.name != "f8e8m0"
]


def same(found: Array, expected: Array) -> bool:
    """Equal as numbers; NaN equals NaN, and of min and max either zero is right."""
    if found.shape != expected.shape:
        return False
    if found.dtype.hasobject or found.dtype.kind in "biu":
        return bool(found.tolist() == expected.tolist())
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return np.array_equal(found.astype(wide), expected.astype(wide), equal_nan=True)


def drawn(chance: random.Random, spec: OpSpec) -> dict[str, Any]:
    """Arguments of an operator by role, plain, with numbers of every kind."""
    seed = np.random.default_rng(chance.getrandbits(32))
    case = random_case(spec, seed, may_repeat=True)
    found = {name: one for name, one in case.arguments().items() if one is not None}
    return found | {role: numbers(seed, found[role].dtype, found[role].shape) for role in ("data", "updates")}


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@in_part_and_whole
def test_operators(figures: Counter[str], is_whole: bool) -> None:
    names: list[Any] = sorted(ROWS)
    for number in cases(3000, is_whole):
        chance = generator("strange operators", number)
        name = names[number % len(names)]
        spec = ROWS[name]
        given = drawn(chance, spec)
        expected = naive_scatter.scatter(spec.key.type, **{"indices": None, **given})
        forms = {role: chance.choice(ANY_FORM) for role in ("data", "indices", "updates") if role in given}
        strange = given | {role: form(given[role]) for role, form in forms.items()}
        before = [strange[role].tobytes() for role in forms if not strange[role].dtype.hasobject]
        for arguments in chance.sample([given, strange], 2):
            found = evaluate(name, **arguments)
            told = number, name, {role: form.__name__ for role, form in forms.items()}, given
            assert found.dtype == arguments["data"].dtype, told
            assert same(found, expected), (told, found, expected)
            assert not any(np.may_share_memory(found, arguments[role]) for role in forms), told
            detailed = evaluate_detailed(name, **arguments)
            assert same(detailed.values, expected), told
            assert not np.isnan(detailed.rounding_bound).any(), told
        assert before == [strange[role].tobytes() for role in forms if not strange[role].dtype.hasobject]
        figures["operators"] += 1
        figures[f"data {forms['data'].__name__}"] += 1


Reference = Callable[..., Any]
ELEMENTWISE: dict[str, Reference] = {
    "Add": python.add, "Subtract": python.sub, "Sub": python.sub, "Multiply": python.mul, "Mul": python.mul,
    "Minimum": min, "Min": min, "Maximum": max, "Max": max, "Less": python.lt, "LessEqual": python.le,
    "LessOrEqual": python.le, "Greater": python.gt, "GreaterEqual": python.ge, "GreaterOrEqual": python.ge,
    "Equal": python.eq, "NotEqual": python.ne,
}  # fmt: skip
SINGLE: dict[str, Reference] = {"Abs": abs, "ReLU": lambda x: max(x, 0), "Relu": lambda x: max(x, 0)}
LOGICAL: dict[str, Reference] = {
    "LogicalAnd": python.and_, "And": python.and_, "LogicalOr": python.or_, "Or": python.or_,
    "LogicalXor": python.xor, "Xor": python.xor,
}  # fmt: skip
MASKS = {f"{name}_mask": "0,0" for name in ("begin", "end")}


def recipe(name: str, data: Array, *, is_onnx: bool) -> tuple[list[Array | None], dict[str, Any]]:
    """Inputs [2, 3] and attributes of a general operator that is not computed element by element."""
    i64 = np.int64
    zero, one, two, three = (np.array([n]).astype(data.dtype) for n in range(4))
    two = one if data.dtype.name == "int2" else two
    type_name = next(row.name for row in ELEMENT_TYPES.values() if row.dtype_name == data.dtype.name)
    wide, rows, column = np.array([2, 2, 3], i64), np.array([[1], [0]], i64), np.array(1, i64)
    axis = {"axis": 1 if is_onnx else "1"}
    begin, end = np.array([0, 1], i64), np.array([2, 3], i64)
    by_name: dict[str, tuple[list[Array | None], dict[str, Any]]] = {
        "Reshape": ([data, np.array([3, 2], i64)], {} if is_onnx else {"special_zero": "false"}),
        "Broadcast": ([data, wide], {}), "Expand": ([data, wide], {}), "Tile": ([data, np.array([1, 2], i64)], {}),
        "Squeeze": ([data[:, None], np.array([1], i64)], {}), "Unsqueeze": ([data, np.array([1], i64)], {}),
        "Transpose": ([data], {"perm": [1, 0]}) if is_onnx else ([data, np.array([1, 0], i64)], {}),
        "Concat": ([data, data], axis),
        "Split": ([data], {"axis": 1, "split": [1, 2]}) if is_onnx else ([data, column], {"num_splits": "3"}),
        "VariadicSplit": ([data, column, np.array([1, 2], i64)], {}),
        "Gather": ([data, rows], axis) if is_onnx else ([data, rows, column], {}),
        "GatherElements": ([data, np.array([[0, 2], [1, 0]], i64)], axis), "GatherND": ([data, rows], {}),
        "Slice": ([data, begin, end, *([] if is_onnx else [np.array([1, 1], i64)])], {}),
        "StridedSlice": ([data, begin, end, np.array([1, 1], i64)], MASKS),
        "Cast": ([data], {"to": 1}), "Convert": ([data], {"destination_type": "f32"}),
        "CastLike": ([data, np.zeros(1, np.float32)], {}), "ConvertLike": ([data, np.zeros(1, np.float32)], {}),
        "Range": ([part.reshape(()) for part in (zero, three, one)], {} if is_onnx else {"output_type": type_name}),
        "ConstantOfShape": ([np.array([2, 2], i64)], {"value": one}),
        "Where": ([np.array([[True], [False]]), data, data[::-1]], {}),
        "Select": ([np.array([[True], [False]]), data, data[::-1]], {}),
        "Not": ([np.array([True, False])], {}), "LogicalNot": ([np.array([True, False])], {}),
        "CumSum": ([data, column], {}), "Mod": ([data, two], {"fmod": 1} if is_onnx else {}),
        **dict.fromkeys(("Divide", "Div", "FloorMod", "Power", "Pow"), ([data, two], {})),
    }  # fmt: skip
    return by_name.get(name, ([data, np.array([1], i64)] if name.startswith("Reduce") else [data], {}))


def references(name: str, data: Array) -> Array | None:
    """What plain Python makes of data, for operators whose result is one number after the other."""
    rows = [[float(value) for value in row] for row in data]
    reducers: dict[str, Reference] = {
        "ReduceSum": sum, "ReduceMax": max, "ReduceMin": min, "ReduceProd": lambda row: row[0] * row[1] * row[2],
    }  # fmt: skip
    if name in reducers:
        return np.array([reducers[name](row) for row in rows])
    as_they_are = ("Identity", "Convert", "ConvertLike", "Cast", "CastLike", "Floor", "Ceil", "Ceiling")
    by_row: dict[str, Reference] = {
        "CumSum": lambda row: [sum(row[: end + 1]) for end in range(len(row))],
        "Concat": lambda row: row + row,
        **dict.fromkeys(("Negative", "Neg"), lambda row: [-value for value in row]),
        **dict.fromkeys(as_they_are, lambda row: row),
        **dict.fromkeys(("Power", "Pow"), lambda row: [value * value for value in row]),
    }
    if name == "Transpose":
        return np.array([list(column) for column in zip(*rows, strict=True)])
    return np.array([by_row[name](row) for row in rows]) if name in by_row else None


@in_part_and_whole
def test_general_operators(figures: Counter[str], is_whole: bool) -> None:
    every = [(domain, row) for domain in ("openvino", "") for row in GENERAL_ROWS]
    rows = [
        (domain, row.type_in(domain))
        for domain, row in every
        if row.type_in(domain) and row.kernel_in(domain)
    ]
    for number in cases(12 * len(rows), is_whole):
        chance = generator("strange general operators", number)
        domain, name = rows[number % len(rows)]
        op = find_computed(domain, name)
        assert op is not None
        kind: Any = dtype(ELEMENT_TYPES[chance.choice(NUMBERS)])
        data = np.array([[1, 0, 1], [0, 1, 1]]).astype(kind)
        attributes: dict[str, Any] = {}
        expected: Array | None
        inputs: list[Array | None]
        if name in ELEMENTWISE:
            other = data[:, ::-1].copy()
            inputs = [data, other]
            pairs = zip(data.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
            expected = np.array([float(ELEMENTWISE[name](*pair)) for pair in pairs]).reshape(data.shape)
        elif name in LOGICAL:
            truths = [chance.random() < 0.5 for _ in range(6)]
            inputs = [np.array(truths[:3]), np.array(truths[3:])]
            expected = np.array([LOGICAL[name](*pair) for pair in zip(truths[:3], truths[3:], strict=True)])
        elif name in SINGLE:
            inputs = [data]
            expected = np.array([[float(SINGLE[name](float(x))) for x in row] for row in data])
        else:
            inputs, attributes = recipe(name, data, is_onnx=not domain)
            expected = references(name, data)
        if expected is not None and "int" in kind.name:  # what Python makes of numbers does not wrap
            iinfo: Any = ml_dtypes.iinfo
            limits, reals = iinfo(kind), expected.astype(np.float64)
            has_room = limits.min <= reals.min(initial=0) and reals.max(initial=0) <= limits.max
            expected = expected if has_room else None
        options: dict[str, Any] = {"opset": 18 if not domain else 8, "output_count": 2}
        forms = [chance.choice(ANY_FORM) for _ in inputs]
        strange = [None if one is None else form(one) for one, form in zip(inputs, forms, strict=True)]
        changed = {
            k: chance.choice(ANY_FORM)(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()
        }
        results = {}
        for key in chance.sample(["plain", "strange"], 2):
            given, written = (inputs, attributes) if key == "plain" else (strange, changed)
            results[key] = compute(op, domain, given, written, **options)
        told = number, domain, name, kind.name, [form.__name__ for form in forms]
        for left, right in zip(results["plain"], results["strange"], strict=True):
            assert left.dtype == right.dtype, told
            assert right.dtype.isnative, told
            assert same(left, right), (told, left, right)
        if expected is not None:
            for found in results.values():
                assert same(
                    found[0].astype(np.float64).reshape(expected.shape), expected.astype(np.float64)
                ), told
            figures["general operators by Python"] += 1
        figures["general operators"] += 1


@in_part_and_whole
def test_models(tmp_path: Path, figures: Counter[str], is_whole: bool) -> None:
    names = ["ScatterUpdate-3", "ScatterElementsUpdate-12", "ScatterNDUpdate-15",
                               "ScatterElements-18", "ScatterND-18"]  # fmt: skip
    types = ["f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u64", "u8"]
    for number in cases(150, is_whole):
        chance = generator("strange feeds", number)
        name = names[number % len(names)]
        spec = ROWS[name]
        seed = np.random.default_rng(chance.getrandbits(32))
        case = random_case(spec, seed, element_type=chance.choice(types), index_type="i64")
        is_onnx = spec.key.domain == ""
        arrays: list[Array] = [case.data, case.indices, case.updates]
        attributes = dict(case.attributes)
        if spec.port(Role.AXIS) is not None:
            arrays.append(np.array(case.axis))
        elif case.axis is not None:
            attributes["axis"] = case.axis
        opset: str | int = 18 if is_onnx else spec.opsets[-1]
        path, feeds = write_node(tmp_path, spec.key.type, opset, arrays, (), **attributes)
        axis: Any = {} if case.axis is None else {"axis": case.axis}
        told: Any = {
            key: value for key, value in case.attributes.items() if key in {"reduction", "use_init_val"}
        }
        expected = naive_scatter.scatter(spec.key.type, case.data, case.indices, case.updates, **axis, **told)
        strange = {key: chance.choice(ANY_FORM)(np.asarray(array)) for key, array in feeds.items()}
        for given in chance.sample([feeds, strange], 2):
            (found,) = evaluate_model(path, given).values()
            assert found.dtype == case.data.dtype
            assert same(found, expected), (number, name, case)
            assert not any(np.may_share_memory(found, array) for array in given.values())
        figures["models"] += 1


def test_outputs_are_no_feeds(tmp_path: Path, figures: Counter[str]) -> None:
    """Of the operators that give views; a model of each stands for all."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = (
        "y = Identity (x)", "y = Transpose (x)", "y = Flatten (x)", "y = Slice (x, zero, one)",
        "y = Expand (x, shape)", "y = Cast <to = 1> (x)", "y, z = Split <axis = 0, num_outputs = 2> (x)",
    )  # fmt: skip
    for number, node in enumerate(nodes):
        outputs = "float[A, B] y" if "z" not in node.split("=")[0] else "float[A, B] y, float[C, D] z"
        text = f"""<ir_version: 10, opset_import: ["" : 18]>
        one (float[2, 3] x) => ({outputs})
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[3] shape = {{1, 2, 3}}> {{ {node} }}"""
        path = save(text, tmp_path / f"{number}.onnx")
        for form in ANY_FORM:
            feed = form(array)
            for found in evaluate_model(path, {"x": feed}).values():
                assert not np.may_share_memory(found, feed), (node, form.__name__)
                assert feed.tolist() == array.tolist()
            figures["outputs that could be views"] += 1


def in_order(values: Array) -> Any:
    total = values[0]
    for value in values[1:]:
        total = values.dtype.type(total + value)
    return total


def sums(values: Array, chance: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """The same sum in many orders, in the type or in a wider one."""
    wide = values.astype(np.float64)
    orders = {
        "rising": np.argsort(wide),
        "falling": np.argsort(-wide),
        "shuffled": chance.permutation(len(values)),
    }
    for name, order in orders.items():
        for count in (1, 2, 16, len(values)):  # of blocks that are summed first, or of lanes
            blocks = [part for part in np.array_split(values[order], count) if len(part)]
            yield f"{name}, {count} blocks", in_order(np.array(list(map(in_order, blocks)), values.dtype))
            lanes = [values[order][start::count] for start in range(count)][: len(values)]
            yield f"{name}, {count} lanes", in_order(np.array(list(map(in_order, lanes)), values.dtype))
    yield "f64", wide.sum().astype(values.dtype)


def addends(chance: np.random.Generator, count: int) -> Iterator[tuple[str, Array]]:
    yield "normal", chance.standard_normal(count)
    yield "equal", np.full(count, chance.random() + 0.01)
    yield "two signs", np.where(chance.random(count) < 0.5, chance.random(), -chance.random())
    yield "far apart", chance.standard_normal(count) * 10.0 ** chance.uniform(-4, 3, count)
    yield "one great", np.concatenate([[chance.random() * 1e3], chance.random(count - 1)])
    yield "whole", chance.integers(-9, 10, count).astype(np.float64)


@pytest.mark.filterwarnings("ignore:overflow")
@in_part_and_whole
def test_sums_in_many_orders(figures: Counter[str], is_whole: bool) -> None:
    """Every order stays within the bound, and a lost update does not."""
    sizes = [(np.float32, 2), (np.float32, 40), (np.float32, 900), (np.float16, 16), (np.float64, 300),
             (ml_dtypes.bfloat16, 24)]  # fmt: skip
    for number in cases(60, is_whole):
        chance = np.random.default_rng(generator("sums", number).getrandbits(32))
        kind, count = sizes[number % len(sizes)]
        for name, raw in addends(chance, count):
            values = raw.astype(kind)
            roles = {"data": values[:1], "indices": np.zeros(count - 1, np.int64), "updates": values[1:]}
            found = evaluate_detailed("ScatterElementsUpdate-12", **roles, axis=0, reduction="sum")
            exact = sum((Fraction(float(value)) for value in values), Fraction(0))
            bound, from_values = float(found.rounding_bound[0]), float(found.bound_from_values()[0])
            assert name != "whole" or bound == 0
            if not np.isfinite(bound):
                continue
            for order, total in sums(values, chance):
                told = number, np.dtype(kind).name, count, name, order, float(total), float(exact), bound
                assert abs(Fraction(float(total)) - exact) <= Fraction(bound), told
                assert abs(float(total) - float(found.values[0])) <= from_values * (1 + 1e-9), told
                figures["orders"] += 1
            if name in {"normal", "whole"} and kind is not ml_dtypes.bfloat16:
                lost = max(values[1:].tolist(), key=abs)
                assert lost == 0 or abs(lost) > from_values, (number, name, lost, from_values)
                figures["lost updates"] += 1
