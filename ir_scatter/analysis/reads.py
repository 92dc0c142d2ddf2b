"""What a rule or a rewrite looks at on a scatter node, which decides what nodes it need not tell apart."""

from enum import StrEnum


class Fact(StrEnum):
    """Something that can be known of a scatter node.

    A rule or a rewrite declares all that it reads. Nodes that are the same in all of it are handled
    once; whoever reads a fact that no group of nodes shares is asked about each node.
    """

    OPERATOR = "operator"
    """Domain, type and opset, and the row of the table that applies."""
    ATTRIBUTES = "attributes"
    """The attributes, written or by default, and so the reduction."""
    AXIS = "axis"
    """The axis, if it is constant."""
    INPUTS = "inputs"
    """How many inputs and outputs there are, which of them are left out, open or the same."""
    SHAPES = "shapes"
    """Ranks and shapes of inputs and outputs, as far as they are known."""
    TYPES = "types"
    """Element types of inputs and outputs."""
    STORED = "stored"
    """Shapes and types that the file stores at inputs and outputs, right or wrong."""
    CONSTANCY = "constancy"
    """Whether the indices are constant in effect."""

    INDEX_FAULTS = "index-faults"
    """Constant indices, and where they come from, if one of them is out of range, negative, or names a
    target again; nothing of other indices."""
    UNREAD_INDICES = "unread-indices"
    """The constant that the indices come from, if it is too large to be read; nothing of others."""

    CONDITIONS = "conditions"
    """What is proven of the indices, by condition (rewrites: `View.proof`, which remembers who asked)."""
    NOTED_INDICES = "noted-indices"
    """The numbers of constant indices (rewrites: `View.index_numbers`, which notes that what is made
    of them is right for no others)."""

    INDICES = "indices"
    """The numbers of the indices, whatever they are."""
    VALUES = "values"
    """The numbers of data and updates."""
    PRODUCERS = "producers"
    """What stands in front of the inputs and around the node."""
    NAMES = "names"
    """Names and places of the node and of its inputs."""


EVERYTHING = frozenset(Fact)
"""What is read by whoever declares nothing."""

SIGNATURE = frozenset(
    {
        Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.STORED,
        Fact.CONSTANCY,
    }
)  # fmt: skip
"""What nodes of one `ScatterNode.signature` have in common, and more so those of one form."""

FAULTS = frozenset({Fact.INDEX_FAULTS, Fact.UNREAD_INDICES})
"""What there is nothing of where indices are plain, or an input of the model."""

REMEMBERED = frozenset({Fact.CONDITIONS, Fact.NOTED_INDICES})
"""What is written down when a rewrite asks for it."""
