"""The schemas of JSON documents are those of the typed records."""

from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypedDict

from ir_scatter.report.records.fields import DocumentReference, Minimum, Natural, Pattern
from ir_scatter.report.schemas import documents, is_current, schema_of, write_all
from tests.report.json_schemas import FOLDER, NAMES


class _Inner(TypedDict):
    at: Natural


class _Outer(TypedDict):
    name: Annotated[str, Pattern("^a"), "Its name."]
    size: NotRequired[Annotated[float, Minimum(1)] | None]
    kind: Literal["a", "b", None]
    inner: Annotated[_Inner | None, "Where."]
    many: dict[str, list[bool]]
    other: Annotated[dict[str, str], DocumentReference("rules")]


def test_a_record_becomes_a_schema() -> None:
    schema = schema_of("outer", _Outer, "ir-scatter outer")
    inner = {"type": "object", "properties": {"at": {"type": "integer", "minimum": 0}}, "required": ["at"]}
    assert schema["title"] == "ir-scatter outer"
    assert schema["required"] == ["name", "kind", "inner", "many", "other"]
    assert schema["properties"] == {
        "name": {"type": "string", "pattern": "^a", "description": "Its name."},
        "size": {"type": ["number", "null"], "minimum": 1},
        "kind": {"enum": ["a", "b", None]},
        "inner": {"anyOf": [inner, {"type": "null"}], "description": "Where."},
        "many": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}},
        "other": {"type": "object", "additionalProperties": {"type": "string"}, "$ref": "rules.schema.json"},
    }


def test_stored_schemas_are_current(tmp_path: Path) -> None:
    """If this fails: `python -m ir_scatter.report.schemas`."""
    made = {name: schema_of(name, record, title) for name, record, title in documents()}
    assert sorted(made) == NAMES
    assert [name for name, schema in made.items() if not is_current(name, schema)] == []
    write_all(tmp_path)
    assert all((tmp_path / path.name).read_text() == path.read_text() for path in FOLDER.iterdir())
