"""Findings as SARIF 2.1.0 for code scanning, https://docs.oasis-open.org/sarif/sarif/v2.1.0."""

from collections import Counter
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef
from ir_scatter.explain import DOCS
from ir_scatter.lint import Report
from ir_scatter.report import phrases
from ir_scatter.report.characters import dumps, visible
from ir_scatter.rules import by_code
from ir_scatter.rules.base import Rule
from ir_scatter.version import __version__, versions

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "irScatter/v1"

# Tag of a rule by the first digit of its code.
_TOPICS = dict(zip("123459", ("ports", "shapes", "values", "versions", "stored-shapes", "file"), strict=True))


def render(report: Report, *, docs_url: str | None = None) -> str:
    """Return a log of one run, with the broken rules.

    Each rule links to its page on the site at `docs_url`. Without a site it has no link: SARIF demands an
    absolute URI (section 3.49.12), and the URI of an installed page is useless on other machines.
    """
    diagnostics = report.diagnostics()
    examples = {diagnostic.code: diagnostic for diagnostic in reversed(diagnostics)}
    codes = sorted(examples)
    fingerprints: Counter[str] = Counter()
    unreadable = [file for file in report.files if not file.is_readable]
    run = {
        "tool": {
            "driver": {
                "name": "ir-scatter",
                "version": __version__,
                "rules": [_rule(examples[code], docs_url) for code in codes],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not unreadable,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": _message(f"{file.path} could not be read"),
                        "locations": [_location(Location(file.path))],
                    }
                    for file in unreadable
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(diagnostic, codes.index(diagnostic.code), fingerprints) for diagnostic in diagnostics
        ],
        "properties": {"versions": versions()},
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(example: Diagnostic, docs_url: str | None) -> dict[str, Any]:
    """Return the description of a rule; a code that is not a rule is described by the example's texts."""
    rule = by_code().get(example.code) or Rule(example.code, example.rule, example.severity)
    documentation = rule.documentation or rule.name
    first = " ".join(documentation.split("\n\n")[0].split())
    topic = _TOPICS.get(rule.code[3:4]) if rule.code.startswith("SCT") else None
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": _message(first),
        "fullDescription": _message(documentation),
        "help": _message(f"{documentation}\n\nRun: ir-scatter explain {rule.code}"),
        **({"helpUri": page} if (page := _page(rule, docs_url)) else {}),
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": ["scatter"] if topic is None else ["scatter", topic]},
    }


def _page(rule: Rule, docs_url: str | None) -> str:
    """Return the URL of the page of a rule or known defect; "" without a site or without a page."""
    folder = "rules" if rule.code in by_code() else "defects"
    page = DOCS / folder / f"{rule.code}.md"
    return f"{docs_url.rstrip('/')}/{folder}/{rule.code}.html" if docs_url and page.exists() else ""


def _result(diagnostic: Diagnostic, rule_index: int, fingerprints: Counter[str]) -> dict[str, Any]:
    """Return one finding as a SARIF result.

    Its fingerprint does not depend on the line. `fingerprints` counts the uses of each fingerprint, so that
    equal findings get different ones.
    """
    parts = (
        diagnostic.code,
        _uri(diagnostic.location.path),
        diagnostic.location.scope,
        diagnostic.port or "",
    )
    fingerprint = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    fingerprints[fingerprint] += 1
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": diagnostic.severity.value,
        "message": _message(diagnostic.message),
        "locations": [_location(diagnostic.location, diagnostic.node), *_fault(diagnostic)],
        "relatedLocations": [
            {"id": number, **_location(related.location), "message": _message(related.message)}
            for number, related in enumerate(diagnostic.related, start=1)
        ],
        "partialFingerprints": {_FINGERPRINT: f"{fingerprint}:{fingerprints[fingerprint]}"},
        "properties": {"help": phrases.whole_help(diagnostic)},
    }


def _fault(diagnostic: Diagnostic) -> list[dict[str, Any]]:
    """Return the location of the faulty attribute, port or edge; [] if it is unknown."""
    if diagnostic.span is None:
        return []
    region = dict(zip(("startLine", "startColumn", "endLine", "endColumn"), diagnostic.span, strict=True))
    physical = {"artifactLocation": {"uri": _uri(diagnostic.location.path)}, "region": region}
    label = diagnostic.label or diagnostic.port
    return [{"physicalLocation": physical, **({"message": _message(label)} if label else {})}]


def _location(location: Location, node: NodeRef | None = None) -> dict[str, Any]:
    """Return a SARIF location: in the file and, with a node, in the model."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(location.path)}}
    if location.line is not None:
        physical["region"] = {"startLine": location.line}
        if location.column is not None:
            physical["region"]["startColumn"] = location.column
    if not location.scope:
        return {"physicalLocation": physical}
    scope = visible(location.scope)
    name = scope if node is None else visible(node.name)
    logical = {"name": name, "fullyQualifiedName": scope, "kind": "node"}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _message(text: str) -> dict[str, str]:
    """Return a message in which placeholders and links are escaped (section 3.11)."""
    literal = visible(text, keep="\n")
    return {"text": literal.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _uri(path: str) -> str:
    """Return a relative reference for a relative path, and a file URI for an absolute path."""
    pure = PurePath(path)
    posix = pure.as_posix()
    try:
        encoded = posix.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that encodes no byte: possible on Windows
        encoded = posix.encode("utf-8", "surrogatepass")
    if not pure.is_absolute():
        return quote(encoded)
    return f"file:///{quote(encoded, safe='/:').lstrip('/')}"
