"""Fragments as messages, made once for all the nodes that a fragment replaces."""

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from ir_scatter.formats.onnx_make import make_attribute, make_tensor
from ir_scatter.fragment import Fragment, NewConstant, NewNode
from ir_scatter.model import Value


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A node to insert.

    Attributes:
        proto: the node; names are written into it before it is copied to its place.
        label: what it computes, for its name.
        inputs: what it reads, as `Template` numbers it.
    """

    proto: NodeProto
    label: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A fragment as messages.

    What nodes read is a number: 0 is nothing, then come the inputs of the node that is replaced, then
    the outputs of the steps.

    Attributes:
        given: how many inputs of the replaced node are numbered.
        steps: the nodes to insert, each constant before the first node that reads it.
        result: the node that the replaced one becomes.
        inputs: what the result reads.
        attributes: those of the result, by name.
    """

    given: int
    steps: tuple[Step, ...]
    result: NewNode
    inputs: tuple[int, ...]
    attributes: Mapping[str, AttributeProto]

    @property
    def is_one_node(self) -> bool:
        """Tell whether only the fields of the replaced node change."""
        return not self.steps


def make_template(fragment: Fragment) -> Template:
    """Return the messages of a fragment.

    Raises:
        TypeError: an attribute or a constant is of a type that ONNX does not have.
        ValueError: a node reads what no node before it computes.
    """
    return _Maker(fragment).make()


class _Maker:
    def __init__(self, fragment: Fragment) -> None:
        self._fragment = fragment
        self._steps: list[Step] = []
        self._made: dict[int, int] = {}

    def make(self) -> Template:
        *before, result = self._fragment.news
        for new in before:
            inputs = self._wires(new)
            proto = NodeProto(op_type=new.type, domain=new.domain)
            proto.attribute.extend(make_attribute(*item) for item in new.attributes.items())
            self._add(new.output, Step(proto, new.label, inputs))
        inputs = self._wires(result)
        attributes = {name: make_attribute(name, value) for name, value in result.attributes.items()}
        given = len(self._fragment.given)
        return Template(given, tuple(self._steps), result, inputs, attributes)

    def _add(self, output: Value, step: Step) -> int:
        number = self._made[id(output)] = 1 + len(self._fragment.given) + len(self._steps)
        self._steps.append(step)
        return number

    def _wires(self, new: NewNode) -> tuple[int, ...]:
        return tuple(0 if value is None else self._wire(new, value) for value in new.inputs)

    def _wire(self, new: NewNode, value: Value) -> int:
        """Return the number of an input; a new constant becomes a step."""
        given, made = self._fragment.number_given(value), self._made.get(id(value))
        if given is not None:
            return 1 + given
        if made is not None:
            return made
        constant = value.constant
        if not isinstance(constant, NewConstant):
            raise ValueError(f"{new.label} reads {value.name!r}, which no node before it computes")
        return self._add(value, _constant_step(constant))


def _constant_step(constant: NewConstant) -> Step:
    proto = NodeProto(op_type="Constant")
    attribute = proto.attribute.add(name="value", type=AttributeProto.TENSOR)
    attribute.t.CopyFrom(make_tensor(constant.array, constant.element_type))
    return Step(proto, constant.label, ())
