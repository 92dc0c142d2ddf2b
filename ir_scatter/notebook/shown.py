"""Result types of the public functions: a one-line repr, full text as `str`, HTML tables in notebooks.

`report` renders text and HTML; the text is the one that the command line prints.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ir_scatter.convert.conversion import Conversion
from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.core.display import html_table, html_text, short_repr
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Model
from ir_scatter.core.words import counted
from ir_scatter.inspect import Inspection, NodeSummary, totals
from ir_scatter.inspect import inspect as inspect_model
from ir_scatter.ops.lookup import opset_number, scatter_types
from ir_scatter.report.characters import fields_of
from ir_scatter.report.registry import render

if TYPE_CHECKING:
    from ir_scatter.compare.request import ComparedModels
    from ir_scatter.compare.result import Compared
    from ir_scatter.core.arrays import Array
    from ir_scatter.lint import FileResult
    from ir_scatter.runners.base import Availability  # noqa: F401


class _Shown:
    """Base class of results with a one-line repr."""

    _public_name: ClassVar[str] = ""
    """The name in `ir_scatter.__all__`, if it is not that of the class."""

    def _summary(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return short_repr(self, self._summary(), self._public_name)


class ShownModel(_Shown, Model):
    """A model with a one-line repr, and a table of its scatter nodes in a notebook; the public `Model`."""

    _public_name = "Model"

    @cached_property
    def scatter_nodes(self) -> "ScatterNodes":
        """The scatter nodes in the order of the file; those of a function once per signature."""
        return ScatterNodes(inspect_model(self), self.path)

    @cached_property
    def opset(self) -> str:
        """The newest opset of standard operators in the model, "opset15"; "" if there are none."""
        number = self.opset_imports.get(self.domain)
        if number is None:
            nodes = (node for node in self.definitions() if node.domain == self.domain)
            number = max((opset_number(node) or 0 for node in nodes), default=0)
        return f"opset{number}" if number else ""

    def _summary(self) -> str:
        nodes = sum(1 for _ in self.definitions())
        scatters = sum(1 for _ in self.definitions(scatter_types(self.domain)))
        counts = (f"{nodes:,} node{'s' * (nodes != 1)}", f"{scatters:,} scatter node{'s' * (scatters != 1)}")
        return f"{_base(self.path)}: {', '.join(filter(None, (self.format, self.opset, *counts)))}"

    def _repr_html_(self) -> str:
        return f"{html_table((), (), self._summary())}{self.scatter_nodes._repr_html_()}"


class _Table(_Shown):
    """A result that can be converted to a pandas DataFrame."""

    def _records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table: values by column name."""
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
    """A list that a notebook renders as a table."""

    _left_out: frozenset[str] = frozenset()
    """Columns for programs; the HTML table omits them."""

    def _repr_html_(self) -> str:
        rows = list(self._records())
        names = [name for name in (rows[0] if rows else ()) if name not in self._left_out]
        columns = [name for name in names if any(row[name] not in (None, "") for row in rows)]
        cells = [["" if row[name] is None else row[name] for name in columns] for row in rows]
        return html_table(columns, cells, self._summary())


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
                "inputs": ", ".join(f"{name} {text}" for name, text in node.inputs.items() if text),
                "axis": node.axis,
                "reduction": node.reduction,
                "indices": str(node.indices),
            }


class Findings(_Rows[Diagnostic]):
    """The findings of `validate`, a list in the order of the file; empty if nothing is wrong.

    `str` gives the text that the command line prints.
    """

    _left_out = frozenset({"column", "operator", "port", "path"})

    def __init__(self, file: "FileResult | None" = None) -> None:
        super().__init__(file.diagnostics if file else ())
        self._file = file

    @property
    def errors(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self if diagnostic.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self if diagnostic.severity is Severity.WARNING]

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

        for diagnostic in self:
            yield {
                "severity": diagnostic.severity.value,
                "code": diagnostic.code,
                "rule": diagnostic.rule,
                "message": diagnostic.message,
                "line": diagnostic.location.line,
                "column": diagnostic.location.column,
                "scope": diagnostic.location.scope,
                "help": whole_help(diagnostic),
                "operator": diagnostic.node.type if diagnostic.node else "",
                "port": diagnostic.port or "",
                "path": diagnostic.location.path,
            }


class ShownConversion(Conversion):
    """The result of `convert`, public as `Conversion`; `str` gives the text that the command line prints."""

    __slots__ = ()

    def __str__(self) -> str:
        from ir_scatter.convert.conversion import ConversionRun

        return render("conversion", "text", ConversionRun(self))

    def _summary(self) -> str:
        return str(self).splitlines()[-1].removesuffix("; nothing written")

    def __repr__(self) -> str:
        return short_repr(self, f"{_base(self.model.path)}: {self._summary()}", "Conversion")

    def _repr_html_(self) -> str:
        rows = []
        for converted in self.converted:
            state = "safe" if converted.is_safe else f"assumed: {', '.join(converted.assumptions)}"
            source, rewrites = str(converted.source or ""), ", ".join(converted.rewrites)
            rows.append((converted.location.scope, source, str(converted.target), state, rewrites))
        for each in self.refused:
            source, target = str(each.source or each.type), str(each.target or "")
            rows.append((each.location.scope, source, target, f"refused: {each.code}", each.message))
        return html_table(("scope", "from", "to", "state", "why"), rows, self._summary())


class Explanation(str):
    """The text of `explain`; its first line names the topic."""

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
    """The known runners, and whether they can run here."""

    def __str__(self) -> str:
        return render("devices", "text", self)

    def _summary(self) -> str:
        here = ", ".join(device.runner for device in self if device.is_available)
        count = sum(not device.is_available for device in self)
        return here + (f"; {counted(count, 'other')} cannot run here" if count else "")

    def _records(self) -> Iterator[dict[str, Any]]:
        for device in self:
            yield {
                "runner": device.runner,
                "runs here": "yes" if device.is_available else "no",
                "device": device.full_name,
                "precision": device.default_precision,
                "reason": device.reason,
                "remedy": device.remedy,
            }


class ComparisonResult(_Table):
    """The result of `compare`; `str` gives the text that the command line prints.

    Its DataFrame has a row for each tensor, runner and case.

    Attributes:
        done: the full result: outcomes, differences, outliers and illegal indices of each comparison.
    """

    def __init__(self, done: "ComparedModels") -> None:
        self.done = done

    @property
    def found(self) -> "tuple[Compared, ...]":
        return self.done.found

    @property
    def differs(self) -> bool:
        """Whether a result differs, changes from run to run, or is based on illegal indices."""
        return any(compared.differs for compared in self.found)

    @property
    def verdict(self) -> str:
        """The result in one sentence: the first line of the text and of the report."""
        from ir_scatter.compare.headline import headline_of_many

        return headline_of_many(self.done).sentence

    def __str__(self) -> str:
        return render("comparison", "text", self.done)

    def _summary(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        parts = [html_table((), (), self.verdict)]
        for compared in self.found:
            runs = [(outcome.runner, outcome.status.value, outcome.message) for outcome in compared.outcomes]
            parts.append(html_table(("runner", "status", "message"), runs))
        parts.append(html_table(("runner", "passed over"), self.done.skipped))
        rows = [row for row in self._records() if row["verdict"] != "equal"]
        names = ("node", "tensor", "runner", "against", "verdict", "elements", "differ", "remark")
        parts.append(html_table(names, [[row[name] for name in names] for row in rows]))
        return "".join(parts)

    def _records(self) -> Iterator[dict[str, Any]]:
        for comparison in (comparison for compared in self.found for comparison in compared.comparisons):
            measure = comparison.measure
            yield {
                "level": comparison.level.value,
                "node": comparison.node or "",
                **fields_of(comparison, "tensor case"),
                "runner": comparison.subject,
                "against": comparison.reference,
                "verdict": measure.verdict.value,
                "elements": measure.elements,
                "differ": measure.mismatched,
                **fields_of(measure, "max_abs max_rel max_ulp remark"),
            }

    def write_report(self, path: "str | PathLike[str]", *, overwrite: bool = True) -> None:
        """Write the HTML report with pictures, like `ir-scatter compare --report`.

        The file appears complete or not at all.

        Raises:
            UsageError: the file exists and must not be replaced.
            CannotWrite: the file cannot be written.
        """
        from ir_scatter.core.atomic_write import Output, replace_files

        page = render("comparison", "html", self.done).encode("utf-8", "backslashreplace")
        replace_files([Output(Path(path), page, is_new=not overwrite)])


def _base(path: str) -> str:
    """Return the file name of a path; the "<name>" of a model from memory stays unchanged."""
    return path if path.startswith("<") else Path(path).name or path
