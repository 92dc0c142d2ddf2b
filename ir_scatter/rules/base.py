"""The types of a rule and of its findings, and the decorator that turns a check function into a rule."""

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import TypeAlias

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.diagnostics import Part, Related, Severity, Side
from ir_scatter.core.parameters import Parameter
from ir_scatter.ops.spec import Role

PAGES = Path(__file__).parent.with_name("docs") / "rules"
END = "<!-- end -->\n"
"""The line on a rule's page between the documentation and the example."""

_SECTION = "(Why|Applies to|Runtimes|Example|Fix)"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of a rule; `validate` adds code, severity, node and place to make a diagnostic.

    Attributes:
        message: the actual state, then the expected one: "updates is [2], expected [2, 3]".
        role: the input at fault.
        port: name of a port without a role: a superfluous input, the output.
        is_tolerated: whether runtimes compute the node as its author intended, so that it is only a warning.
        aspect: the wrong property of the input: "type" or "shape"; "" for its values or its presence.
        dim: the wrong dimension, if only one dimension of the shape is wrong.
        part: the faulty part of the node, if that is not the input.
        label: a few words at the caret of the excerpt, "expected 2".
        help: how to fix this finding, more specific than `Rule.fix`.
        fixed_by: the arguments with which `convert` fixes it; None if it cannot.
        is_refused: whether a runtime refuses the node. It is then an error, even where the rule is a warning.
    """

    message: str
    role: Role | None = None
    port: str | None = None
    port_index: int | None = None
    related: tuple[Related, ...] = ()
    is_tolerated: bool = False
    aspect: str = ""
    dim: int | None = None
    part: Part | None = None
    label: str = ""
    help: str = ""
    fixed_by: tuple[Parameter, ...] | None = None
    is_refused: bool = False


def attribute(name: str) -> Part:
    return Part(Side.ATTRIBUTE, name=name)


def to_opset(opset: str | int) -> str:
    """Return the advice to select an opset: 'write version="opset12"' in an IR, the model's opset in ONNX."""
    if isinstance(opset, str):
        return f'write version="{opset}"'
    return f"raise the opset of the model to {opset}"


def newest_version(scatter: ScatterNode) -> tuple[Parameter, ...]:
    """Return the arguments with which `convert` raises an operator to its newest version."""
    return Parameter("sources", scatter.lookup.type), Parameter("to", scatter.lookup.type)


Findings: TypeAlias = Iterator[Finding]


def first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about scatter nodes; as a decorator, it turns a check function into a rule.

    Attributes:
        name: "updates-shape-mismatch"; file defects that a reader reports under this name belong to the rule.
        severity: the severity of its findings; the row of an operator may lower an error to a warning.
        check: yields the violations of one scatter node; None if readers find them (`FILE_DEFECTS`).
        text: documentation, from the check's docstring; "" if the rule's page holds it.
        reads: the facts that the check reads. Nodes with equal facts are checked once, as a group; by default
            each node is checked.
        is_legality: whether the specification gives no result for a node that breaks the rule.
        needs_row: whether the check runs only if the opset contains the operator, so that the node has a
            specification (`ScatterNode.spec`).
        needs_given: whether the check runs only if the user gives conditions on inputs (`--given`).
    """

    code: str
    name: str
    severity: Severity = Severity.ERROR
    check: Callable[[ScatterNode], Findings] | None = None
    text: str = ""
    reads: Set[Fact] = EVERYTHING
    is_legality: bool = True
    needs_row: bool = True
    needs_given: bool = False

    def __call__(self, check: Callable[[ScatterNode], Findings]) -> "Rule":
        return replace(self, check=check, text=cleandoc(check.__doc__ or ""), reads=frozenset(self.reads))

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return first_sentence(self._source)

    @property
    def fix(self) -> str:
        """The Fix section of the documentation without its full stop; "" if there is none."""
        _, heading, fix = self._source.rpartition("Fix: ")
        return " ".join(fix.split()).removesuffix(".") if heading else ""

    @property
    def documentation(self) -> str:
        """The text that `explain` prints."""
        return re.sub(rf"\n+(?={_SECTION}: )", "\n\n", self._source.strip())

    @property
    def _source(self) -> str:
        return self.text or _page_documentation(self.code)


@cache
def _page_documentation(code: str) -> str:
    """Return the documentation of a rule from its page `docs/rules/CODE.md`; "" without a page."""
    page = PAGES / f"{code}.md"
    if not page.exists():
        return ""
    # the first two blocks are heading and severity
    _, _, text = page.read_text(encoding="utf-8").partition(END)[0].split("\n\n", 2)
    return re.sub(rf"\*\*{_SECTION}:\*\*", r"\1:", text).replace("&lt;", "<")
