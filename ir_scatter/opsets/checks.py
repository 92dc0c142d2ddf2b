"""Whether a version of an operator takes a node at all: its inputs, outputs and their types."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from onnx import NodeProto
from onnx.defs import OpSchema

from ir_scatter.opsets.draft import Draft, Refused
from ir_scatter.opsets.passage import Passage, accepts_all, couplings, show
from ir_scatter.shapes import counted


@dataclass(frozen=True, slots=True)
class _Needs:
    """What no node of a version can leave out.

    Attributes:
        attributes: the names.
        inputs: the numbers and the names.
    """

    attributes: tuple[str, ...]
    inputs: tuple[tuple[int, str], ...]


def check_start(node: NodeProto, passage: Passage) -> None:
    """Refuse a node that says what its own version does not know, and that would get a meaning.

    Raises:
        Refused: it has an attribute or an input of another version.
    """
    start = passage.start
    assert start is not None
    for attribute in node.attribute:
        if attribute.name in passage.new_attributes:
            raise Refused(
                f"its attribute {attribute.name} means nothing in {show(start)}, and something else there"
            )
    if len(node.input) > start.max_input and any(node.input[start.max_input :]):
        raise Refused(
            f"it has {counted(len(node.input), 'input')}, expected at most {start.max_input} in {show(start)}"
        )


def is_plain(node: NodeProto, passage: Passage) -> bool:
    """Tell whether a node has nothing but what its version knows."""
    if any(attribute.name in passage.new_attributes for attribute in node.attribute):
        return False
    return passage.start is not None and len(node.input) <= passage.start.max_input


def check_end(draft: Draft, passage: Passage) -> None:
    """Refuse a node that the version at the end does not take.

    Raises:
        Refused: it has attributes, inputs, outputs or types that the version does not have.
    """
    start, end = passage.start, passage.end
    assert start is not None
    assert end is not None
    lost = _lost(start, end)
    for attribute in draft.proto.attribute:
        if attribute.name in lost:
            raise Refused(f"{show(end)} has no attribute {attribute.name}")
    needs = _needs(end)
    for name in needs.attributes:
        if not draft.has(name):
            raise Refused(f"{show(end)} asks for the attribute {name}")
    _check_count("inputs", draft.proto.input, end.min_input, end.max_input, end)
    _check_count("outputs", draft.proto.output, end.min_output, end.max_output, end)
    for number, name in needs.inputs:
        if number < len(draft.proto.input) and not draft.proto.input[number]:
            raise Refused(f"{show(end)} asks for {name}, which is left out")
    if not accepts_all(start, end):
        _check_types(draft, start, end)


@lru_cache(maxsize=1024)
def _lost(start: OpSchema, end: OpSchema) -> frozenset[str]:
    return frozenset(start.attributes) - frozenset(end.attributes)


@lru_cache(maxsize=1024)
def _needs(schema: OpSchema) -> _Needs:
    single = OpSchema.FormalParameterOption.Single
    return _Needs(
        tuple(attribute.name for attribute in schema.attributes.values() if attribute.required),
        tuple((number, port.name) for number, port in enumerate(schema.inputs) if port.option == single),
    )


def _check_count(what: str, names: Sequence[str], least: int, most: int, end: OpSchema) -> None:
    if not least <= len(names) <= most:
        expected = f"at least {least}" if len(names) < least else f"at most {most}"
        raise Refused(f"it has {len(names)} {what}, expected {expected} in {show(end)}")


def _check_types(draft: Draft, start: OpSchema, end: OpSchema) -> None:
    coupled = couplings(start, end)
    types: dict[str, str] = {}
    for olds, news, names in (
        (start.inputs, end.inputs, draft.proto.input),
        (start.outputs, end.outputs, draft.proto.output),
    ):
        for number, name in enumerate(names):
            if not name or name in draft.made or name in draft.names:
                continue
            port = news[min(number, len(news) - 1)]
            old = olds[min(number, len(olds) - 1)] if olds else None
            is_safe = old is not None and old.types <= port.types and port.type_str not in coupled
            if is_safe:
                continue
            type = draft.place.type_text(name)
            if type is None:
                raise Refused(f"{show(end)} does not take every type, and that of {port.name} is not known")
            if type not in port.types:
                raise Refused(f"{show(end)} does not take {type} for {port.name}")
            if port.is_homogeneous and types.setdefault(port.type_str, type) != type:
                raise Refused(f"{show(end)} takes one type for all of {port.type_str}, and finds two")
