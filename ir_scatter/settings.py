"""Defaults from `[tool.ir-scatter]` of the nearest pyproject.toml."""

import tomllib
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import UsageError
from ir_scatter.lint import NodeIgnore
from ir_scatter.validate import check_codes

_TABLE = "ir-scatter"
_IGNORES = "node-ignores"
_LISTS = {"select", "ignore", "exclude", "input-shape"}
_SWITCHES = {"quiet", "statistics", "strict"}
_NUMBERS = {"jobs", "max-index-elements"}
_KEYS = _LISTS | _SWITCHES | _NUMBERS | {"baseline", "format", "min-severity"}


def load(folder: Path | None = None) -> tuple[dict[str, Any], tuple[NodeIgnore, ...]]:
    """Return the defaults of options, and what to ignore for some nodes.

    The nearest file that has the table counts, from the current folder upwards.

    Raises:
        UsageError: the table has a key or a value that means nothing.
    """
    path, table = find_settings(folder)
    return ({}, ()) if path is None else (_options(path, table), _ignores(path, table.get(_IGNORES, [])))


def find_settings(folder: Path | None = None) -> tuple[Path | None, dict[str, Any]]:
    """Return the file that counts, None if there is none, and its table.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        start = (folder or Path.cwd()).resolve()
    except OSError:  # the current folder is gone
        return None, {}
    for parent in (start, *start.parents):
        path = parent / "pyproject.toml"
        table = _read(path) if path.is_file() else None
        if table is not None:
            return path, table
    return None, {}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise UsageError(f"{path}: cannot be read: lists and tables are nested too deep") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    tool = document.get("tool", {})
    table = tool.get(_TABLE) if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: [tool.{_TABLE}] is no table")
    return table


def _options(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key == _IGNORES:
            continue
        if key not in _KEYS:
            known = ", ".join(sorted({*_KEYS, _IGNORES}))
            raise UsageError(f"{path}: [tool.{_TABLE}] has {key!r}, expected one of {known}")
        if key in _LISTS and not _is_texts(value):
            raise UsageError(f"{path}: {key} is {value!r}, expected a list of strings")
        if key not in _LISTS and not _is_scalar(key, value):
            raise UsageError(f"{path}: {key} is {value!r}, expected {_kind(key)}")
        found[key.replace("-", "_")] = value
    if "baseline" in found:
        found["baseline"] = str(path.parent / str(found["baseline"]))
    return found


def _ignores(path: Path, entries: Any) -> tuple[NodeIgnore, ...]:
    shown = f"{path}: [[tool.{_TABLE}.{_IGNORES}]]"
    if not isinstance(entries, list):
        raise UsageError(f"{shown} is no list of tables")
    found = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() - {"file", "node", "codes"}:
            raise UsageError(f"{shown} has other keys than file, node and codes")
        codes = entry.get("codes")
        if not _is_texts(codes) or not codes:
            raise UsageError(f"{shown}: codes is {codes!r}, expected a list of strings")
        for key in ("file", "node"):
            if not isinstance(entry.get(key, "*"), str):
                raise UsageError(f"{shown}: {key} is {entry[key]!r}, expected a string")
        codes = [code.upper() for code in codes]
        try:
            check_codes(codes)
        except UsageError as error:
            raise UsageError(f"{shown}: {error}") from None
        found.append(NodeIgnore(str(entry.get("file", "*")), str(entry.get("node", "*")), tuple(codes)))
    return tuple(found)


def _is_scalar(key: str, value: Any) -> bool:
    """Tell whether a value can be what an option takes; whether its text means something, the option says."""
    if isinstance(value, str):
        return True
    if key in _SWITCHES:
        return isinstance(value, bool)
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return key in _NUMBERS and is_whole


def _kind(key: str) -> str:
    if key in _SWITCHES:
        return "true or false"
    return "a whole number" if key in _NUMBERS else "a string"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
