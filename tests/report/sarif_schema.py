"""The part of SARIF 2.1.0 that we write, stricter: nothing else is allowed."""

from typing import Any


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _array(items: dict[str, Any], *, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


_TEXT = {"type": "string", "minLength": 1}
_FROM_ONE = {"type": "integer", "minimum": 1}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_MESSAGE = _object(("text",), text=_TEXT)
_URI = {"type": "string", "pattern": r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+$"}
_LOGICAL = _object(("name", "fullyQualifiedName", "kind"), name=_TEXT, fullyQualifiedName=_TEXT, kind=_TEXT)
_LOCATION = _object(
    ("physicalLocation",),
    id={"type": "integer", "minimum": 0},
    message=_MESSAGE,
    physicalLocation=_object(
        ("artifactLocation",),
        artifactLocation=_object(("uri",), uri=_URI),
        region=_object(
            ("startLine",), startLine=_FROM_ONE, startColumn=_FROM_ONE, endLine=_FROM_ONE, endColumn=_FROM_ONE
        ),
    ),
    logicalLocations=_array(_LOGICAL, unique=True),
)
_RULE = _object(
    ("id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"),
    id=_TEXT,
    name={"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$"},
    shortDescription=_MESSAGE,
    fullDescription=_MESSAGE,
    help=_MESSAGE,
    helpUri=_URI,
    defaultConfiguration=_object(("level",), level=_LEVEL),
    properties=_object(("tags",), tags=_array(_TEXT, unique=True)),
)
_RESULT = _object(
    ("ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"),
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_array(_LOCATION),
    relatedLocations=_array(_LOCATION, unique=True),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT, "minProperties": 1},
    properties=_object(("help",), help={"type": "string"}),
)
_NOTIFICATION = _object(
    ("message",), level=_LEVEL, message=_MESSAGE, locations=_array(_LOCATION, unique=True)
)
_DRIVER = _object(("name", "version"), name=_TEXT, version=_TEXT, rules=_array(_RULE, unique=True))
_RUN = _object(
    ("tool", "results", "invocations", "columnKind"),
    tool=_object(("driver",), driver=_DRIVER),
    invocations=_array(
        _object(
            ("executionSuccessful",),
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=_array(_NOTIFICATION),
        )
    ),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_array(_RESULT),
    properties={"type": "object"},
)
SCHEMA = _object(
    ("version", "runs"),
    version={"const": "2.1.0"},
    runs=_array(_RUN),
    **{"$schema": {"type": "string", "pattern": "^https://.*sarif-schema-2.1.0.json$"}},
)
