"""What follows from inputs, constants and attributes, against what OpenVINO and NumPy make of a model."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ir_scatter
from ir_scatter.analysis.constants import Facts
from ir_scatter.core.model import Model
from ir_scatter.ops.general import find, output_shapes
from ir_scatter.ops.general_kernels import UnsupportedCase, compute
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer
from tests.analysis.partial_shapes import OpenvinoShapes, Shapes
from tests.models import nested_ir
from tests.models.ir_text import IrText, Output

ROOT = Path(__file__).resolve().parents[2]
REAL_MODELS = ROOT.parent / "shared" / "models"
LARGEST = 3 << 20
_PARAMETER = re.compile(r'type="Parameter"[^>]*>\s*<data [^>]*?shape="([^".]+)"')


@pytest.fixture(scope="module")
def openvino() -> Iterator[OpenvinoShapes]:
    pytest.importorskip("openvino")
    child = OpenvinoShapes()
    yield child
    child.close()


def compare(model: Model, truth: Shapes, facts: Facts) -> Counter[str]:
    """Count the dimensions that are known, and those that are not; fail where one is wrong."""
    names = Counter(node.name for node in model.graph.walk())
    counts = Counter[str]()
    for node in model.graph.walk():  # what a Parameter is, those that take it see
        if node.name not in truth or names[node.name] > 1 or node.type in {"Result", "Parameter"}:
            continue
        for output, (type, dims) in zip(node.outputs, truth[node.name], strict=False):
            shape, found = facts.shape(output), facts.element_type(output)
            assert found is None or found.name == type, node
            counts["types"] += 1
            counts["unknown types"] += found is None
            if dims is None or shape is None:
                counts["unknown"] += 0 if dims is None else len(dims)
                continue
            assert len(shape) == len(dims), node
            for dim, true in zip(shape, dims, strict=True):
                assert not isinstance(dim, int) or dim == true, (node, shape, dims)
                counts["known" if isinstance(dim, int) else "unknown"] += true is not None
    return counts


def changed(folder: Path, path: Path, places: int) -> Iterator[Path]:
    """Write copies of an IR with a dimension of a Parameter made larger, or unknown."""
    text = path.read_text(errors="replace")
    weights = path.with_suffix(".bin")
    for place, match in enumerate([*_PARAMETER.finditer(text)][:places]):
        for word in ("larger", "?"):
            dims = match[1].split(",")
            at = place % len(dims)
            size = dims[at].strip()
            dims[at] = "?" if word == "?" else str(int(size) * 2) if size.isdigit() else "5"
            copy = folder / f"{path.stem}_{place}_{'any' if word == '?' else word}.xml"
            copy.write_text(text[: match.start(1)] + ",".join(dims) + text[match.end(1) :])
            if weights.exists():
                shutil.copy(weights, copy.with_suffix(".bin"))
            yield copy


def hold_against(openvino: OpenvinoShapes, paths: Sequence[Path], folder: Path, places: int) -> Counter[str]:
    counts = Counter[str]()
    for number, path in enumerate(paths):
        truth = openvino.ask(path)
        if truth is None:
            counts["refused"] += 1
            continue
        model = ir_scatter.read(str(path))
        counts += compare(model, truth, Facts(model=model, trusts_stored=False))
        copies = folder / str(number)
        copies.mkdir()
        for copy in changed(copies, path, places):
            other = openvino.ask(copy)
            if other is not None:
                model = ir_scatter.read(str(copy))
                counts += compare(model, other, Facts(model=model))
                counts["changed"] += 1
        shutil.rmtree(copies)
    print(counts)
    return counts


@pytest.mark.openvino
def test_samples(openvino: OpenvinoShapes, tmp_path: Path) -> None:
    counts = hold_against(openvino, sorted((ROOT / "samples").rglob("*.xml")), tmp_path, 4)
    assert counts["known"] > 10 * counts["unknown"]
    assert counts["changed"] > 10


@pytest.mark.openvino
@pytest.mark.models
@pytest.mark.skipif(not REAL_MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models(openvino: OpenvinoShapes, tmp_path: Path) -> None:
    paths = [path for path in sorted(REAL_MODELS.rglob("*.xml")) if path.stat().st_size < LARGEST]
    counts = hold_against(openvino, paths, tmp_path, 2)
    assert counts["known"] > 10 * counts["unknown"]
    assert counts["types"] > 100 * counts["unknown types"]


@pytest.mark.models
@pytest.mark.skipif(not REAL_MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_nodes_that_look_alike_follow_as_if_each_were_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def followed(path: Path) -> dict[str, object]:
        model = ir_scatter.read(path)
        facts = Facts(model=model, trusts_stored=False)
        return {
            f"{node.scope} {value.output}": (
                facts.shape(value),
                facts.element_type(value),
                facts.is_vague(value),
            )
            for node in model.walk()
            for value in node.outputs
        }

    paths = [path for path in sorted(REAL_MODELS.rglob("*.xml")) if "v7" not in path.parts[-2]]
    assert len(paths) > 20
    grouped = [followed(path) for path in paths]
    monkeypatch.setattr("ir_scatter.analysis.propagation.exact_key", lambda _: None)
    assert [followed(path) for path in paths] == grouped


BODIES: list[Callable[[Path], str]] = [
    nested_ir.write_branch,
    lambda folder: nested_ir.write_iterator(folder, is_backward=True),
    lambda folder: nested_ir.write_iterator(folder, is_backward=False, part=3),
    lambda folder: nested_ir.write_loop(folder, 3),
]


@pytest.mark.openvino
@pytest.mark.parametrize("write", BODIES)
def test_bodies(write: Callable[[Path], str], openvino: OpenvinoShapes, tmp_path: Path) -> None:
    """What is invariant, sliced or carried is known inside as well, and what comes out."""
    (tmp_path / "copies").mkdir()
    counts = hold_against(openvino, [Path(write(tmp_path))], tmp_path / "copies", 3)
    assert counts["known"] > 3
    assert counts["refused"] == 0


def read_text(text: str, folder: Path) -> Model:
    path = folder / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return ir_scatter.read(str(path))


def test_value_info_that_lies(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[4, 3] x, bool[1] flag) => (float[4, 4] y)
    <float[5, 9] a, double[2] b, float[8, 8, 8] c>
    { a = Tanh(x) b = Shape(a) c = Transpose<perm = [1, 0]>(a) m = MatMul(a, c) y = Softmax(m) }"""
    model = read_text(text, tmp_path)
    facts = Facts(model=model, trusts_stored=False)
    found = {
        node.type: (facts.shape(node.outputs[0]), facts.element_type(node.outputs[0]))
        for node in model.walk()
    }
    shapes = {
        type: (shape, element_type and element_type.name) for type, (shape, element_type) in found.items()
    }
    assert shapes == {
        "Tanh": ((4, 3), "f32"),
        "Shape": ((2,), "i64"),
        "Transpose": ((3, 4), "f32"),
        "MatMul": ((4, 4), "f32"),
        "Softmax": ((4, 4), "f32"),
    }


def test_an_operator_that_nobody_knows_gives_nothing(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
    g (float[4, 3] x) => (float[4, 3] y) <float[4, 3] a> { a = mine.Mystery(x) y = Tanh(a) }"""
    model = read_text(text, tmp_path)
    facts = Facts(model=model, trusts_stored=False)
    assert [facts.shape(node.outputs[0]) for node in model.walk()] == [None, None]


# Small graphs of general operators.

SIZES = (1, 2, 3, 4, 6)
OTHER_SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 12, 36, 100)


class Drawn:
    """A graph that is legal with some sizes, of which its file says a part only."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw, self.ir = draw, IrText()
        self.values: list[tuple[Output, tuple[int, ...]]] = []
        self.written: list[list[int | str]] = []
        for number in range(draw(st.integers(1, 3))):
            shape = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=4))
            hidden = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
            self.written.append(
                [size if is_known else "?" for size, is_known in zip(shape, hidden, strict=True)]
            )
            output = self.ir.parameter(f"p{number}", shape=self.written[-1])
            self.values.append((output, tuple(shape)))
        self.shapes = [shape for _, shape in self.values]
        for _ in range(draw(st.integers(1, 5))):
            draw(st.sampled_from(TEMPLATES))(self)

    def pick(self, rank: int = 1) -> tuple[Output, tuple[int, ...]]:
        """Draw a value with so many dimensions, one at least if there is none."""
        fit = [value for value in self.values if len(value[1]) >= rank]
        return self.draw(st.sampled_from(fit or self.values[: len(self.shapes)]))  # type: ignore[no-any-return]

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def integers(self, low: int, high: int, count: int) -> list[int]:
        return [self.integer(low, high) for _ in range(count)]

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def word(self, *words: str) -> str:
        return str(self.draw(st.sampled_from(words)))

    def add(
        self,
        type: str,
        version: str,
        inputs: Sequence[tuple[Output, tuple[int, ...]]],
        lists: Sequence[list[int] | int] = (),
        data: dict[str, str] | None = None,
        outputs: int = 1,
    ) -> None:
        """Add a node unless NumPy, or for want of a kernel the rule, says that it is illegal with these sizes."""
        op, data = find("openvino", type), data or {}
        assert op is not None
        arrays = [np.broadcast_to(np.zeros((), np.float32), shape) for _, shape in inputs]
        arrays += [np.array(numbers, np.int64) for numbers in lists]
        try:
            if op.kernel:
                made = compute(
                    op, "openvino", arrays, data, opset=8, output_count=outputs, element_limit=1 << 16
                )
                shapes = [array.shape for array in made]
            else:
                given = [[one] if isinstance(one, int) else one for one in lists]
                numbers = dict(enumerate(given, len(inputs)))
                case = ShapeCase([array.shape for array in arrays], numbers.get, data)
                found = output_shapes("openvino", type, case) or []
                shapes = [shape for shape in found[:1] if shape is not None]
        except (UnsupportedCase, ShapesDiffer):
            return
        if len(shapes) != outputs or any(len(shape) > 6 for shape in shapes):
            return
        ir, count = self.ir, self.ir.count
        sources = [source for source, _ in inputs]
        sources += [ir.const(f"c{ir.count}", "i64", numbers) for numbers in lists]
        output = ir.add(f"n{count}", type, version, sources, [("f32", ())] * outputs, data)
        for number, shape in enumerate(shapes):
            self.values.append((Output(output.layer, output.port + number, "f32", ()), shape))


def _reshape(drawn: Drawn) -> None:
    value = drawn.pick()
    pattern = list(drawn.draw(st.permutations(value[1])))
    while len(pattern) > 1 and drawn.integer(0, 1):
        pattern.append(pattern.pop() * pattern.pop())
    if drawn.integer(0, 1):
        pattern.insert(drawn.integer(0, len(pattern)), 1)
    if drawn.integer(0, 2):
        pattern[drawn.integer(0, len(pattern) - 1)] = -1
    pattern = [
        0 if place < len(value[1]) and size == value[1][place] and drawn.integer(0, 1) else size
        for place, size in enumerate(pattern)
    ]
    drawn.add("Reshape", "opset1", [value], [pattern], {"special_zero": drawn.word("true", "true", "false")})


def _slice(drawn: Drawn) -> None:
    value = drawn.pick()
    axes = drawn.draw(st.lists(st.integers(0, len(value[1]) - 1), min_size=1, unique=True))
    starts, ends, steps = (drawn.integers(*ends, len(axes)) for ends in ((-7, 7), (-7, 7), (-3, 3)))
    ends = [drawn.draw(st.sampled_from([end, 2**31 - 1])) for end in ends]
    drawn.add("Slice", "opset8", [value], [starts, ends, [step or 1 for step in steps], axes])


def _strided_slice(drawn: Drawn) -> None:
    value = drawn.pick()
    count = drawn.integer(1, len(value[1]) + 1)
    words = ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    masks = {
        f"{word}_mask": ",".join(str(int(drawn.integer(0, 3) == 0)) for _ in range(count)) for word in words
    }
    lists = [drawn.integers(-5, 5, count), drawn.integers(-5, 5, count), drawn.integers(1, 3, count)]
    drawn.add("StridedSlice", "opset1", [value], lists, masks)


def _split(drawn: Drawn) -> None:
    value = drawn.pick()
    axis, count = drawn.axis(len(value[1])), drawn.integer(1, 3)
    drawn.add("Split", "opset1", [value], [axis], {"num_splits": str(count)}, count)


def _variadic_split(drawn: Drawn) -> None:
    value = drawn.pick()
    axis = drawn.axis(len(value[1]))
    first = drawn.integer(0, value[1][axis])
    lengths = [first, drawn.draw(st.sampled_from([-1, value[1][axis] - first]))]
    drawn.add("VariadicSplit", "opset1", [value], [axis, lengths], outputs=2)


def _concat(drawn: Drawn) -> None:
    value = drawn.pick()
    same = [other for other in drawn.values if len(other[1]) == len(value[1])]
    others = [drawn.draw(st.sampled_from(same)) for _ in range(drawn.integer(1, 2))]
    drawn.add("Concat", "opset1", [value, *others], (), {"axis": str(drawn.axis(len(value[1])))})


def _pad(drawn: Drawn) -> None:
    value = drawn.pick()
    pads = [drawn.integers(-1, 3, len(value[1])) for _ in range(2)]
    drawn.add("Pad", "opset12", [value], pads, {"pad_mode": "constant"})


def _gather(drawn: Drawn) -> None:
    value = drawn.pick()
    axis = drawn.axis(len(value[1]))
    indices = drawn.draw(st.sampled_from([0, [0], [0, 0, 0]]))
    drawn.add("Gather", "opset8", [value], [indices, axis], {"batch_dims": "0"})


def _elementwise(drawn: Drawn) -> None:
    drawn.add(
        drawn.word("Add", "Maximum"), "opset1", [drawn.pick(), drawn.pick()], (), {"auto_broadcast": "numpy"}
    )


def _matmul(drawn: Drawn) -> None:
    words = {f"transpose_{side}": drawn.word("true", "false") for side in "ab"}
    drawn.add("MatMul", "opset1", [drawn.pick(), drawn.pick()], (), words)


def _reduce(drawn: Drawn) -> None:
    value = drawn.pick()
    axes = drawn.draw(st.lists(st.integers(0, len(value[1]) - 1), max_size=2, unique=True))
    drawn.add("ReduceMax", "opset1", [value], [axes], {"keep_dims": drawn.word("true", "false")})


def _squeeze(drawn: Drawn) -> None:
    value = drawn.pick()
    ones = [axis for axis, size in enumerate(value[1]) if size == 1]
    axes = drawn.draw(st.lists(st.sampled_from(ones), max_size=2, unique=True)) if ones else []
    drawn.add("Squeeze", "opset1", [value], [axes] if axes or drawn.integer(0, 1) else [])


def _unsqueeze(drawn: Drawn) -> None:
    value = drawn.pick()
    drawn.add("Unsqueeze", "opset1", [value], [[drawn.axis(len(value[1]) + 1)]])


def _transpose(drawn: Drawn) -> None:
    value = drawn.pick()
    order = list(drawn.draw(st.permutations(range(len(value[1])))))
    drawn.add("Transpose", "opset1", [value], [drawn.draw(st.sampled_from([order, []]))])


def _tile(drawn: Drawn) -> None:
    value = drawn.pick()
    drawn.add("Tile", "opset1", [value], [drawn.integers(0, 3, drawn.integer(1, len(value[1]) + 1))])


def _broadcast(drawn: Drawn) -> None:
    value = drawn.pick()
    target = [
        *drawn.integers(1, 3, drawn.integer(0, 1)),
        *[drawn.draw(st.sampled_from([1, size])) for size in value[1]],
    ]
    mode = drawn.word("numpy", "bidirectional")
    drawn.add("Broadcast", "opset3", [value], [target], {"mode": mode})


def _windows(drawn: Drawn, rank: int, word: str) -> dict[str, str]:
    numbers = {
        "strides": drawn.integers(1, 5, rank),
        "pads_begin": drawn.integers(0, 2, rank),
        "pads_end": drawn.integers(0, 2, rank),
        word: drawn.integers(1, 2, rank) if word == "dilations" else drawn.integers(1, 9, rank),
    }
    data = {name: ",".join(map(str, sizes)) for name, sizes in numbers.items()}
    return data | {"auto_pad": drawn.word("explicit", "valid", "same_upper")}


def _convolution(drawn: Drawn) -> None:
    value, weights = drawn.pick(3), drawn.pick(3)
    drawn.add("Convolution", "opset1", [value, weights], (), _windows(drawn, len(value[1]) - 2, "dilations"))


def _pool(drawn: Drawn) -> None:
    value = drawn.pick(3)
    rounding = drawn.word("floor", "ceil")
    data = _windows(drawn, len(value[1]) - 2, "kernel") | {"rounding_type": rounding, "exclude-pad": "false"}
    drawn.add("AvgPool", "opset1", [value], (), data)


TEMPLATES = (
    _reshape, _slice, _strided_slice, _split, _variadic_split, _concat, _pad, _gather, _elementwise, _matmul,
    _reduce, _squeeze, _unsqueeze, _transpose, _tile, _broadcast, _convolution, _pool,
)  # fmt: skip


@pytest.mark.openvino
@given(st.data())
def test_small_graphs(
    openvino: OpenvinoShapes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever sizes the unknown dimensions get, what is known holds."""
    drawn = Drawn(data.draw)
    folder = tmp_path_factory.mktemp("graph")
    path = drawn.ir.write(folder)
    model = ir_scatter.read(path)
    facts = Facts(model=model, trusts_stored=False)
    sizes = [drawn.shapes]
    for _ in range(4):
        sizes.append(
            [
                tuple([data.draw(st.sampled_from(OTHER_SIZES)) if dim == "?" else int(dim) for dim in shape])
                for shape in drawn.written
            ]
        )
    for shapes in sizes:
        truth = openvino.ask(path, shapes)
        if truth is not None:
            compare(model, truth, facts)
    shutil.rmtree(folder)
