"""The functions of the library, which take models from anywhere, and results that show themselves.

Everything heavy is imported when it is called. What a result looks like as text or HTML is made in `report`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ir_scatter import reading
from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS
from ir_scatter.convert.conversion import DEFAULT_CASES
from ir_scatter.convert.conversion import Conversion as BareConversion
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.display import html_table, html_text, short_repr
from ir_scatter.core.errors import BadFeed, UnreadableModel, UsageError
from ir_scatter.core.model import Model as BareModel
from ir_scatter.core.shapes import Shape, counted, parse_dim, parse_shape, with_article
from ir_scatter.explain import explain as explain_topic
from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.inspect import inspect as inspect_model
from ir_scatter.ops.lookup import opset_number, scatter_types
from ir_scatter.report.characters import fields_of
from ir_scatter.report.registry import render
from ir_scatter.validate import code_prefixes
from ir_scatter.validate import validate as validate_model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.compare.request import Done
    from ir_scatter.compare.result import Compared
    from ir_scatter.core.arrays import Array
    from ir_scatter.fuzz.explain import Finding
    from ir_scatter.lint import FileResult
    from ir_scatter.runners.base import Availability  # noqa: F401

    class BinaryFile(Protocol):
        """A file that is open in binary mode."""

        def read(self) -> bytes: ...

    class ModelProto(Protocol):
        """An `onnx.ModelProto`, of whatever package."""

        def SerializeToString(self) -> bytes: ...

    class OpenVinoModel(Protocol):
        """An `openvino.Model`."""

        def get_friendly_name(self) -> str: ...


Readable: TypeAlias = (
    "BareModel | str | PathLike[str] | bytes | bytearray | memoryview | BinaryFile"
    " | ModelProto | OpenVinoModel"
)
"""What `read` takes, and every function that takes a model."""

InputShapes: TypeAlias = "Mapping[str, str | Sequence[int] | Shape]"
"""Shapes of inputs by name, as text ("2,?,1..5") or as numbers, -1 for an unknown one."""

_EXPECTED = "a path, bytes, an onnx.ModelProto, an openvino.Model or a file that is open in binary mode"


class _Shown:
    """Shows itself in a line, as the text of the command line, and as a table in a notebook."""

    def _summary(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return short_repr(self, self._summary())


class Model(_Shown, BareModel):
    """A model that was read: a line about it, a table of its scatter nodes in a notebook."""

    @cached_property
    def scatter_nodes(self) -> "ScatterNodes":
        """The scatter nodes in the order of the file, those of a function once per signature."""
        return ScatterNodes(inspect_model(self), self.path)

    @cached_property
    def opset(self) -> str:
        """The newest opset that the model takes operators of its own format from, "opset15"; "" for none."""
        number = self.opset_imports.get(self.domain)
        if number is None:
            own = (node for node in self.definitions() if node.domain == self.domain)
            number = max((opset_number(node) or 0 for node in own), default=0)
        return f"opset{number}" if number else ""

    def _summary(self) -> str:
        nodes = sum(1 for _ in self.definitions())
        scatters = sum(1 for _ in self.definitions(scatter_types(self.domain)))
        counts = (f"{nodes:,} node{'s' * (nodes != 1)}", f"{scatters:,} scatter node{'s' * (scatters != 1)}")
        return f"{_base(self.path)}: {', '.join(filter(None, (self.format, self.opset, *counts)))}"

    def _repr_html_(self) -> str:
        return f"{html_table((), (), self._summary())}{self.scatter_nodes._repr_html_()}"


class _Table(_Shown):
    """Can become a table of pandas."""

    def _records(self) -> Iterator[dict[str, Any]]:
        """Yield rows: columns by name."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table as a `pandas.DataFrame`.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            why = "is not installed: pip install pandas" if error.name == "pandas" else f"is broken: {error}"
            raise UsageError(f"a DataFrame needs pandas, which {why}") from None
        return pandas.DataFrame(list(self._records()))


_T = TypeVar("_T")


class _Rows(_Table, list[_T]):
    """A list that shows itself as a table."""

    _left_out: frozenset[str] = frozenset()
    """Columns that only a program wants."""

    def _repr_html_(self) -> str:
        rows = list(self._records())
        names = [name for name in (rows[0] if rows else ()) if name not in self._left_out]
        shown = [name for name in names if any(row[name] not in (None, "") for row in rows)]
        cells = [["" if row[name] is None else row[name] for name in shown] for row in rows]
        return html_table(shown, cells, self._summary())


class ScatterNodes(_Rows[NodeSummary]):
    """The scatter nodes of a model: operator, name, scope, shapes, axis, reduction, indices, attributes."""

    def __init__(self, nodes: Iterable[NodeSummary] = (), path: str = "") -> None:
        super().__init__(nodes)
        self.path = path

    def __str__(self) -> str:
        return render("inspection", "text", [Inspection(self.path, None, tuple(self))])

    def _summary(self) -> str:
        kinds = ", ".join(f"{count} {operator}" for operator, count in totals(self).items())
        return f"{counted(len(self), 'scatter node')}" + (f": {kinds}" if kinds else "")

    def _records(self) -> Iterator[dict[str, Any]]:
        for node in self:
            yield {
                "line": node.location.line,
                "scope": node.scope,
                "operator": node.operator,
                "inputs": ", ".join(f"{name} {shown}" for name, shown in node.inputs.items() if shown),
                "axis": node.axis,
                "reduction": node.reduction,
                "indices": str(node.indices),
            }


class Findings(_Rows[Diagnostic]):
    """What `validate` found, in the order of the file: a list, empty if nothing is wrong.

    `str` gives the text of the command line.
    """

    _left_out = frozenset({"column", "operator", "port", "path"})

    def __init__(self, file: "FileResult | None" = None) -> None:
        super().__init__(file.diagnostics if file else ())
        self._file = file

    @property
    def errors(self) -> list[Diagnostic]:
        return [found for found in self if found.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [found for found in self if found.severity is Severity.WARNING]

    def _report(self) -> Any:
        from ir_scatter.lint import Report

        return Report(() if self._file is None else (replace(self._file, diagnostics=tuple(self)),))

    def __str__(self) -> str:
        return render("findings", "text", self._report())

    def _summary(self) -> str:
        from ir_scatter.report.phrases import summary

        name = "" if self._file is None else f"{_base(self._file.path)}: "
        return name + summary(self._report())

    def _records(self) -> Iterator[dict[str, Any]]:
        from ir_scatter.report.phrases import whole_help

        for found in self:
            yield {
                "severity": found.severity.value,
                "code": found.code,
                "rule": found.rule,
                "message": found.message,
                "line": found.location.line,
                "column": found.location.column,
                "scope": found.location.scope,
                "help": whole_help(found),
                "operator": found.node.type if found.node else "",
                "port": found.port or "",
                "path": found.location.path,
            }


class Conversion(BareConversion):
    """What a conversion came to; `str` gives the text of the command line. See `convert`."""

    __slots__ = ()

    def __str__(self) -> str:
        from ir_scatter.convert.conversion import Done

        return render("conversion", "text", Done(self))

    def _summary(self) -> str:
        return str(self).splitlines()[-1].removesuffix("; nothing written")

    def __repr__(self) -> str:
        return short_repr(self, f"{_base(self.model.path)}: {self._summary()}")

    def _repr_html_(self) -> str:
        rows = []
        for one in self.converted:
            state = "safe" if one.is_safe else f"assumed: {', '.join(one.assumptions)}"
            source, rewrites = str(one.source or ""), ", ".join(one.rewrites)
            rows.append((one.location.scope, source, str(one.target), state, rewrites))
        for each in self.refused:
            source, target = str(each.source or each.type), str(each.target or "")
            rows.append((each.location.scope, source, target, f"refused: {each.code}", each.message))
        return html_table(("scope", "from", "to", "state", "why"), rows, self._summary())


class Explanation(str):
    """A text whose first line names what it explains."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = self.splitlines()
        first, count = lines[0] if lines else "", counted(len(lines), "line")
        return short_repr(self, f"{first}: {count}, print() shows them")

    def _repr_html_(self) -> str:
        return html_text(str(self))


class Outputs(_Shown, dict[str, "Array"]):
    """The outputs of a model by name."""

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        from ir_scatter.report.outputs_text import summarize

        return summarize(self)

    def _summary(self) -> str:
        return ", ".join(f"{name} {type}{shape}" for name, type, shape, *_ in self._rows())

    def _repr_html_(self) -> str:
        return html_table(("output", "type", "shape", "min", "max"), self._rows())


class Devices(_Rows["Availability"]):
    """The runners that are known, and whether they can run here."""

    def __str__(self) -> str:
        return render("devices", "text", self)

    def _summary(self) -> str:
        here = ", ".join(one.runner for one in self if one.is_available)
        count = sum(not one.is_available for one in self)
        return here + (f"; {counted(count, 'other')} cannot run here" if count else "")

    def _records(self) -> Iterator[dict[str, Any]]:
        for one in self:
            yield {
                "runner": one.runner,
                "runs here": "yes" if one.is_available else "no",
                "device": one.full_name,
                "precision": one.default_precision,
                "reason": one.reason,
                "remedy": one.remedy,
            }


class ComparisonResult(_Table):
    """What came of a comparison; `str` gives the text of the command line.

    As a DataFrame it has a row for each tensor of each runner and case.

    Attributes:
        done: all of it: of each comparison outcomes, differences, outliers, indices that are not legal.
    """

    def __init__(self, done: "Done") -> None:
        self.done = done

    @property
    def found(self) -> "tuple[Compared, ...]":
        return self.done.found

    @property
    def differs(self) -> bool:
        """Whether something differs, changes from run to run, or got illegal indices."""
        return any(one.differs for one in self.found)

    @property
    def verdict(self) -> str:
        """What came of it in a sentence: the first line of the text and of the report."""
        from ir_scatter.compare.headline import headline_of_many

        return headline_of_many(self.done).sentence

    def __str__(self) -> str:
        return render("comparison", "text", self.done)

    def _summary(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        parts = [html_table((), (), self.verdict)]
        for one in self.found:
            runs = [(each.runner, each.status.value, each.message) for each in one.outcomes]
            parts.append(html_table(("runner", "status", "message"), runs))
        parts.append(html_table(("runner", "passed over"), self.done.skipped))
        rows = [row for row in self._records() if row["verdict"] != "equal"]
        names = ("node", "tensor", "runner", "against", "verdict", "elements", "differ", "remark")
        parts.append(html_table(names, [[row[name] for name in names] for row in rows]))
        return "".join(parts)

    def _records(self) -> Iterator[dict[str, Any]]:
        for one in (one for each in self.found for one in each.comparisons):
            found = one.measure
            yield {
                "level": one.level.value,
                "node": one.node or "",
                **fields_of(one, "tensor case"),
                "runner": one.subject,
                "against": one.reference,
                "verdict": found.verdict.value,
                "elements": found.elements,
                "differ": found.mismatched,
                **fields_of(found, "max_abs max_rel max_ulp remark"),
            }

    def write_report(self, path: "str | PathLike[str]") -> None:
        """Write the page with pictures that `ir-scatter compare --report` writes.

        Raises:
            UsageError: jinja2 is not installed.
            OSError: the file cannot be written.
        """
        Path(path).write_text(render("comparison", "html", self.done), encoding="utf-8")


def read(
    path: "Readable",
    data: bytes | None = None,
    *,
    format: str | None = None,
    input_shapes: "InputShapes | None" = None,
) -> Model:
    """Read an OpenVINO IR (`.xml`, its `.bin` beside it) or an ONNX model; weights are mapped, not read.

    Args:
        path: the `.xml` or `.onnx` file; or the model itself as bytes, an `onnx.ModelProto`, an
            `openvino.Model` (which is written to a temporary folder) or a file that is open in binary mode.
        data: the bytes of the file, where they did not come from the file of that name.
        format: "openvino-ir" or "onnx"; told by the content if None.
        input_shapes: shapes for inputs of the model by name: "2,?,1..5" or numbers; for ONNX they are
            propagated.

    Returns:
        The model; `.scatter_nodes` lists what `inspect` does.

    Raises:
        UnreadableModel: it is no model, or cannot be read.
        TypeError: it is none of these.

    Example:
        >>> import ir_scatter as irs
        >>> irs.read("samples/kv_cache/decoder.xml")
        <Model decoder.xml: openvino-ir, opset8, 35 nodes, 2 scatter nodes>
        >>> with open("samples/kv_cache/decoder.onnx", "rb") as file:
        ...     irs.read(file.read())
        <Model <bytes>: onnx, opset18, 18 nodes, 2 scatter nodes>
    """
    shapes = {name: _shape(name, shape) for name, shape in (input_shapes or {}).items()}
    source: tuple[str, bytes | None]
    if data is not None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"data goes with the path of a file, not with {_a(path)}")
        source = fspath(path), _bytes(data, "data is")
    elif isinstance(path, BareModel):
        return path if isinstance(path, Model) else _shown(path)
    elif isinstance(path, str | PathLike) and isinstance(fspath(path), str):
        source = fspath(path), None
    elif isinstance(path, bytes | bytearray | memoryview):
        source = "<bytes>", bytes(path)
    elif getattr(getattr(path, "DESCRIPTOR", None), "full_name", "") == "onnx.ModelProto":
        source = _serialized(path)
    elif callable(getattr(path, "read", None)) and not isinstance(path, type | ModuleType):
        source = _opened(path)
    else:
        return _from_openvino(path, shapes)
    return _shown(reading.read(*source, format=format, input_shapes=shapes))


def _from_openvino(model: Any, shapes: Mapping[str, Shape]) -> Model:
    """Read what openvino holds, from a folder that stays as long as nodes and constants may be asked for."""
    import shutil
    import weakref

    from ir_scatter.core.temporary import new_folder
    from ir_scatter.runners.openvino.memory import is_model, write_model

    if not is_model(model):
        raise TypeError(f"the model is {_a(model)}, expected {_EXPECTED}")
    folder = new_folder()
    try:
        found = reading.read(write_model(model, Path(folder)), input_shapes=shapes)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(found.graph, shutil.rmtree, folder, ignore_errors=True)
    return _shown(found)


def _base(path: str) -> str:
    """Return the name of a file without its folders; what stands for a model from memory as it is."""
    return path if path.startswith("<") else Path(path).name or path


def _shown(found: BareModel) -> Model:
    return Model(**{field.name: getattr(found, field.name) for field in fields(found)})


def _a(one: object) -> str:
    """Return "an int", "a numpy.ndarray"."""
    return with_article(_kind(one))


def _kind(one: object) -> str:
    kind = type(one)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _bytes(data: object, what: str, hint: str = "") -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{what} {_a(data)}, expected bytes{hint}")
    return bytes(data)


def _shape(name: str, shape: "str | Sequence[int] | Shape") -> Shape:
    try:
        if isinstance(shape, str):
            return parse_shape(shape)
        if shape is None:
            return None
        return tuple(
            dim if isinstance(dim, tuple) else parse_dim("?" if dim == -1 else str(dim)) for dim in shape
        )
    except ValueError as error:
        raise UsageError(f"the shape of {name!r} is {shape!r}: {error}") from None


def _serialized(proto: Any) -> tuple[str, bytes]:
    """Return what a message of protobuf is called, and its bytes."""
    name = f"<onnx.ModelProto {proto.graph.name}>" if proto.graph.name else "<onnx.ModelProto>"
    try:
        return name, proto.SerializeToString()
    except Exception as error:  # EncodeError or ValueError: more than 2 GiB, or a field that is missing
        message = f"protobuf cannot write the model: {error}"
        raise UnreadableModel("unreadable-file", message, Location(name)) from error


def _opened(file: Any) -> tuple[str, bytes | None]:
    """Return name and content of what is open; of a plain file the path alone, which leads to its weights."""
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) and name else "file"
    if _is_plain(file, name):
        return name, None
    shown = name if name.startswith("<") else f"<{name}>"
    try:
        content = file.read()
    except (OSError, ValueError) as error:
        raise UnreadableModel("unreadable-file", f"cannot be read: {error}", Location(shown)) from None
    return shown, _bytes(content, "the file gives", ": open it in binary mode")


def _is_plain(file: Any, name: str) -> bool:
    """Tell whether an open file is at the start of what stands at the path that is its name."""
    import io
    import os

    try:
        is_file = isinstance(getattr(file, "raw", file), io.FileIO) and file.tell() == 0
        return is_file and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except (OSError, ValueError):  # a pipe, a file that is closed or gone
        return False


@contextmanager
def _file_of(model: "Readable") -> "Iterator[tuple[str, str]]":
    """Give the path of a file that holds a model, and its name: of one from memory as long as this lasts."""
    if isinstance(model, str | PathLike):
        yield fspath(model), fspath(model)
        return
    found = read(model)
    if Path(found.path).is_file():
        is_own = isinstance(model, BareModel)
        yield found.path, found.path if is_own else f"<{_kind(model)} {Path(found.path).stem}>"
        return
    from ir_scatter.core.temporary import temporary_folder
    from ir_scatter.formats import FORMATS

    with temporary_folder() as folder:
        path = Path(folder) / f"model{FORMATS[found.format].suffix}"
        path.write_bytes(FORMATS[found.format].write(found, ()).content)
        yield str(path), found.path


def _several(given: "str | Iterable[str]", name: str) -> tuple[str, ...]:
    """Return what is one text or several as several."""
    texts = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{name} has {_a(text)}, expected a string or several")
    return texts


def validate(
    model: "Readable",
    *,
    select: str | Collection[str] = (),
    ignore: str | Collection[str] = (),
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    shapes_given: bool = False,
    targets: str | Collection[str] = (),
) -> Findings:
    """Hold every scatter node of a model against the documents, and the file against itself.

    Args:
        model: a path, or anything else that `read` takes.
        select: only rules with this name or one of these names, "index-out-of-range", or with codes that
            begin so, "SCT2" or ["SCT203", "SCT3"]; empty for all.
        ignore: none of these rules.
        max_index_elements: constants with more elements are not looked at, and a note says so.
        shapes_given: the shapes are the caller's own, so that those the file stores are not held
            against them.
        targets: devices, "CPU" or ["GPU@2025.4"], whose known defects are looked for, too.

    Returns:
        All violations of all nodes, in the order of the file. A file that cannot be read is one, too.

    Raises:
        UsageError: `select` or `ignore` holds what is no rule, `targets` what is no device.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> found = irs.validate("samples/broken/scatter_nd_update.xml", select="SCT3")
        >>> found
        <Findings scatter_nd_update.xml: 2 errors in 1 file (5 scatter nodes)>
        >>> found[0]
        <Diagnostic error SCT303 samples/broken/scatter_nd_update.xml:57: indices[1, 0] is -1, expected 0 to 3 in ScatterNDUpdate-3>
    """  # noqa: E501
    from ir_scatter.lint import file_result, unreadable, with_defects

    codes = {"select": _several(select, "select"), "ignore": _several(ignore, "ignore")}
    for texts in codes.values():
        code_prefixes(texts)
    try:
        known = read(model)
    except UnreadableModel as error:
        return Findings(unreadable(error, error.location.path))
    found = validate_model(known, **codes, max_index_elements=max_index_elements, shapes_given=shapes_given)
    if devices := _several(targets, "targets"):
        found = with_defects(known, found, devices, **codes, max_index_elements=max_index_elements)
    return Findings(file_result(known, found))


def inspect(model: "Readable", *, max_index_elements: int = MAX_CONSTANT_ELEMENTS) -> ScatterNodes:
    """List the scatter nodes of a model in the order of the file, a function's once per signature.

    Args:
        model: a path, or anything else that `read` takes.
        max_index_elements: the numbers of constants with more elements are not looked at.

    Raises:
        UnreadableModel: the model cannot be read.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> nodes = irs.inspect("samples/documented/scatter_update_1.xml")
        >>> nodes
        <ScatterNodes 1 scatter node: 1 ScatterUpdate-3>
        >>> nodes[0].name, nodes[0].shapes["updates"], str(nodes[0].indices)
        ('scatter', (1000, 125, 20, 10, 15), 'not constant')
    """
    known = read(model)
    return ScatterNodes(inspect_model(known, max_index_elements=max_index_elements), known.path)


def explain(topic: str = "index") -> Explanation:
    """Explain a rule ("SCT203", "updates-shape-mismatch"), an operator ("ScatterND-18"), or give a page.

    An operator without a version stands for all of its versions. The page "index" names the others.

    Raises:
        UsageError: there is no such rule, operator or page.

    Example:
        >>> import ir_scatter as irs
        >>> irs.explain("SCT302").splitlines()[0]
        'SCT302 index-out-of-range (error)'
    """
    if not isinstance(topic, str):
        raise TypeError(f"the topic is {_a(topic)}, expected a string")
    return Explanation(explain_topic(topic))


def convert(
    model: "Readable",
    to: str | None = None,
    *,
    sources: str | Collection[str] = (),
    nodes: str | Sequence[str] = (),
    opset: int | None = None,
    assume: str | Collection[str] = (),
    keep_negative_indices: bool = False,
    verify: int = DEFAULT_CASES,
    seed: int = 0,
    targets: str | Collection[str] = (),
    guard: str | None = None,
) -> Conversion:
    """Rewrite scatter nodes into equal forms; nothing is written yet.

    Args:
        model: a path, or anything else that `read` takes.
        to: the operator that is wanted, "ScatterNDUpdate" or "ScatterNDUpdate-3"; without a version
            the newest (in ONNX that of the model's opset). None: deprecated operators become their
            successors.
        sources: only nodes of this operator or these; empty for all.
        nodes: only nodes with this name or scope path or these, literally or as globs.
        opset: the opset that an ONNX model is to have; None for the nearest one that works.
        assume: conditions to take for granted where the file does not tell: "unique-indices",
            "non-negative-indices", "equal-indices", "full-indices".
        keep_negative_indices: leave negative indices as they are where the target forbids them.
        verify: on how many generated inputs both forms of each node are compared; 0 for none.
        seed: for these inputs.
        targets: devices, "CPU" or "GPU@2025.4", whose known defects no node is to meet. Without `to` nothing
            but that happens.
        guard: "clamp" limits indices to their range where nothing proves that they are in it, "drop" leaves
            out updates whose index is out of range, "wrap" counts negative ones from the front. Without
            `to` and `targets` nothing but that happens.

    Returns:
        What is rewritten, what is refused and why, and what was proven; `.write(path)` writes it.

    Raises:
        UsageError: a name, an operator, an opset, a condition or a guard does not exist.
        UnreadableModel: the model cannot be read.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> irs.convert("samples/operators/scatter_update_3_axis_0.xml", to="ScatterNDUpdate")
        <Conversion scatter_update_3_axis_0.xml: 1 node converted, verified on 8 cases each>
    """
    from ir_scatter.convert import pipeline

    bare = pipeline.convert(
        read(model),
        to,
        sources=_several(sources, "sources"),
        nodes=_several(nodes, "nodes"),
        opset=opset,
        assume=_several(assume, "assume"),
        keep_negative_indices=keep_negative_indices,
        verify=verify,
        seed=seed,
        targets=_several(targets, "targets"),
        guard=guard,
    )
    return Conversion(**{field.name: getattr(bare, field.name) for field in fields(bare)})


def evaluate_model(model: "Readable", feeds: "Mapping[str, ArrayLike]") -> Outputs:
    """Compute the outputs of a model in NumPy.

    The scatter operators are computed as their documents say (`evaluate`). An output of an IR has
    the first name of its tensor in the order of the alphabet, as OpenVINO's `get_any_name` has it,
    or the name of the layer that it comes from if the tensor has none.

    Args:
        model: a path, or anything else that `read` takes.
        feeds: one array for each input, by the name of the Parameter or any of its tensor; inputs
            of an ONNX model that have an initializer may be left out.

    Returns:
        The outputs of the main graph by name; they may be read-only, and share no memory with feeds.

    Raises:
        UnreadableModel: the model, or a constant that is needed, cannot be read.
        BrokenModel: operators of the model, or the file itself, break rules.
        UnknownOperator: NumPy does not compute one of the nodes.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        EvaluationFailed: a node cannot be computed with the values that reach it.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> import numpy as np
        >>> feeds = {"data": np.zeros((1, 5), "f"), "updates": np.ones((1, 2), "f")}
        >>> found = irs.evaluate_model("samples/documented/scatter_2.onnx", feeds)
        >>> found
        <Outputs scatter f32[1, 5]>
        >>> found["scatter"]
        array([[0., 1., 0., 1., 0.]], dtype=float32)
    """
    from ir_scatter.evaluate.model import prepare

    return Outputs(prepare(read(model)).run(feeds))


def fuzz(
    on: str | Sequence[str] = (),
    *,
    operators: str | Sequence[str] = (),
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
    values: str = "any",
    illegal: bool = False,
    output: "str | PathLike[str] | None" = None,
    resume: bool = False,
) -> "Iterator[Finding]":
    """Find what runtimes get wrong, and shrink each defect to one small node.

    Args:
        on: who computes, "CPU" or ["CPU", "onnxruntime"] (see `devices`); empty for all that are here.
        operators: "ScatterNDUpdate-15", or all versions of "ScatterNDUpdate"; empty for all.
        seconds: of wall time for everything; None for 60, or for no limit where `cases` is given.
        cases: how many to draw.
        seed: what is drawn follows from it.
        values: "any", "plain" for ordinary numbers, or "edge" for those at the edges of their type.
        illegal: whether each case breaks one rule.
        output: a folder for a model, a program and a report of each finding.
        resume: whether to go on with the findings of that folder.

    Yields:
        Findings as they come, one for each operator, runner, symptom and condition: `.signature`, `.when`,
        `.symptom`, `.case`, `.as_json()`.

    Raises:
        UsageError: a name does not exist, or a runner that was named cannot run here.
        CannotWrite: the folder cannot be written.

    Example:
        >>> import ir_scatter as irs
        >>> [found.when for found in irs.fuzz(on="onnxruntime", operators="ScatterND-13", cases=2)]
        []
    """
    from ir_scatter.fuzz.job import Job, prepare, run
    from ir_scatter.report.campaign_folder import write_report

    folder = None if output is None else Path(output)
    names, rows = ([one] if isinstance(one, str) else list(one) for one in (on, operators))
    job = Job(names, rows, seconds, cases, seed, values, illegal, folder, resume)
    campaign = prepare(job)
    for finding in run(job, campaign):
        yield finding
        write_report(campaign, folder)
    write_report(campaign, folder)


def compare(
    model: "Readable",
    other: "Readable | None" = None,
    *,
    on: str | Sequence[str] = (),
    cases: int = 1,
    seed: int = 0,
    repeat: int = 1,
    values: str = "plain",
    inputs: "str | PathLike[str] | Mapping[str, ArrayLike] | None" = None,
    input_shapes: "InputShapes | None" = None,
    tolerance: str | Sequence[str] = (),
    precision: str = "f32",
    pairwise: bool = False,
    reference: bool = True,
    timeout: float = 600.0,
    tap_memory: int = 1 << 30,
    skip_missing: bool = False,
    save: "str | PathLike[str] | None" = None,
    against: "str | PathLike[str] | None" = None,
    extract: "str | PathLike[str] | None" = None,
    map_inputs: Mapping[str, str] | None = None,
    map_outputs: Mapping[str, str] | None = None,
) -> ComparisonResult:
    """Run a model on several runtimes and say which node, which element, which side is wrong.

    Args:
        model: a path, or anything else that `read` takes.
        other: a second model, whose outputs are compared with those of the first.
        on: who computes, "CPU" or ["numpy", "CPU", "onnxruntime"] (see `devices`); empty for NumPy and
            every device found.
        cases: on so many inputs; those of `inputs` are the first.
        seed: for generated inputs.
        repeat: each is run so often.
        values: "plain" for ordinary numbers, "edge" for extreme ones.
        inputs: arrays by name, or the path of an npz; None to generate legal ones.
        input_shapes: shapes that inputs are drawn in by name: "2,3" or numbers.
        tolerance: how far apart is close, "OUTPUT=ABS,REL" or "ABS,REL" for all.
        precision: what runtimes compute in: "f32", "f16", "bf16" or "default".
        pairwise: compare every pair of runners, not all with NumPy.
        reference: whether NumPy is the reference where it can compute the model, though it is not named.
        timeout: in seconds, per run.
        tap_memory: bytes of tapped values that are held at once.
        skip_missing: pass over runners that cannot run here.
        save: a folder for inputs, outputs and tapped values.
        against: a folder with what was saved before, to compare with.
        extract: a folder for a model of each node that differs.
        map_inputs: of two models those inputs of the second, by name of the first's, that no name, order and
            shape leads to.
        map_outputs: the same of outputs.

    Returns:
        What was found; `.differs`, `.verdict`, `.to_pandas()`, `.write_report(path)`.

    Raises:
        UsageError: a name does not exist, options do not fit each other, or feeds do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
        KeyboardInterrupt: with what was finished as `found`.
        TypeError: a model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> found = irs.compare("samples/operators/scatter_update_3_axis_0.xml", on=["numpy", "CPU"])
        >>> found.differs
        False
    """
    import warnings
    from contextlib import ExitStack

    from ir_scatter.compare.measure import Tolerances
    from ir_scatter.compare.phases import Interrupted
    from ir_scatter.compare.request import Job, run_job
    from ir_scatter.compare.result import Settings

    for name, word, known in (("values", values, ("plain", "edge")), ("precision", precision, _PRECISIONS)):
        if word not in known:
            raise UsageError(f"{name} is {word!r}, expected one of {', '.join(known)}")
    settings = Settings(
        seed=seed,
        cases=cases,
        repeat=repeat,
        values=values,
        input_shapes={name: _shape(name, shape) for name, shape in (input_shapes or {}).items()},
        tolerances=Tolerances(_several(tolerance, "tolerance")),
        precision=precision,
        pairwise=pairwise,
        reference=reference,
        timeout=timeout,
        tap_memory=tap_memory,
        describes=True,
        map_inputs=_pairs(map_inputs),
        map_outputs=_pairs(map_outputs),
    )
    given = (model,) if other is None else (model, other)
    with ExitStack() as opened:
        models = [opened.enter_context(_file_of(one)) for one in given]
        job = Job(
            tuple(path for path, _ in models),
            _several(on, "on"),
            settings,
            inputs=None if inputs is None else opened.enter_context(_npz(inputs)),
            skip_missing=skip_missing,
            save=_path(save),
            against=_path(against),
            extract=_path(extract),
        )
        names = dict(models)
        try:
            done = run_job(job)
        except Interrupted as interrupt:
            raise Interrupted(_renamed(interrupt.found, names)) from None
    for message in done.unwritten:
        warnings.warn(message, stacklevel=2)
    return _renamed(done, names)


def _renamed(done: "Done", names: Mapping[str, str]) -> ComparisonResult:
    """Return what came of a comparison with models from memory called what they are called."""
    found = [
        replace(one, model=names.get(one.model, one.model), other=names.get(one.other, one.other))
        for one in done.found
    ]
    return ComparisonResult(replace(done, found=tuple(found)))


def _pairs(names: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{first}={second}" for first, second in (names or {}).items())


def _path(folder: "str | PathLike[str] | None") -> str | None:
    return None if folder is None else fspath(folder)


_PRECISIONS = ("f32", "f16", "bf16", "default")


@contextmanager
def _npz(inputs: "str | PathLike[str] | Mapping[str, ArrayLike]") -> Iterator[str]:
    """Give the path of an npz: of arrays as long as this lasts."""
    if isinstance(inputs, str | PathLike):
        yield fspath(inputs)
        return
    if not isinstance(inputs, Mapping):
        raise BadFeed(f"the inputs are {_a(inputs)}, expected arrays by name or the path of an npz")
    import numpy

    from ir_scatter.core.temporary import temporary_folder
    from ir_scatter.evaluate.archive import write_arrays

    with temporary_folder() as folder:
        path = Path(folder, "inputs.npz")
        with path.open("wb") as file:
            write_arrays(file, {name: numpy.asarray(array) for name, array in inputs.items()})
        yield str(path)


def devices() -> Devices:
    """List what can run here: each runner with its device and versions, and why others cannot.

    Each is tried in a process of its own, which takes a second or two.

    Example:
        >>> import ir_scatter as irs
        >>> irs.devices()[0].runner
        'numpy'
    """
    from ir_scatter.compare.request import survey

    return Devices(survey())
