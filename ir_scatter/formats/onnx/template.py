"""Fragments as messages, made once for all the nodes that a fragment replaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto

from ir_scatter.core.fragment import Fragment, NewConstant, NewNode
from ir_scatter.core.model import Value
from ir_scatter.formats.onnx.bytes import bytes_field, encoded
from ir_scatter.formats.onnx.make import make_attribute, make_tensor

INPUT = NodeProto.INPUT_FIELD_NUMBER
_OUTPUT, _NAME = NodeProto.OUTPUT_FIELD_NUMBER, NodeProto.NAME_FIELD_NUMBER
_DOMAIN = NodeProto.DOMAIN_FIELD_NUMBER


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A node to insert.

    Attributes:
        fields: of the node, but for its names.
        domain: of the node.
        label: what it computes, for its name.
        inputs: what it reads, as `Template` numbers it.
    """

    fields: bytes
    domain: str
    label: str
    inputs: tuple[int, ...]

    def content(self, inputs: "Sequence[str | bytes]", name: "str | bytes", alias: str) -> bytes:
        """Return the bytes of the node.

        Args:
            inputs: what it reads.
            name: its own, and that of its output.
            alias: how the model spells the default domain.
        """
        data = encoded(name)
        content = b"".join([bytes_field(INPUT, encoded(input)) for input in inputs])
        content += bytes_field(_OUTPUT, data) + bytes_field(_NAME, data) + self.fields
        return content + bytes_field(_DOMAIN, alias.encode()) if alias and not self.domain else content


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
        has_same_inputs: whether the result reads what the replaced node reads.
        kept: attributes, as nodes have them written, that are those of the result already.
    """

    given: int
    steps: tuple[Step, ...]
    result: NewNode
    inputs: tuple[int, ...]
    attributes: Mapping[str, AttributeProto]
    has_same_inputs: bool
    kept: set[tuple[bytes, ...]] = field(default_factory=set)

    def keeps_inputs(self, count: int) -> bool:
        """Tell whether only the fields of a replaced node with so many inputs change."""
        return self.has_same_inputs and count == len(self.inputs)

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
            self._add(new.output, _step(proto, new.label, inputs))
        inputs = self._wires(result)
        attributes = {name: make_attribute(name, value) for name, value in result.attributes.items()}
        given = len(self._fragment.given)
        is_same = not self._steps and inputs == tuple(range(1, 1 + len(inputs)))
        return Template(given, tuple(self._steps), result, inputs, attributes, is_same)

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
    return _step(proto, constant.label, ())


def _step(proto: NodeProto, label: str, inputs: tuple[int, ...]) -> Step:
    return Step(bytes(proto.SerializeToString(deterministic=True)), proto.domain, label, inputs)
