"""The schemas of what commands write as JSON, and every key that they describe."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
from referencing import Registry, Resource

from ir_scatter.explain import DOCS

FOLDER = DOCS / "schemas"
NAMES = sorted(path.name.removesuffix(".schema.json") for path in FOLDER.iterdir())


def schema_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return document


_REGISTRY: Registry[Any] = Registry().with_resources(
    (f"{name}.schema.json", Resource.from_contents(schema_of(name))) for name in NAMES
)


def check(name: str, text: str) -> dict[str, Any]:
    """Hold an output against its schema; every key must be described."""
    document: dict[str, Any] = json.loads(text)
    validator = jsonschema.Draft202012Validator(schema_of(name), registry=_REGISTRY)
    for error in validator.iter_errors(document):
        raise AssertionError(f"{error.json_path}: {error.message}")
    unknown = sorted(set(undescribed(document, schema_of(name))))
    assert not unknown, f"not in {name}.schema.json: {unknown}"
    return document


def undescribed(value: Any, schema: Any, path: str = "$") -> Iterator[str]:
    """Yield the paths of keys that a schema says nothing of."""
    schema = schema_of(schema["$ref"].removesuffix(".schema.json")) if "$ref" in schema else schema
    schema = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    if isinstance(value, list):
        for each in value:
            yield from undescribed(each, schema.get("items", {}), f"{path}[]")
    elif isinstance(value, dict):
        others = schema.get("additionalProperties", {} if "properties" not in schema else None)
        for key, each in value.items():
            known = schema.get("properties", {}).get(key, others)
            if known is None:
                yield f"{path}.{key}"
            else:
                yield from undescribed(each, known, f"{path}.{key}")


def fields(schema: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the path, the type and the meaning of each field."""
    schema = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    for key, each in schema.get("properties", {}).items():
        inner = next((one for one in each.get("anyOf", ()) if one.get("type") != "null"), each)
        always = "" if key in schema["required"] else " Not always there."
        yield f"{path}{key}", _type(each), each.get("description", "") + always
        yield from fields(inner, f"{path}{key}.")
        for more, mark in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(inner.get(more), dict):
                one = inner[more]
                yield from fields(one, f"{path}{key}{mark}.")
                if isinstance(one.get("items"), dict):
                    yield from fields(one["items"], f"{path}{key}{mark}[].")


def _type(schema: Any) -> str:
    if "enum" in schema:
        return " or ".join("null" if word is None else f'"{word}"' for word in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " or ".join(one["type"] for one in schema["anyOf"])
    found = schema.get("type", "any")
    return found if isinstance(found, str) else " or ".join(found)
