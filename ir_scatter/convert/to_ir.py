"""ONNX to IR: OpenVINO reads it, and the result is checked like the rest."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.compare.guard import Reference
from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion, Converted, Refused
from ir_scatter.convert.on_devices import against_numpy, constraints_of
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.errors import Error, UnreadableModel
from ir_scatter.core.model import Model, Node
from ir_scatter.inputs.constraints import IndexConstraint
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.ops.lookup import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import SCATTER_ELEMENTS, TENSOR_SCATTER
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.rules import by_code
from ir_scatter.runners.base import Status
from ir_scatter.validate import validate

_CASES = 3
"""On how many generated inputs the IR is compared with the model: so many hold every kind of index."""

_TIME_LIMIT = 600.0
"""In seconds, for NumPy to compute a model once."""


class Exported(NamedTuple):
    """What came of an ONNX model as an IR.

    Attributes:
        conversion: of the IR.
        is_exported: whether there is an IR; without one, the conversion says what is refused.
        remarks: what else there is to say.
        before: the model that OpenVINO has read, if that means the same as the source in another opset.
    """

    conversion: Conversion
    is_exported: bool
    remarks: tuple[str, ...] = ()
    before: str | None = None


@contextmanager
def exported(model: Model, options: Mapping[str, Any], *, partial: bool) -> Iterator[Exported]:
    """Convert an ONNX model to an IR, which is there as long as this is open, and then its nodes.

    Operators that OpenVINO does not read are rewritten in ONNX before.

    Args:
        model: an ONNX model.
        options: those of `convert`.
        partial: whether to export although a node is refused.

    Raises:
        UsageError: an option does not fit.
        UnreadableModel: OpenVINO cannot read the model.
    """
    # What breaks a rule has no documented result: OpenVINO might give it one of its own.
    broken = tuple(
        _refused(one, Reason.BREAKS_RULES, f"breaks {one.code}: {one.message}")
        for one in validate(model)
        if one.severity is Severity.ERROR and by_code()[one.code].is_legality
    )
    if broken and not partial:
        yield Exported(Conversion(model, refused=broken, origin=model.path), is_exported=False)
        return
    first = _readable_by_openvino(model, options)
    if first is not None and first.refused:
        yield Exported(first, is_exported=False)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, ir = _export(model, first, Path(folder))
        found = convert(ir, **options)
        refused = (*broken, *_findings(ir), *found.refused)
        remarks: tuple[str, ...] = ()
        if not refused and options["verify"]:
            kept = {} if first is None else constraints_of(first)
            problem, remarks = _compare(tuple(dict.fromkeys((model, source))), ir, options["seed"], kept)
            if problem:
                refused = (Refused(Reason.NOT_EQUAL, problem, "", Location(model.path)),)
        listed = _listed(model, ir, found)
        verified = (*(first.verified if first else ()), *found.verified)
        conversion = replace(found, converted=listed, refused=refused, verified=verified, origin=model.path)
        is_moved = first is not None and first.move is not None
        yield Exported(conversion, True, remarks, source.path if is_moved else None)


def _refused(found: Diagnostic, code: Reason, message: str, *, with_type: bool = True) -> Refused:
    name, type = (found.node.name, found.node.type) if found.node else ("", "")
    return Refused(code, message, name, found.location, type=type if with_type else "")


def _findings(ir: Model) -> Iterator[Refused]:
    """Yield what `validate` has against the IR."""
    for one in validate(ir):
        if one.severity is Severity.ERROR:
            message = f"the IR breaks {one.code}: {one.message}"
            yield _refused(one, Reason.TARGET_BREAKS_RULES, message, with_type=False)


def _readable_by_openvino(model: Model, options: Mapping[str, Any]) -> Conversion | None:
    """Rewrite what OpenVINO does not read, reads wrongly, or what is no longer legal; None without any."""
    from ir_scatter.convert.opset.adapters import agreed_opset

    keys = [*(spec.key for spec in TENSOR_SCATTER), *(spec.key for spec in SPECS.values() if spec.is_removed)]
    rows = (find(one.domain, one.type, one.opset) for one in model.definitions(scatter_types(model.domain)))
    wanted = {name: options[name] for name in ("assume", "verify", "seed")}
    agreed = agreed_opset(model)
    if agreed is not None:
        wanted["opset"] = agreed
    if any(row is not None and row.spec is not None and row.spec.key in keys for row in rows):
        return convert(model, SCATTER_ELEMENTS[-1].key.type, sources=tuple(map(str, keys)), **wanted)
    return None if agreed is None else convert(model, **wanted)


def _export(model: Model, first: Conversion | None, folder: Path) -> tuple[Model, Model]:
    """Return what OpenVINO has read, and the IR that it has written."""
    from ir_scatter.runners.openvino.questions import export

    source, target = Path(model.path), folder / "model.xml"
    if first is not None:
        source = folder / "source" / "model.onnx"
        source.parent.mkdir()
        first.write(source)
    problem = export(str(source.resolve()), str(target))
    if problem:
        message = f"OpenVINO cannot read it: {problem}"
        raise UnreadableModel("unreadable-file", message, Location(model.path))
    return read(source) if first is not None else model, read(target)


def _compare(
    models: Sequence[Model], ir: Model, seed: int, constraints: Mapping[str, IndexConstraint]
) -> tuple[str, tuple[str, ...]]:
    """Return how the outputs in NumPy differ, and what is to be said if they cannot be compared.

    Args:
        models: of the same meaning; the first that NumPy computes is taken.
        ir: the same as an IR, whose outputs stand in the same order.
        seed: for the inputs.
        constraints: what the first model's indices keep to, by node.
    """
    reason = ""
    try:
        after = Reference(ir)
        for model in models:
            before = Reference(model)
            for number in range(_CASES):
                feeds = draw_feeds(model, seed + number, constraints=constraints).feeds
                waiting = [one.start(feeds) for one in (before, after)]
                (old, sight), (new, _) = (finish(_TIME_LIMIT) for finish in waiting)
                failed = next((one for one in (new, old) if one.status is not Status.OK), None)
                if failed is not None:
                    reason = failed.message
                    break
                named = dict(zip(old.outputs, new.outputs.values(), strict=False))
                verdict, difference = against_numpy(replace(new, runs=(named,)), old, sight)
                if verdict.is_difference:
                    return difference, ()
            else:
                return "", ()
    except Error as error:
        reason = str(error).replace(ir.path, "the IR")
    return "", (f"the models were not compared in NumPy: {reason}",)


def _listed(model: Model, ir: Model, found: Conversion) -> tuple[Converted, ...]:
    """List every scatter node of the IR with the node of the ONNX model that has its name."""
    before: dict[str, Node] = {}
    for node in model.definitions(scatter_types(model.domain)):
        before |= dict.fromkeys({node.name, *(output.name for output in node.outputs[:1])}, node)
    rewritten = {one.location.scope: one for one in found.converted}
    listed = []
    for node in ir.walk(scatter_types(ir.domain)):
        lookup, source = find(node.domain, node.type, node.opset), before.get(node.name)
        if lookup is None or lookup.spec is None:
            continue
        known = rewritten.get(node.scope) or Converted(node, None, lookup.spec.key)
        origin = find(source.domain, source.type, source.opset) if source else None
        listed.append(known._replace(node=node, source=origin.spec.key if origin and origin.spec else None))
    return tuple(listed)
