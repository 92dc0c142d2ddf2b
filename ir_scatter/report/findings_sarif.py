"""For code scanning: SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Related
from ir_scatter.lint import FileResult, Report
from ir_scatter.report.characters import dumps, visible
from ir_scatter.rules import by_code
from ir_scatter.rules.base import Rule
from ir_scatter.version import __version__
from ir_scatter.version import versions as installed

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "irScatter/v1"

# What the first digit of a code says.
_TOPICS = {
    "1": "ports",
    "2": "shapes",
    "3": "values",
    "4": "versions",
    "5": "stored-shapes",
    "9": "file",
}


def render(report: Report, *, versions: Mapping[str, str] | None = None) -> str:
    """A log of one run, with the rules that were broken; `versions` are those installed if None."""
    diagnostics = report.diagnostics()
    examples = {found.code: found for found in reversed(diagnostics)}
    codes = sorted(examples)
    places = {code: index for index, code in enumerate(codes)}
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": "ir-scatter",
                "version": __version__,
                "rules": [_rule(examples[code]) for code in codes],
            }
        },
        "invocations": [_invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, places[found.code], seen) for found in diagnostics],
        "properties": {"versions": dict(installed() if versions is None else versions)},
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(example: Diagnostic) -> dict[str, Any]:
    """Return what a viewer shows of a rule; the example speaks for codes that are no rule."""
    rule = by_code().get(example.code) or Rule(example.code, example.rule, example.severity)
    documentation = rule.documentation or rule.name
    first = " ".join(documentation.split("\n\n")[0].split())
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": _message(first),
        "fullDescription": _message(documentation),
        "help": _message(f"{documentation}\n\nRun: ir-scatter explain {rule.code}"),
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": _tags(rule.code)},
    }


def _tags(code: str) -> list[str]:
    digits = code.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    topic = _TOPICS.get(digits[:1]) if code.startswith("SCT") else None
    return ["scatter"] if topic is None else ["scatter", topic]


def _invocation(report: Report) -> dict[str, Any]:
    """Return whether every file could be read, and which could not."""
    unreadable = [file for file in report.files if not file.is_readable]
    return {
        "executionSuccessful": not unreadable,
        "toolExecutionNotifications": [_notification(file) for file in unreadable],
    }


def _notification(file: FileResult) -> dict[str, Any]:
    return {
        "level": "error",
        "message": _message(f"{file.path} could not be read"),
        "locations": [_location(Location(file.path))],
    }


def _result(found: Diagnostic, rule_index: int, seen: Counter[str]) -> dict[str, Any]:
    """Return one finding.

    Args:
        found: the finding.
        rule_index: the place of its rule in the list of rules.
        seen: how often each fingerprint has occurred; counted on.
    """
    fingerprint = _fingerprint(found)
    seen[fingerprint] += 1
    return {
        "ruleId": found.code,
        "ruleIndex": rule_index,
        "level": found.severity.value,
        "message": _message(found.message),
        "locations": [_location(found.location, found.node)],
        "relatedLocations": [
            _related(related, number) for number, related in enumerate(found.related, start=1)
        ],
        "partialFingerprints": {_FINGERPRINT: f"{fingerprint}:{seen[fingerprint]}"},
    }


def _fingerprint(found: Diagnostic) -> str:
    """Return a hash that stays when the finding moves to another line."""
    location = found.location
    parts = (found.code, _uri(location.path), location.scope, found.port or "")
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return sha256(joined).hexdigest()[:32]


def _location(location: Location, node: NodeRef | None = None) -> dict[str, Any]:
    """Return a place in a file, and in the model if it is there."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(location.path)}}
    if location.line is not None:
        physical["region"] = {"startLine": location.line}
        if location.column is not None:
            physical["region"]["startColumn"] = location.column
    place: dict[str, Any] = {"physicalLocation": physical}
    if location.scope:
        scope = visible(location.scope)
        name = scope if node is None else visible(node.name)
        logical = {"name": name, "fullyQualifiedName": scope, "kind": "node"}
        place["logicalLocations"] = [logical]
    return place


def _related(related: Related, number: int) -> dict[str, Any]:
    return {"id": number, **_location(related.location), "message": _message(related.message)}


def _message(text: str) -> dict[str, str]:
    """Return a message whose text means itself: no placeholders, no links (section 3.11)."""
    shown = visible(text, keep="\n")
    return {"text": shown.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _uri(path: str) -> str:
    """Return a relative reference for a relative path, a file URI for an absolute one."""
    pure = PurePath(path)
    posix = pure.as_posix()
    try:
        encoded = posix.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte: possible on Windows
        encoded = posix.encode("utf-8", "surrogatepass")
    if not pure.is_absolute():
        return quote(encoded)
    return f"file:///{quote(encoded, safe='/:').lstrip('/')}"
