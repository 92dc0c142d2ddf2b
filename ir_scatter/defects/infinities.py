"""Defects with infinite numbers, which a runtime replaces by the largest finite ones."""

from dataclasses import replace
from math import inf

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, meets
from ir_scatter.defects.element_types import element_type_is, type_name
from ir_scatter.ops.spec import Reduction, Role


def _infinite(
    name: str, word: str, data: list[float], update: float, constant: Role, type: str = "bf16"
) -> Probe:
    attributes, constants = {"reduction": word}, frozenset({Role.AXIS, constant})
    probe = Probe(name, "ScatterElementsUpdate-12", data, [0], [update], 0, type)
    return replace(probe, attributes=attributes, constants=constants)


_FINITE = (
    _infinite("mean", "mean", [1, 2], inf, Role.UPDATES),
    _infinite("mean-of-data", "mean", [inf, 2], 3, Role.DATA),
    _infinite("product", "prod", [inf, 2], 0.5, Role.DATA),
    _infinite("product-with-zero", "prod", [inf, 2], 0, Role.DATA),
    _infinite("sum", "sum", [inf, 2], -3e38, Role.DATA),
)


@Defect(
    "DEV113",
    "infinite-constants",
    ("openvino:CPU",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(*_FINITE, _infinite("f16", "mean", [1, 2], inf, Role.UPDATES, "f16")),
    near=(
        _infinite("fed", "mean", [1, 2], inf, Role.AXIS),
        _infinite("replaced", "none", [1, 2], inf, Role.UPDATES),
        _infinite("largest", "max", [inf, 2], 3, Role.DATA),
    ),
    avoid="pass the numbers as an input, or compute in f32",
    depends_on_instructions=True,
    stays=True,
)
def infinite_constants(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin stores infinite bf16 constants as the largest f32, and sometimes f16 ones too.

    Results computed from them are finite: a mean with 0 is half of the largest f32, and a product with 0 is 0
    instead of NaN. If nothing is computed, and in most sums, rounding the result to bf16 gives infinity again
    and hides the defect. Processors that compute in bf16 natively may not show it.
    """
    when = {
        Reduction.MEAN: "it is averaged with a finite number",
        Reduction.PROD: "it is multiplied by a number below 1",
        Reduction.SUM: "a number near the largest one, of the opposite sign, is added to it",
        Reduction.SUB: "a number near the largest one, of the same sign, is subtracted from it",
    }.get(scatter.reduction or Reduction.NONE, "")
    names = {"bf16": tuple(probe.name for probe in _FINITE), "f16": ("f16",)}
    probes = names.get(type_name(scatter.data), ())
    for role in (Role.DATA, Role.UPDATES) if when and probes else ():
        operand = scatter.operand(role)
        is_ignored = role is Role.DATA and scatter.attribute("use_init_val") is False
        array = None if operand is None or is_ignored else scatter.facts.array(operand.value)
        if array is not None and (abs(array) == inf).any():
            is_likely = scatter.reduction in {Reduction.MEAN, Reduction.PROD}
            reason = f"constant {role.value} holds an infinite number"
            return Meeting(reason, role, None, when, probes, is_likely=is_likely)
    return None


def _extreme(name: str, word: str, update: float, type: str = "f32", data: float = 1) -> Probe:
    attributes = {"reduction": word, "use_init_val": data != 1}
    return Probe(name, "ScatterElementsUpdate-12", [data, 2], [0], [update], 0, type, attributes=attributes)


@Defect(
    "DEV115",
    "extremes-begin-finite",
    ("openvino:CPU", "openvino:GPU", "openvino:fold"),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(_extreme("max", "max", -inf), _extreme("min", "min", inf)),
    near=(
        _extreme("finite", "max", -3),
        _extreme("bf16", "max", -inf, "bf16"),
        _extreme("from-data", "max", -inf, data=-inf),
    ),
    avoid="limit updates to finite numbers",
    depends_on_instructions=True,
)
def extremes_begin_finite(scatter: ScatterNode) -> Meeting | None:
    """With use_init_val = false OpenVINO starts max from the least f32, and min from the largest.

    So max over updates that are all -inf gives -3.4e38. In f16 and bf16 rounding hides it, unless the
    processor computes in these types natively.
    """
    is_extreme = scatter.reduction in {Reduction.MAX, Reduction.MIN}
    if not is_extreme or scatter.attribute("use_init_val") is not False:
        return None
    array = None if scatter.updates is None else scatter.facts.array(scatter.updates.value)
    is_open = array is None or bool((abs(array) == inf).any())
    infinite = Ternary(None if is_open else False, "all updates of an element are infinite")
    conditions = [element_type_is(scatter, "f32"), infinite]
    return meets(f"{scatter.reduction} ignores the value of data", conditions, Role.UPDATES)
