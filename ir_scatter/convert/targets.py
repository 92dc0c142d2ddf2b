"""What is to become what: targets and sources by the names that users write."""

from collections.abc import Collection
from functools import cache

from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX, OPENVINO, Model, OpKey
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import all_rewrites

_DIALECTS = {ONNX: "ONNX", OPENVINO: "OpenVINO"}


@cache
def targets() -> tuple[OpSpec, ...]:
    """Return the rows that some rewrite leads to."""
    return tuple({rewrite.target.key: rewrite.target for rewrite in all_rewrites()}.values())


def find_targets(model: Model, text: str) -> tuple[OpSpec, ...]:
    """Return the rows that a target names, oldest first: one with a version, all of a type without.

    Raises:
        UsageError: there are none, or none in the model's dialect.
    """
    known = [spec for spec in targets() if _is_named(spec.key, text)]
    fitting = sorted((spec for spec in known if spec.key.domain == model.domain), key=_version)
    if fitting:
        return tuple(fitting)
    names = [str(key) for key in sorted(spec.key for spec in targets()) if key.domain == model.domain]
    what = f"is no target in {_DIALECTS[model.domain]}" if known else "is no target"
    raise UsageError(f"{text!r} {what}, expected one of {', '.join(names)}, or one without its version")


def find_sources(model: Model, texts: Collection[str]) -> frozenset[OpKey]:
    """Return the rows that sources name.

    Raises:
        UsageError: one names none.
    """
    found: set[OpKey] = set()
    for text in texts:
        named = {key for key in SPECS if key.domain == model.domain and _is_named(key, text)}
        if not named:
            known = ", ".join(str(key) for key in sorted(SPECS) if key.domain == model.domain)
            raise UsageError(
                f"{text!r} is no scatter operator of {_DIALECTS[model.domain]}, expected one of {known}, "
                "or one without its version"
            )
        found |= named
    return frozenset(found)


def _is_named(key: OpKey, text: str) -> bool:
    return text.lower() in {str(key).lower(), key.type.lower()}


def _version(spec: OpSpec) -> int:
    return spec.key.version
