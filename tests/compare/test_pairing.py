"""Which inputs and outputs of two models are the same, and what they are given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.pairing import By, Pairing, pair
from ir_scatter.compare.result import CompareSettings
from ir_scatter.compare.run import compare
from ir_scatter.core.errors import BadFeed
from ir_scatter.reading import read
from tests.models.ir_text import IrText
from tests.models.onnx_text import save

Ends = list[tuple[Any, ...]]
"""Inputs: a name, a type, a shape, and further names."""


def write(folder: Path, name: str, inputs: Ends, outputs: Ends | None = None) -> Path:
    """Write an IR whose outputs are its inputs if no other ones are named, as "y" beside "x"."""
    ir = IrText()
    for number, (input, type, shape, *others) in enumerate(inputs):
        names = f' names="{",".join(others)}"' if others else ""
        value = ir.parameter(input, type, shape, names)
        output = f"out_{number}"
        if outputs is not None and number < len(outputs):
            output, kind, dims = outputs[number]
            if kind != type or dims != shape:
                value = ir.add(f"{output}_as", "Convert", "opset1", [value], [(kind, dims)])
        done = ir.add(
            f"{output}_",
            "Relu",
            "opset1",
            [value],
            [(value.precision, value.dims)],
            ports=f' names="{output}"',
        )
        ir.add(f"result_{output}", "Result", "opset1", [done], [])
    return Path(ir.write(folder, name))


def paired(folder: Path, first: Ends, second: Ends, *maps: str, **ends: Any) -> Pairing:
    one = write(folder, "one", first, ends.get("outputs"))
    other = write(folder, "other", second, ends.get("others"))
    return pair(read(one), read(other), maps, ends.get("map_outputs", ()))


def matches(found: Pairing) -> list[tuple[str, str, By]]:
    return [(one.first.names[0], one.second.names[0], one.by) for one in found.inputs]


F23, F32, I5 = ("f32", (2, 3)), ("f32", (3, 2)), ("i64", (5,))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([("a", *F23), ("b", *F23)], [("b", *F23), ("a", *F23)], ["a=a", "b=b"]),  # in another order
        ([("a", *F23, "t")], [("p", *F23, "s", "t")], ["t=s"]),  # by a further name of the tensor
        ([("a", *F23), ("b", *I5)], [("x", *F23), ("y", *I5)], ["a=x order", "b=y order"]),
        ([("a", *F23), ("b", *F23)], [("x", *F23), ("b", *F23)], ["b=b", "a=x order"]),  # what is left
        ([("a", *F23), ("b", *F32)], [("x", *F32), ("y", *F23)], ["a=y shape", "b=x shape"]),
        ([("a", *F23), ("b", *I5)], [("x", "i32", (5,))], ["b=x order"]),  # one was dropped
        ([("a", *F23)], [("x", "f16", ("?", 3))], ["a=x order"]),
        ([("a", "boolean", (2,))], [("x", "u8", (2,))], ["a=x order"]),
    ],
)  # fmt: skip
def test_what_is_the_same(tmp_path: Path, first: Ends, second: Ends, expected: list[str]) -> None:
    found = matches(paired(tmp_path, first, second))
    said = {f"{one}={other}" + ("" if by is By.NAME else f" {by}") for one, other, by in found}
    assert said == set(expected)


@pytest.mark.parametrize(
    ("first", "second", "maps", "message"),
    [
        ([("a", *F23)], [("x", *F32)], (), "cannot match these inputs; pair them with map_inputs={\"A\": \"B\"}"),
        ([("a", *F23)], [("x", "i64", (2, 3))], (), r"other.xml has input x \(i64 \[2, 3\]\), and .*one.xml has a \(f32"),
        ([("a", *F23)], [("x", *F23), ("y", *F23)], (), "other.xml has input x .*, y .*, and"),
        ([("a", *F23), ("b", *F23)], [("x", *F23)], (), "cannot match these inputs"),  # one was dropped, and which is not known
        ([("a", *F23)], [("a", *F32)], (), "the same name, but are not compatible"),
        ([("data", *F23)], [("x", *F23)], ("dat=x",), r"one.xml has no input 'dat' \(did you mean data\?\), expected data"),
        ([("data", *F23)], [("input", *F23)], ("data=inputs",), r"'inputs' \(did you mean input\?\), expected input"),
        ([("data", *F23)], [("x", *F23)], ("data",), "map_inputs is 'data', expected A=B"),
        ([("a", *F23)], [("x", *I5)], ("a=x",), r"x \(i64 \[5\]\) of .* are mapped, but are not compatible"),
        ([("a", *F23), ("b", *F23)], [("x", *F23), ("y", *F23)], ("a=x", "b=x"), "one of the two is mapped twice"),
    ],
)  # fmt: skip
def test_what_is_not_known(
    tmp_path: Path, first: Ends, second: Ends, maps: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BadFeed, match=message):
        paired(tmp_path, first, second, *maps)


def test_what_the_caller_says(tmp_path: Path) -> None:
    ends = [("a", *F23), ("b", *F23)], [("x", *F23), ("y=z", *F23)]
    assert matches(paired(tmp_path, *ends, "b=x")) == [("b", "x", By.MAP), ("a", "y=z", By.ORDER)]
    assert matches(paired(tmp_path, *ends, "a=y=z")) == [("a", "y=z", By.MAP), ("b", "x", By.ORDER)]


def test_notes(tmp_path: Path) -> None:
    found = paired(tmp_path, [("a", *F23), ("b", *I5), ("c", *I5)], [("x", *F23), ("c", "i32", (5,))], "c=c")
    one, other = (model.path for model in found.models)
    assert set(found.notes) >= {
        "inputs are matched by their order: a=x (to change that: map_inputs)",
        f"input c is i64 in {one}, i32 in {other}: both get the same numbers",
        f"input b of {one} has no counterpart in {other}, which ignores it",
    }


def test_outputs(tmp_path: Path) -> None:
    inputs = [("a", *F23), ("b", *F23)]
    found = paired(
        tmp_path,
        inputs,
        inputs,
        outputs=[("y", *F23), ("z", *F23)],
        others=[("o", "f16", (2, 3)), ("y", *F23)],
    )
    assert [(one.first.name, one.second.name, one.by) for one in found.outputs] == [
        ("y", "y", By.NAME), ("z", "o", By.ORDER),
    ]  # fmt: skip
    assert "output z is f32 in" in found.notes[-1]
    assert "compared as numbers, with the tolerance of the narrower type" in found.notes[-1]
    found = paired(
        tmp_path, inputs, inputs, outputs=[("y", *F23), ("z", *F23)], others=[("o", *F23), ("p", *F23)],
        map_outputs=["y=p"],
    )  # fmt: skip
    assert [(one.first.name, one.second.name) for one in found.outputs] == [("y", "p"), ("z", "o")]
    with pytest.raises(BadFeed, match=r"map_outputs y=q: .*other\.xml has no output 'q', expected o, p"):
        paired(
            tmp_path,
            inputs,
            inputs,
            others=[("o", *F23), ("p", *F23)],
            outputs=[("y", *F23)],
            map_outputs=["y=q"],
        )


def test_a_single_output_is_the_same_whatever_it_is(tmp_path: Path) -> None:
    """That its shape is another one is what there is to say, and not that it is missing."""
    found = paired(
        tmp_path, [("a", *F23)], [("a", *F23)], outputs=[("y", *F23)], others=[("z", "i64", (2, 3))]
    )
    assert [(one.first.name, one.second.name) for one in found.outputs] == [("y", "z")]


@pytest.mark.parametrize(
    ("types", "values", "message"),
    [
        (("i64", "i32"), [-3, 2**31 - 1], ""),
        (("i64", "i32"), [0, 2**31], r"x holds 2147483648 at \[1\], which i32 cannot represent"),
        (("i64", "u64"), [0, -1], r"holds -1 at \[1\], which u64 cannot represent"),
        (("boolean", "u8"), [True, False], ""),
        (("u8", "boolean"), [1, 0], ""),
        (("u8", "boolean"), [1, 2], r"holds 2 at \[1\], which boolean cannot represent"),
        (("f32", "f16"), [0.5, np.nan], ""),
        (("f16", "f32"), [0.1, np.inf], ""),
        (("f32", "f16"), [0.1, 0.5], "rounded"),
        (("f64", "f32"), [0.1, 0.5], "rounded"),
        (("f32", "f16"), [0.1, 1e6], r"holds 1000000.0 at \[1\], which f16 cannot represent"),
    ],
)  # fmt: skip
def test_types_that_were_narrowed(tmp_path: Path, types: tuple[str, str], values: Any, message: str) -> None:
    found = paired(tmp_path, [("a", types[0], (2,))], [("x", types[1], (2,))])
    dtypes = [np.dtype({"f": "float", "i": "int", "u": "uint"}[type[0]] + type[1:]) if type != "boolean" else np.dtype(bool) for type in types]  # fmt: skip
    given = np.array(values, dtypes[0])
    if message and message != "rounded":
        with pytest.raises(BadFeed, match=message):
            found.feeds(found.adapt_feeds({"a": given})[0])
        return
    mine, notes = found.adapt_feeds({"a": given})
    first, second = found.feeds(mine)
    assert (first["a"].dtype, second["x"].dtype) == tuple(dtypes)
    np.testing.assert_array_equal(first["a"].astype(np.float64), second["x"].astype(np.float64))
    assert notes == ([f"input a is rounded to {types[1]} for both models"] if message else [])
    assert (
        found.adapt_feeds({"x": second["x"]})[0]["a"].dtype == dtypes[0]
    )  # by names and types of the second


@pytest.mark.parametrize("values", ["plain", "edge"])
def test_drawn_inputs_are_legal_for_both_models(tmp_path: Path, values: str) -> None:
    """The first takes negative indices and 64 bits, the second neither; either knows one size."""
    onnx = save(
        """<ir_version: 10, opset_import: ["" : 18]>
        model (float[rows, 5] data, int64[count, 5] indices, float[count, 5] new) => (float[rows, 5] y) {
          y = ScatterElements (data, indices, new)
        }""",
        tmp_path / "one.onnx",
    )
    ir = IrText()
    data, indices = ir.parameter("d", "f16", (7, "?")), ir.parameter("i", "i32", ("?", 5))
    new, axis = ir.parameter("n", "f16", ("?", 5)), ir.const("axis", "i64", 0)
    done = ir.add("s", "ScatterElementsUpdate", "opset3", [data, indices, new, axis], [("f16", (7, 5))])
    ir.add("result", "Result", "opset1", [done], [])
    found = pair(read(onnx), read(ir.write(tmp_path, "other")))
    told = compare(found.models, (), CompareSettings(cases=6, values=values), with_numpy=False)
    assert not any("legal for both" in remark for remark in told.remarks)
    for case in told.feeds:
        first, second = found.feeds(case)
        assert {name: (array.dtype.name, array.shape[1]) for name, array in first.items()} == {
            "data": ("float32", 5), "indices": ("int64", 5), "new": ("float32", 5),
        }  # fmt: skip
        assert {name: array.dtype.name for name, array in second.items()} == {
            "d": "float16", "i": "int32", "n": "float16",
        }  # fmt: skip
        assert first["data"].shape[0] == 7
        assert first["indices"].min() >= 0
        assert first["indices"].max() < 7
    if values == "edge":
        assert any(not np.isfinite(case["data"]).all() for case in told.feeds)


def test_inputs_that_cannot_be_legal_for_both_are_those_of_the_first(tmp_path: Path) -> None:
    models = [
        save(
            f"""<ir_version: 10, opset_import: ["" : 18]>
            model (float[3] data, int64[2] i, float[2] new) => (float[3] y)
            <int64[2] far = {{{far}, {far}}}, int64[1] one = {{1}}> {{
              there = Add (i, far)
              indices = Unsqueeze (there, one)
              y = ScatterND (data, indices, new)
            }}""",
            tmp_path / f"{name}.onnx",
        )
        for name, far in (("one", 0), ("other", 100))
    ]
    found = compare([read(path) for path in models], (), CompareSettings(cases=2), with_numpy=False)
    said = "no inputs were found that are legal for both models; these are legal for the first: "
    assert found.remarks[0].startswith(said)
    assert all((case["i"] >= -3).all() and (case["i"] < 3).all() for case in found.feeds)


def test_shapes_that_the_caller_wants(tmp_path: Path) -> None:
    found = paired(tmp_path, [("a", "f32", ("?", 3))], [("x", "f32", (2, "?"))])
    (drawn,) = compare(found.models, (), CompareSettings(), with_numpy=False).feeds
    assert drawn["a"].shape == (2, 3)
    assert found.shapes({"x": (2, 3)}) == {"a": (2, 3)}
    with pytest.raises(BadFeed, match=r"x of .*other\.xml has shape \[2, \?\], expected \[5, 3\]"):
        found.shapes({"a": (5, 3)})
