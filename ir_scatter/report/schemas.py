"""Generates JSON schemas of the output of commands from the typed records in `records/`.

    class Example(TypedDict):
        name: Annotated[str, "The name of the node."]      # {"type": "string", "description": ...}
        line: Annotated[Positive | None, "Its line."]      # {"type": ["integer", "null"], "minimum": 1, ...}

`python -m ir_scatter.report.schemas` writes the schemas. A test checks that they are current.
"""

import json
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from ir_scatter.explain import DOCS
from ir_scatter.report import records
from ir_scatter.report.records.fields import Closed, DocumentReference, Minimum, Pattern

FOLDER = DOCS / "schemas"
_Schema: TypeAlias = dict[str, Any]

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def documents() -> Iterator[tuple[str, type, str]]:
    """Yield (name, record, title) of each document; the title is the command that writes it."""
    for module in iter_modules(records.__path__):
        for name, (record, title) in getattr(
            import_module(f"{records.__name__}.{module.name}"), "DOCUMENTS", {}
        ).items():
            yield name, record, title


def schema_of(name: str, record: type, title: str) -> _Schema:
    """Return the JSON schema (draft 2020-12) of a document."""
    schema = _of_record(record)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}.schema.json",
        "title": title,
        **schema,
    }


def write_all(folder: Path = FOLDER) -> None:
    """Write the schemas of all documents into a folder."""
    for name, record, title in documents():
        text = json.dumps(schema_of(name, record, title), indent=2, ensure_ascii=False)
        (folder / f"{name}.schema.json").write_text(f"{text}\n", encoding="utf-8")


def _of_record(record: type) -> _Schema:
    hints = get_type_hints(record, include_extras=True)
    optional = getattr(record, "__optional_keys__", frozenset[str]())
    properties = {name: _of(hint) for name, hint in hints.items()}
    required = [name for name in hints if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _of(hint: Any) -> _Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _of(arguments[0])
    if origin is Annotated:
        schema = _of(arguments[0])
        for note in hint.__metadata__:
            schema |= _of_note(note)
        return schema
    if origin is Literal:
        return {"const": arguments[0]} if arguments == (1,) else {"enum": [*arguments]}
    if origin is list:
        return {"type": "array", "items": _of(arguments[0])}
    if origin is dict:
        values = _of(arguments[1])
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if origin in {Union, types.UnionType}:
        return _of_union([_of(argument) for argument in arguments])
    if is_typeddict(hint):
        return _of_record(hint)
    return {} if hint is Any else {"type": _TYPES[hint]}


def _of_note(note: object) -> _Schema:
    match note:
        case Minimum(value):
            return {"minimum": value}
        case Pattern(text):
            return {"pattern": text}
        case Closed():
            return {"additionalProperties": False}
        case DocumentReference(name):
            return {"$ref": f"{name}.schema.json"}
    return {"description": str(note)}


def _of_union(choices: list[_Schema]) -> _Schema:
    """Return the schema of a union: a list of types if possible, otherwise `anyOf`."""
    if any("properties" in choice or "enum" in choice for choice in choices):
        return {"anyOf": choices}
    merged: _Schema = {"type": [choice["type"] for choice in choices]}
    for choice in choices:
        merged |= {key: value for key, value in choice.items() if key != "type"}
    return merged


def is_current(name: str, schema: Mapping[str, Any], folder: Path = FOLDER) -> bool:
    """Return whether the file with a document's schema is up to date."""
    stored = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
    return bool(stored == schema)


if __name__ == "__main__":
    write_all()
