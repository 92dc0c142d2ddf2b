"""Reads default options from the table `[tool.ir-scatter]` of the nearest pyproject.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import UsageError
from ir_scatter.core.files import read_regular
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.lint import NodeIgnore
from ir_scatter.rules.selection import code_prefixes

_TABLE = "ir-scatter"
_IGNORES = "node-ignores"
_EXPECTED = {
    **dict.fromkeys(("select", "ignore", "exclude", "input-shape"), "a list of strings"),
    **dict.fromkeys(("quiet", "statistics", "strict"), "true or false"),
    **dict.fromkeys(("jobs", "max-index-elements"), "a whole number"),
    **dict.fromkeys(("baseline", "docs-url", "format", "min-severity"), "a string"),
}


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """Default options by parameter name ("input_shape"), and codes to ignore for some nodes."""

    path: Path | None = None
    """The pyproject.toml with the table; None if no file has one."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    node_ignores: tuple[NodeIgnore, ...] = ()

    def named(self, option: str) -> str:
        """Return the file and key of an option's default, for messages."""
        return f"{self.path}: [tool.{_TABLE}] {option.replace('_', '-')}"


def load(folder: Path | None = None) -> ProjectSettings:
    """Read the settings from the nearest pyproject.toml that has the table, from `folder` upwards.

    The default folder is the current one.

    Raises:
        UsageError: the table has an unknown key or a wrong value.
    """
    path, table = find_settings(folder)
    if path is None:
        return ProjectSettings()
    return ProjectSettings(path, _options(path, table), _ignores(path, table.get(_IGNORES, [])))


def find_settings(folder: Path | None = None) -> tuple[Path | None, dict[str, Any]]:
    """Return the path of the pyproject.toml with the table, and the table; (None, {}) if there is none.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        start = (folder or Path.cwd()).resolve()
    except OSError:  # the current folder was deleted
        return None, {}
    for path in (parent / "pyproject.toml" for parent in (start, *start.parents)):
        if not path.is_file():
            continue
        import tomllib  # imported here, as most folders have no settings

        try:
            tool = tomllib.loads(read_regular(path).decode("utf-8")).get("tool", {})
        except RecursionError:
            raise UsageError(f"{path}: cannot be read: lists and tables are nested too deep") from None
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: cannot be read: {error}") from None
        table = tool.get(_TABLE) if isinstance(tool, dict) else None
        if isinstance(table, dict):
            return path, table
        if table is not None:
            raise UsageError(f"{path}: [tool.{_TABLE}] is not a table")
    return None, {}


def _options(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        if key == _IGNORES:
            continue
        if key not in _EXPECTED:
            keys = sorted({*_EXPECTED, _IGNORES})
            guess, expected = did_you_mean(key, keys), ", ".join(keys)
            raise UsageError(f"{path}: [tool.{_TABLE}] has {key!r}{guess}, expected one of {expected}")
        if not _is_meant(value, _EXPECTED[key]):
            raise UsageError(f"{path}: [tool.{_TABLE}] {key} is {value!r}, expected {_EXPECTED[key]}")
        defaults[key.replace("-", "_")] = value
    if "baseline" in defaults:
        defaults["baseline"] = str(path.parent / str(defaults["baseline"]))
    return defaults


def _is_meant(value: Any, expected: str) -> bool:
    """Return whether a value has the expected type; the option itself checks the content of texts."""
    if expected == "a list of strings" or isinstance(value, str):
        return _is_texts(value) is (expected == "a list of strings")
    if expected == "a whole number":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return expected == "true or false" and isinstance(value, bool)


def _ignores(path: Path, entries: Any) -> tuple[NodeIgnore, ...]:
    heading = f"{path}: [[tool.{_TABLE}.{_IGNORES}]]"
    if not isinstance(entries, list):
        raise UsageError(f"{heading} is not a list of tables")
    ignores = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() - {"file", "node", "codes"}:
            raise UsageError(f"{heading} has other keys than file, node and codes")
        codes, file, node = entry.get("codes"), entry.get("file", "*"), entry.get("node", "*")
        if not _is_texts(codes) or not codes:
            raise UsageError(f"{heading}: codes is {codes!r}, expected a list of strings")
        for key, value in (("file", file), ("node", node)):
            if not isinstance(value, str):
                raise UsageError(f"{heading}: {key} is {value!r}, expected a string")
        try:
            ignores.append(NodeIgnore(file, node, code_prefixes(codes)))
        except UsageError as error:
            raise UsageError(f"{heading}: codes: {error}") from None
    return tuple(ignores)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
