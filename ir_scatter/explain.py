"""Returns explanations of rules, defects, refusals and operators, and documentation pages, as text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import close_words
from ir_scatter.ops.lookup import SPECS, by_text
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rules import all_rules, by_code, by_name
from ir_scatter.rules.base import END, PAGES, Rule, first_sentence

DOCS = Path(__file__).with_name("docs")
_FORMER_NAMES = {"github-actions": "ci", "gpu-differs": "results-differ"}
"""Earlier names of pages, by which `explain` still finds them."""

_NOT_PRINTED = re.compile(r"^(?:<!--.*?-->|!\[.*?\]\(.*?\))\n+", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]+)\]\((?!https?:)[^()\s]+\)")

REFUSAL = "refusal"
"""The severity listed for refusals of `convert`, beside those of rules."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the list of rules: a rule, or a reason why `convert` refuses a node.

    For operators in `warns_for` the rule gives a warning instead of an error.
    """

    code: str
    name: str
    severity: str
    summary: str
    warns_for: tuple[str, ...] = ()

    @property
    def severities(self) -> str:
        return f"{self.severity} or {Severity.WARNING}" if self.warns_for else self.severity


def catalogue() -> tuple[Entry, ...]:
    """Return all rules and refusals, rules first."""
    from ir_scatter.rewrites.refusals import Reason

    rules = [
        Entry(rule.code, rule.name, rule.severity, rule.summary, _warns_for(rule)) for rule in all_rules()
    ]
    return (
        *rules,
        *(Entry(reason, reason.rule, REFUSAL, first_sentence(_refusals()[reason])) for reason in Reason),
    )


def _warns_for(rule: Rule) -> tuple[str, ...]:
    if rule.severity is not Severity.ERROR:
        return ()
    return tuple([str(spec.key) for spec in SPECS.values() if rule.code in spec.tolerated])


@cache
def _refusals() -> Mapping[str, str]:
    """Return the meaning of each refusal code, read from the table in `docs/refusals.md`."""
    lines = (DOCS / "refusals.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| CVT")]
    return {
        code: f"{meaning}\n\nWhy: {why}" + (f"\n\nWhat to do: {to_do}" if to_do else "")
        for code, _, meaning, why, to_do in rows
    }


@cache
def pages() -> Mapping[str, Path]:
    """Return the paths of pages by the names that `explain` accepts, except pages of rules and operators."""
    paths = [*DOCS.glob("*.md"), *DOCS.glob("schemas/*.json")]
    paths += [path for folder in ("how-to", "runners") for path in DOCS.glob(f"{folder}/[!i]*.md")]
    named = {path.name.removesuffix(".md"): path for path in paths}
    return named | {path.parent.name: path for path in DOCS.glob("*/index.md")}


def explain(topic: str = "index") -> str:
    """Return the explanation of a rule ("SCT203", "updates-shape-mismatch") or operator ("ScatterND-18").

    An operator without a version stands for all of its versions. Other topics are defects, refusals and
    documentation pages; the page "index" lists the pages.

    Raises:
        UsageError: there is no such rule, operator or page.
    """
    text = topic.strip() if _is_known(topic.strip()) else "-".join(topic.split())
    if page := pages().get(_FORMER_NAMES.get(text.lower(), text.lower())):
        return _plain(page.read_text(encoding="utf-8"))
    rule = by_code().get(text.upper()) or by_name().get(text.lower())
    if rule is not None:
        return _rule(rule)
    from ir_scatter.defects import all_defects
    from ir_scatter.rewrites.refusals import Reason

    for defect in all_defects():
        if text.lower() in {defect.code.lower(), defect.name}:
            return _plain((DOCS / "defects" / f"{defect.code}.md").read_text(encoding="utf-8"))
    for reason in Reason:
        if text.lower() in {reason.lower(), reason.rule}:
            return f"{reason} {reason.rule} (refused conversion)\n\n{_refusals()[reason]}\n"
    spec = by_text(text)
    specs = [spec] if spec else [row for row in SPECS.values() if row.key.type.lower() == text.lower()]
    if not specs:
        raise UsageError(_unknown(text))
    return "\n".join(map(_operator, specs))


def _is_known(text: str) -> bool:
    """Return whether a text needs no change; otherwise it may be a name written without hyphens."""
    return (
        text.lower() in pages() or text.upper() in by_code() or text.lower() in by_name() or " " not in text
    )


def _unknown(text: str) -> str:
    from ir_scatter.defects import all_defects

    names = [word for entry in catalogue() for word in (entry.code, entry.name)]
    names += [word for defect in all_defects() for word in (defect.code, defect.name)]
    operators = dict.fromkeys(word for key in SPECS for word in (key.type, str(key)))
    near = close_words(text, [*names, *operators, *pages()])
    hint = f"did you mean {', '.join(near)}?" if near else "expected SCT203, ScatterNDUpdate-15 or kv-cache"
    return f"there is no rule, operator or page {text!r}; {hint}"


def _plain(text: str) -> str:
    """Convert Markdown to plain text, without links, comments and pictures."""
    return _LINK.sub(r"\1", _NOT_PRINTED.sub("", text))


def _rule(rule: Rule) -> str:
    text = f"{rule.code} {rule.name} ({rule.severity})\n\n{rule.documentation}\n"
    if lowered := _warns_for(rule):
        text += f"\nA warning for {', '.join(lowered)}, where runtimes accept it.\n"
    page = PAGES / f"{rule.code}.md"
    _, _, example = page.read_text(encoding="utf-8").partition(END) if page.exists() else ("", "", "")
    return text + _plain(example)


def _operator(spec: OpSpec) -> str:
    dialect = "OpenVINO" if spec.drops_attributes else "ONNX"
    parts = {
        "Inputs": [
            f"{index} {port.name}: {spec.show_types(port)}"
            + (f", rank {port.min_rank} at least" if port.min_rank else "")
            + (", optional" if port.is_optional else "")
            for index, port in enumerate(spec.ports)
        ],
        "Output": [f"{spec.output}: the shape and type of {spec.ports[0].name}"],
        "Rules": list(_rules(spec)),
        "Attributes": [
            f"{row.name} = {str(row.default).lower()}"
            + (f" ({', '.join(row.choices)}): {row.meaning}" if row.choices else f": {row.meaning}")
            for row in spec.attributes
        ],
        "Valid in": [" to ".join(map(str, dict.fromkeys((spec.opsets[0], spec.opsets[-1]))))],
        "Errata": list(spec.errata),
        "Specification": [spec.url],
    }
    if spec.deprecated_by:
        parts["Valid in"].append(f"deprecated by {spec.deprecated_by}")
    lines = [f"{spec.key} ({dialect})", "", spec.summary, ""]
    for title, texts in parts.items():
        lines += [title, *(f"  {text}" for text in texts)] if texts else []
    return "".join(f"{line}\n" for line in lines)


def _rules(spec: OpSpec) -> Iterator[str]:
    yield f"updates = {spec.updates_formula}"
    if spec.scalar_updates:
        yield "if that is 0-D, one element of any rank is also allowed"
    yield f"indices in {spec.index_range} on a dimension of size s"
    if spec.indices_limit != "nowhere":
        yield f"indices are not longer than data {spec.indices_limit}"
    if spec.axis is not None:
        yield f"axis ({spec.axis.attribute or 'input axis'}) in [-r, r-1] for data of rank r"
    order = "reduced; with reduction none the order" if spec.reductions else "the order of writing"
    yield f"two updates of one element: {order} is undefined"
    if spec.tolerated:
        codes = ", ".join(sorted(spec.tolerated))
        yield f"forbidden by the specification, but accepted by runtimes (warnings): {codes}"
