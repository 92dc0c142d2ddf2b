"""Defects of scatter nodes whose data is a state, kept from one inference to the next."""

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import element_count
from ir_scatter.core.words import listed
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, has_elements, meets
from ir_scatter.defects.bodies import adds_up_again, conditions_of
from ir_scatter.defects.shared_memory import MOST_VIEWS, origin, readers, step_back
from ir_scatter.ops.general import find
from ir_scatter.ops.spec import Role

_SUM = {"reduction": "sum"}


@Defect(
    "DEV116",
    "state-updated-in-place",
    ("openvino:CPU",),
    Symptom.WRONG_VALUE,
    probes=(
        Probe(
            "elements", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, times=3,
            keeps_state=True,
        ),
        Probe(
            "reshaped", "ScatterNDUpdate-15", (4, 3), [[1]], (1, 3), None, attributes=_SUM, times=3,
            before=("Unsqueeze", "Squeeze"), keeps_state=True,
        ),
    ),
    near=(
        Probe("replaced", "ScatterElementsUpdate-12", (4,), [0], [10], 0, times=3, keeps_state=True),
        Probe(
            "computed", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, times=3,
            before=("Abs",), keeps_state=True,
        ),
        Probe(
            "once", "ScatterElementsUpdate-12", (4,), [0], [10], 0, attributes=_SUM, keeps_state=True
        ),
    ),
    strikes=Stage.RUN,
    avoid="assign the result of the node to the state, or compute a copy of the state for the node",
    stays=True,
    taps_hide=True,
    inferences=2,
)  # fmt: skip
def state_updated_in_place(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin writes updates into a state that should stay unchanged.

    The model reads the state and assigns it back unchanged; the node's result goes elsewhere. The second
    inference reads the result of the first one: 1 + 10 gives 11, 21 and 31 in three inferences instead of 11
    each time, until `reset_state`. It happens if no other node of the model computes with the state.
    Operators that do not copy their input may stand between: Reshape, Convert to the same type, a Slice of
    everything.
    """
    if scatter.data is None or element_count(scatter.indices_shape) == 0:
        return None
    memory = origin(scatter, _is_state, reads_results=True)
    if memory is None or not _is_written_back(scatter.facts, memory.value):
        return None
    adds_up = adds_up_again(scatter, lambda _: False, "an inference", memory)
    again = Ternary(None, "a second inference follows without a reset of states")
    reason = "data is a state that is assigned unchanged"
    if memory.through:
        reason += f", and shares its memory through {listed(memory.through)}"
    conditions = [adds_up, *conditions_of(memory), has_elements(scatter)]
    meeting = meets(reason, [*conditions[:-1], again, conditions[-1]], Role.DATA)
    is_likely = all(condition.truth for condition in conditions)
    return meeting and meeting._replace(is_likely=is_likely)


def _is_state(value: Value) -> bool:
    return _state_of(value.producer, "read") is not None


def _state_of(node: Node | None, act: str) -> str | None:
    """Return the name of the state that a node reads or writes, None if it does not."""
    op = None if node is None else find(node.domain, node.type)
    if node is None or op is None or op.state != act:
        return None
    return str(node.attributes.get("variable_id", ""))


def _is_written_back(facts: Facts, state: Value) -> bool:
    """Return whether the value assigned to a state is the state itself, directly or through views."""
    assert state.producer is not None
    graph, name = state.producer.graph, _state_of(state.producer, "read")
    for value, nodes in readers(graph).items():
        if not any(_state_of(node, "written") == name for node in nodes):
            continue
        source = value
        for _ in range(MOST_VIEWS):
            if source is state:
                return True
            step = step_back(facts, source, graph, writes=False)
            if step is None:
                break
            source = step.source
    return False
