"""Findings that a team knows already: by code, path, scope and node, not by line."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ir_scatter.core.diagnostics import Diagnostic
from ir_scatter.core.errors import UsageError
from ir_scatter.report.report import Report

_SCHEMA = 1
_Key = tuple[str, str, str, str]


class Baseline:
    """A bag of known findings; each known one excuses one new one.

    Attributes:
        folder: paths in the file are relative to the folder it stands in.
    """

    def __init__(self, folder: Path, known: Mapping[_Key, int] | None = None) -> None:
        self.folder = folder
        self._left = Counter(known or {})

    def excuses(self, found: Diagnostic) -> bool:
        """Tell whether a finding is known, and count it off."""
        key = self.key(found)
        if self._left[key] <= 0:
            return False
        self._left[key] -= 1
        return True

    def key(self, found: Diagnostic) -> _Key:
        """Return what identifies a finding however lines move."""
        path = os.path.relpath(found.location.path, self.folder).replace(os.sep, "/")
        return found.code, path, found.location.scope, found.node.name if found.node else ""


def read_baseline(path: str) -> Baseline:
    """Read a baseline file.

    Raises:
        UsageError: it cannot be read or is no baseline.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA or document["schema"] is True:
            raise UsageError(f"{path}: the baseline's schema is not {_SCHEMA}")
        known: Counter[_Key] = Counter()
        for entry in document["findings"]:
            key = entry["code"], entry["path"], entry["scope"], entry["node"]
            known[key] += _count(entry.get("count", 1))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {(error.strerror or '').lower()}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{path}: is no baseline of ir-scatter") from None
    if not all(isinstance(part, str) for key in known for part in key):
        raise UsageError(f"{path}: is no baseline of ir-scatter")
    return Baseline(Path(path).resolve().parent, known)


def _count(value: object) -> int:
    """Return how many findings an entry excuses."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def baseline_text(report: Report, path: str) -> str:
    """Return the text of a baseline file for `path` that excuses everything in a report."""
    baseline = Baseline(Path(path).resolve().parent)
    readable = [file for file in report.files if file.is_readable]
    counts = Counter(baseline.key(found) for file in readable for found in file.diagnostics)
    findings = [
        {"code": code, "path": file, "scope": scope, "node": node, "count": count}
        for (code, file, scope, node), count in sorted(counts.items())
    ]
    return json.dumps({"schema": _SCHEMA, "findings": findings}, indent=2, ensure_ascii=True) + "\n"
