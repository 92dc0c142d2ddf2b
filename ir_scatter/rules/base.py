"""What a rule is, and what it finds."""

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
from ir_scatter.ops.spec import Role

PAGES = Path(__file__).parent.with_name("docs") / "rules"
END = "<!-- end -->\n"
"""In the page of a rule it is followed by the example."""

_SECTION = "(Why|Applies to|Runtimes|Example|Fix)"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, before code, severity, node and place are added: what is, then what was expected.

    It is about the input of a role, or a port without one: a superfluous input, the output. What runtimes
    take as meant (`is_tolerated`) is a warning, whatever the row says, and what one refuses (`is_refused`)
    an error.

    Attributes:
        aspect: what is wrong with the input: its "type" or "shape"; "" for its values, or that it is there.
        dim: the one dimension of the shape that is wrong.
        part: what is at fault, if it is not the input.
        label: what to say of it in a few words, "expected 2".
        help: how to mend it in a sentence, if more can be said than what the rule says.
        mended_by: as that of `Rule`, if it is not the same for all findings.
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
    mended_by: str | None = None
    is_refused: bool = False


def attribute(name: str) -> Part:
    return Part(Side.ATTRIBUTE, name=name)


def to_opset(opset: str | int) -> str:
    """Return how to get to an opset: a layer has one of its own, an ONNX model one for all nodes."""
    if isinstance(opset, str):
        return f'write version="{opset}"'
    return f"raise the opset of the model to {opset}"


Findings: TypeAlias = Iterator[Finding]


def first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: one code. A check of scatter nodes that it decorates becomes it.

    Attributes:
        name: "updates-shape-mismatch"; a defect of this name found by a reader belongs to it.
        severity: the row of an operator may lower an error to a warning.
        check: yields the violations of one scatter node; None if a reader finds them.
        text: what documents a check, its docstring; of others their page does.
        reads: all that it looks at to tell whether anything is to be found. What it finds for one node
            it finds for all that are the same in that; if nothing is declared it is asked about each.
        is_legality: whether a node that breaks it has no documented result.
        mended_by: what `ir-scatter convert` must be told to mend it, "{type}" for the operator; "" if
            nothing, None if no conversion mends it.
        needs_row: whether it is asked only about nodes whose opset has the operator, of which there is a
            row (`ScatterNode.spec`).
    """

    code: str
    name: str
    severity: Severity = Severity.ERROR
    check: Callable[[ScatterNode], Findings] | None = None
    text: str = ""
    reads: Set[Fact] = EVERYTHING
    is_legality: bool = True
    mended_by: str | None = None
    needs_row: bool = True

    def __call__(self, check: Callable[[ScatterNode], Findings]) -> "Rule":
        return replace(self, check=check, text=cleandoc(check.__doc__ or ""), reads=frozenset(self.reads))

    @property
    def summary(self) -> str:
        """The first sentence of what documents it."""
        return first_sentence(self._told)

    @property
    def fix(self) -> str:
        """How to mend what it finds, without a full stop; "" if the documentation does not say."""
        _, word, fix = self._told.rpartition("Fix: ")
        return " ".join(fix.split()).removesuffix(".") if word else ""

    @property
    def documentation(self) -> str:
        """What `explain` prints."""
        return re.sub(rf"\n+(?={_SECTION}: )", "\n\n", self._told.strip())

    @property
    def _told(self) -> str:
        return self.text or _of_page(self.code)


@cache
def _of_page(code: str) -> str:
    """Return what the page of a rule says before its example, "" if there is none."""
    page = PAGES / f"{code}.md"
    if not page.exists():
        return ""
    _, _, text = page.read_text(encoding="utf-8").partition(END)[0].split("\n\n", 2)  # heading, severity
    return re.sub(rf"\*\*{_SECTION}:\*\*", r"\1:", text).replace("&lt;", "<")
