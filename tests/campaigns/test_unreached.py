"""Nodes that a runtime refuses, in random structure that may keep them from being computed.

A model that runs has no certain error, and one that is refused is not passed over in silence.
"""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.core.diagnostics import Severity
from ir_scatter.portability import diagnose, portability_to
from ir_scatter.reading import read
from ir_scatter.runners.base import Status
from tests.defects.test_unreached import HALVES, HEADER
from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import CONDITION, carried, put_in, put_out, result
from tests.models.onnx_text import save
from tests.scale import cases, generator

CASES, _DEEPEST = 60, 3
_X = np.arange(6, dtype=np.float32).reshape(3, 2)


class Ir:
    """Draws an IR around slices with a 0-D index, which the CPU plugin refuses when it compiles."""

    suffix, code = ".xml", "DEV101"

    def __init__(self, chance: random.Random, *, is_refused: bool) -> None:
        self.chance, self.is_refused, self.fed = chance, is_refused, dict[str, int]()

    def write(self, folder: Path, dims: list[int | str]) -> Path:
        ir = IrText()
        data = ir.parameter("x", shape=dims)
        fed = {word: ir.parameter(word, "boolean" if word == "flag" else "i64") for word in ("flag", "trips")}
        result(ir, self.drawn(ir, data, list(fed.values()), _DEEPEST))
        return Path(ir.write(folder))

    def bad(self, ir: IrText, data: Output) -> Output:
        if not self.is_refused:
            return self.good(ir, data)
        index, axis = ir.const(f"at{ir.count}", "i64", 1), ir.const(f"axis{ir.count}", "i64", 0)
        new = ir.const(f"new{ir.count}", "f32", [5, 6])
        return ir.add("bad", "ScatterUpdate", "opset3", [data, index, new, axis], [("f32", data.dims)])

    def good(self, ir: IrText, data: Output) -> Output:
        return ir.add(f"relu{ir.count}", "ReLU", "opset1", [data], [("f32", data.dims)])

    def drawn(self, ir: IrText, data: Output, fed: list[Output], deep: int) -> Output:
        ways = ["bad", "dead", "shape", "relu", "join", "constant", "unfolded"]
        ways += ["branch"] * 4 + ["loop"] * 3 if deep else []
        way = self.chance.choice(ways)
        if way in {"branch", "loop"}:
            return getattr(self, way)(ir, data, fed, deep)  # type: ignore[no-any-return]
        if way == "relu":
            return self.good(ir, self.bad(ir, data))
        if way == "dead":
            self.bad(ir, data)
            return self.good(ir, data)
        if way == "shape":
            shape = ir.add(f"shape{ir.count}", "ShapeOf", "opset3", [self.bad(ir, data)], [("i64", (2,))])
            words = {"destination_type": "f32"}
            number = ir.add(f"cast{ir.count}", "Convert", "opset1", [shape], [("f32", (2,))], words)
            return ir.add(f"sum{ir.count}", "Add", "opset1", [data, number], [("f32", data.dims)])
        if way == "join":
            numbers = [ir.const(f"k{ir.count}", "i64", [number]) for number in (0, 0, 1, 0)]
            parts = [self.bad(ir, data), *numbers]
            part = ir.add(f"part{ir.count}", "Slice", "opset8", parts, [("f32", (0, 2))])
            inputs = [part, self.good(ir, data)]
            return ir.add(f"join{ir.count}", "Concat", "opset1", inputs, [("f32", data.dims)], {"axis": "0"})
        if way == "bad":
            return self.bad(ir, data)
        constant = ir.const(f"k{ir.count}", "f32", _X)
        if way == "unfolded":
            numbers = [ir.const(f"n{ir.count}", "i64", [1]), ir.const(f"n{ir.count}", "i64", [0])]
            constant = ir.add(f"roll{ir.count}", "Roll", "opset7", [constant, *numbers], [("f32", (3, 2))])
        new = self.bad(ir, self.good(ir, constant))
        return ir.add(f"sum{ir.count}", "Add", "opset1", [data, new], [("f32", data.dims)])

    def branch(self, ir: IrText, data: Output, fed: list[Output], deep: int) -> Output:
        flag = self.chance.choice([fed[0], *(ir.const(f"c{ir.count}", "boolean", one) for one in (0, 1))])
        inside, is_first = "", self.chance.random() < 0.5
        for name in ("then", "else"):
            body = IrText(ir.weights)
            old, *rest = self.entered(body, data)
            made = (
                self.drawn(body, old, rest, deep - 1)
                if (name == "then") is is_first
                else self.good(body, old)
            )
            number = result(body, made)
            maps = "".join(put_in(port, value) for port, value in enumerate([old, *rest], 1))
            maps += put_out(4, number)
            inside += f"<{name}_port_map>{maps}</{name}_port_map>{body.body(f'{name}_body')}"
        inputs = [flag, data, *fed]
        return ir.add(f"if{ir.count}", "If", "opset8", inputs, [("f32", data.dims)], inside=inside)

    def loop(self, ir: IrText, data: Output, fed: list[Output], deep: int) -> Output:
        trips = self.chance.choice([fed[1], *(ir.const(f"t{ir.count}", "i64", one) for one in (0, 2))])
        start, body = ir.const(f"s{ir.count}", "boolean", True), IrText(ir.weights)
        old, *rest = self.entered(body, data)
        number = result(body, self.drawn(body, old, rest, deep - 1))
        again = result(body, body.const("again", "boolean", True))
        maps = "".join(put_in(port, value) for port, value in enumerate([old, *rest], 2))
        maps += put_out(5, number) + put_out(-1, again, CONDITION)
        inside = f"<port_map>{maps}</port_map>{carried([(number, old)])}{body.body('body')}"
        inputs = [trips, start, data, *fed]
        return ir.add(f"loop{ir.count}", "Loop", "opset5", inputs, [("f32", data.dims)], inside=inside)

    def entered(self, body: IrText, data: Output) -> list[Output]:
        shape = ["?" if dim == -1 else dim for dim in data.dims]
        fed = [body.parameter("flag", "boolean"), body.parameter("trips", "i64")]
        return [body.parameter("old", shape=shape), *fed]


class Onnx:
    """Draws an ONNX model around a sum of f16, which onnxruntime refuses when it runs."""

    suffix, code = ".onnx", "DEV401"

    def __init__(self, chance: random.Random, *, is_refused: bool) -> None:
        self.chance, self.is_refused, self.count = chance, is_refused, 0

    def write(self, folder: Path, dims: list[int | str]) -> Path:
        shape = ", ".join("N" if dim == "?" else str(dim) for dim in dims)
        body, out = self.drawn("x", _DEEPEST)
        text = (
            f"{HEADER}g (float[{shape}] x, bool flag, int64 trips) => (float[M, K] {out}) "
            "<int64[1, 2] at = {1, 0}, float16[1, 2] n = {5, 6}, bool no = {0}, bool yes = {1}, "
            f"int64 none = {{0}}, int64 two = {{2}}, float[3, 2] k = {{1, 2, 3, 4, 5, 6}}> {{ {body} }}"
        )
        return save(text, folder / "model.onnx")

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def bad(self, data: str) -> tuple[str, str]:
        names = {word: self.name() for word in "hys"}
        if not self.is_refused:
            return f"{names['s']} = Relu ({data}) ", names["s"]
        text = (
            HALVES.replace("(x)", f"({data})")
            .replace("h =", f"{names['h']} =")
            .replace("(h,", f"({names['h']},")
        )
        text = text.replace("y =", f"{names['y']} =").replace("(y)", f"({names['y']})")
        return text.replace("s =", f"{names['s']} =") + " ", names["s"]

    def drawn(self, data: str, deep: int) -> tuple[str, str]:
        ways = ["bad", "dead", "shape", "constant"] + (["branch"] * 4 + ["loop"] * 3 if deep else [])
        way, out = self.chance.choice(ways), self.name()
        if way == "branch":
            flag, inside = self.chance.choice(["flag", "no", "yes"]), []
            is_first = self.chance.random() < 0.5
            for is_then in (True, False):
                other = self.name()
                body, made = (
                    self.drawn(data, deep - 1) if is_then is is_first else (f"{other} = Relu ({data})", other)
                )
                inside.append(f"{self.name()} () => (float[A, B] {made}) {{ {body} }}")
            return f"{out} = If ({flag}) <then_branch = {inside[0]}, else_branch = {inside[1]}> ", out
        if way == "loop":
            trips, old, step, go = (
                self.chance.choice(["trips", "none", "two"]),
                *(self.name() for _ in range(3)),
            )
            body, made = self.drawn(old, deep - 1)
            head = f"{self.name()} (int64 {step}, bool {go}, float[A, B] {old}) => (bool {go}, float[A, B] {made})"
            return f"{out} = Loop ({trips}, yes, {data}) <body = {head} {{ {body} }}> ", out
        if way == "constant":
            text, made = self.bad("k")
            return f"{text}{out} = Add ({data}, {made}) ", out
        text, made = self.bad(data)
        if way == "dead":
            return f"{text}{out} = Relu ({data}) ", out
        if way == "shape":
            shape, number = self.name(), self.name()
            more = (
                f"{shape} = Shape ({made}) {number} = Cast <to = 1> ({shape}) {out} = Add ({data}, {number}) "
            )
            return text + more, out
        return text, made


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), [("openvino:CPU", Ir), ("onnxruntime", Onnx)])
def test_what_is_not_computed_is_no_error(
    name: str, kind: type[Ir] | type[Onnx], tmp_path: Path, figures: Counter[str]
) -> None:
    runner = runners.find(name)
    if not runner.versions:
        pytest.skip(f"{name} is not installed")
    portability, wrong = portability_to((name,)), list[tuple[int, str]]()
    for seed in cases(CASES):
        dims: list[int | str] = [3 if seed % 2 else "?", 2]
        feeds = {"x": _X, "flag": np.array(seed % 3 > 0), "trips": np.array(seed % 5 % 3)}
        ran = dict[bool, bool]()
        for is_refused in (False, True):  # what is refused anyway says nothing
            path = kind(generator("unreached", seed), is_refused=is_refused).write(tmp_path, dims)
            (answer,) = runner.stream(path, [feeds], timeout=60)
            ran[is_refused] = answer.status is Status.OK
            if not ran[False]:
                break
        if not ran[False]:
            figures["refused anyway"] += 1
            continue
        found = [one for one in diagnose(read(path), portability) if one.code == kind.code]
        is_certain = any(one.severity is Severity.ERROR for one in found)
        figures[
            f"{'runs' if ran[True] else 'is refused'}, {'error' if is_certain else 'warning' if found else 'none'}"
        ] += 1
        if is_certain and ran[True]:
            wrong.append((seed, "error, and it runs"))
        if not found and not ran[True]:
            wrong.append((seed, "silence, and it is refused"))
    assert wrong == []
    assert figures["runs, none"] > 2 < figures["is refused, error"]
