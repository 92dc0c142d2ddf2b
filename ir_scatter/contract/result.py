"""The result of `make_contract`: claims about each scatter node, and conditions on inputs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ir_scatter.contract.conditions import ContractCondition
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.display import short_repr
from ir_scatter.core.words import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SEPARATOR = "  "


@dataclass(frozen=True)
class Claim:
    """The claim that the indices of a scatter node are in range, or that its targets are distinct.

    Attributes:
        status: "proven" for all inputs; "conditional" if it holds under `conditions`; "refuted" if some legal
            input breaks it; or "unknown".
        because: the reason in words; for an unknown claim, the node or value whose numbers are unknown.
        conditions: conditions on inputs, as texts for `given`.
        witness: for a refuted claim, inputs that break it and their sizes, if a run confirmed them, else
            None: {"inputs": {"position": [31]}, "sizes": {"cache": [1, 4, 16, 8]}}.
    """

    status: str
    because: str
    conditions: tuple[str, ...] = ()
    witness: "Mapping[str, Any] | None" = None


@dataclass(frozen=True)
class NodeContract:
    """The two claims about one scatter node: indices in range, and targets distinct.

    Attributes:
        scope: the path to the node, as in `inspect`.
        operator: type and version, "ScatterND-16".
        line: the line of the node in its file, from 1; None for an ONNX file.
        breach: how some legal inputs, or some that satisfy the user's conditions, break an index: "reach 31,
            expected 0 to 15"; "" if no such inputs are known.
    """

    name: str
    scope: str
    operator: str
    line: int | None
    range: Claim
    distinct: Claim
    location: Location
    breach: str = ""


@dataclass(frozen=True)
class InputContract:
    """The conditions on one input, as texts: "position in 0..15"."""

    name: str
    conditions: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Contract:
    """The conditions on a model's inputs for which every index of its scatter nodes is legal.

    Attributes:
        path: the path of the model.
        given: the conditions that the user gave.
        nodes: the claims about each scatter node.
        inputs: the conditions on each input.
        sizes: the conditions on sizes alone: "mask.shape[0] <= x.shape[0]".
        requirements: the conditions of all nodes, as expressions.
    """

    path: str
    given: tuple[str, ...]
    nodes: tuple[NodeContract, ...]
    inputs: tuple[InputContract, ...]
    sizes: tuple[str, ...]
    requirements: tuple[ContractCondition, ...] = ()

    @property
    def summary(self) -> dict[str, int]:
        """The number of nodes by the status of their range."""
        counts = Counter(node.range.status for node in self.nodes)
        return {status: counts[status] for status in ("proven", "conditional", "refuted", "unknown")}

    def check(self, feeds: "Mapping[str, ArrayLike]") -> None:
        """Check inputs against the conditions.

        Args:
            feeds: the inputs by name; inputs without conditions may be missing.

        Raises:
            ValueError: a condition does not hold; the message names the input, the element and the node.
        """
        from ir_scatter.contract.check import check

        check(self.requirements, feeds)

    def python(self) -> str:
        """Return the source of a function `check(feeds)` that needs only NumPy."""
        from ir_scatter.contract.check import python_source

        unknown = [node.scope for node in self.nodes if node.range.status == "unknown"]
        return python_source(self.path, self.requirements, unknown)

    def __str__(self) -> str:
        """Return the contract as `ir-scatter contract` prints it."""
        lines = [f"{self.path}: {counted(len(self.nodes), 'scatter node')}"]
        lines += [f"  {line}" for line in self.lines()]
        if self.inputs or self.sizes:
            lines += ["", "inputs must satisfy"]
            lines += [f"  {text}" for each in self.inputs for text in each.conditions]
            lines += [f"  {text}" for text in self.sizes]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        counts = [f"{count} {status}" for status, count in self.summary.items() if count]
        summary = ", ".join([counted(len(self.nodes), "scatter node"), *counts])
        return short_repr(self, f"{PurePath(self.path).name}: {summary}")

    def lines(self) -> list[str]:
        """Return one line for each group of nodes with equal claims: names, claims and reason."""
        groups: dict[tuple[str, str], list[str]] = {}
        for node in self.nodes:
            groups.setdefault((_verdict(node), _reason(node)), []).append(node.scope)
        rows = [(_names(scopes), verdict, reason) for (verdict, reason), scopes in groups.items()]
        widths = [min(max((len(row[column]) for row in rows), default=0), 46) for column in (0, 1)]
        return [
            f"{names:<{widths[0]}}{_SEPARATOR}{verdict:<{widths[1]}}{_SEPARATOR}{reason}".rstrip()
            for names, verdict, reason in rows
        ]

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            "<tr>" + "".join(
                f"<td>{escape(text)}</td>"
                for text in (node.scope, node.operator, _verdict(node), _reason(node))
            ) + "</tr>"
            for node in self.nodes
        )  # fmt: skip
        heads = "".join(f"<th>{head}</th>" for head in ("node", "operator", "indices", "because"))
        required = [text for each in self.inputs for text in each.conditions] + [*self.sizes]
        items = "".join(f"<li><code>{escape(text)}</code></li>" for text in required)
        more = f"<p>inputs must satisfy</p><ul>{items}</ul>" if items else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{more}"


_MOST_NAMES = 3


def _names(scopes: list[str]) -> str:
    if len(scopes) <= _MOST_NAMES:
        return ", ".join(scopes)
    return f"{scopes[0]} and {len(scopes) - 1} more"


def _verdict(node: NodeContract) -> str:
    """Return the claims about a node's indices in words: "in range if p in 0..15, distinct"."""
    parts = []
    for claim, word in ((node.range, "in range"), (node.distinct, "distinct")):
        if claim.status == "proven":
            parts.append(word)
        elif claim.status == "conditional":
            parts.append(f"{word} if {' and '.join(claim.conditions)}")
        elif claim.status == "refuted":
            unless = f" unless {' and '.join(claim.conditions)}" if claim.conditions else ""
            parts.append(("out of range" if word == "in range" else "repeats a target") + unless)
        elif word == "in range":
            parts.append("unknown")
    return ", ".join(parts)


def _reason(node: NodeContract) -> str:
    return node.range.because or node.distinct.because
