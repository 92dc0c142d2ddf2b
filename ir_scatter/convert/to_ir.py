"""ONNX to IR: OpenVINO reads it, and the result is checked like the rest."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ir_scatter.compare.numpy_source import Reference
from ir_scatter.convert.conversion import Conversion, Converted, Done, Refused
from ir_scatter.convert.on_devices import against_numpy, constraints_of
from ir_scatter.convert.opset.adapters import agreed_opset
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.diagnostics import Diagnostic, Location, Severity
from ir_scatter.core.errors import Error, UnreadableModel
from ir_scatter.core.model import Model, Node
from ir_scatter.core.temporary import temporary_folder
from ir_scatter.formats import FORMATS
from ir_scatter.inputs.constraints import Conditions
from ir_scatter.inputs.model import draw_feeds
from ir_scatter.inputs.node import MOST_ELEMENTS
from ir_scatter.ops.lookup import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import SCATTER_ELEMENTS, TENSOR_SCATTER
from ir_scatter.reading import read
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.rules import by_code
from ir_scatter.runners.base import Status
from ir_scatter.runners.defaults import TIME_LIMIT
from ir_scatter.runners.openvino.runner import export
from ir_scatter.validate import validate

_NUMPY = "NumPy"
"""What both models are equal on, as devices are named."""


@contextmanager
def exported(model: Model, options: Mapping[str, Any], *, partial: bool) -> Iterator[tuple[Done, str | None]]:
    """Convert an ONNX model to an IR, which is there as long as this is open, and then its nodes.

    Operators that OpenVINO does not read are rewritten in ONNX before. What is yielded is what came of it,
    of an IR or of the model itself if there is none; and the model that OpenVINO has read, if that means
    the same as the source in another opset.
    """
    # What breaks a rule has no documented result: OpenVINO might give it one of its own.
    broken = tuple(
        replace(_refused(one, "breaks", Reason.BREAKS_RULES), type=one.node.type if one.node else "")
        for one in validate(model)
        if one.severity is Severity.ERROR and by_code()[one.code].is_legality
    )
    if broken and not partial:
        yield Done(Conversion(model, refused=broken, origin=model.path)), None
        return
    first = _readable_by_openvino(model, options)
    if first is not None and first.refused:
        yield Done(first), None
        return
    with temporary_folder() as folder:
        path, source = Path(model.path), model
        if first is not None:
            path = Path(folder) / "source" / "model.onnx"
            path.parent.mkdir()
            first.write(path)
        problem = export(str(path.resolve()), f"{folder}/model.xml")
        if problem:
            message = f"OpenVINO cannot read it: {problem}"
            raise UnreadableModel("unreadable-file", message, Location(model.path))
        if first is not None:
            source = read(path)
        ir = read(f"{folder}/model.xml")
        found = convert(ir, **options)
        against = [
            _refused(one, "the IR breaks", Reason.TARGET_BREAKS_RULES)
            for one in validate(ir)
            if one.severity is Severity.ERROR
        ]
        refused = (*broken, *against, *found.refused)
        reason, equal = "", 0
        is_verified = bool(options["verify"]) and (partial or not refused)
        if is_verified and broken:
            reason = "what breaks a rule has no documented result"
        elif is_verified:
            constraints = {} if first is None else constraints_of(first)
            models = tuple(dict.fromkeys((model, source)))
            equal, difference, reason = _compare(models, ir, options, constraints)
            if difference:
                refused = (*refused, Refused(Reason.NOT_EQUAL, difference, "", Location(model.path)))
            is_verified = not difference
        conversion = replace(
            found,
            converted=_listed(model, ir, found),
            refused=refused,
            verified=(*(first.verified if first else ()), *found.verified),
            origin=model.path,
            warnings=(*found.warnings, *_lost_inputs(model, ir)),
        )
        is_moved = first is not None and first.move is not None
        devices = {_NUMPY: equal} if equal else {}
        yield Done(conversion, devices=devices, unverified=reason), source.path if is_moved else None


def _lost_inputs(model: Model, ir: Model) -> Iterator[Diagnostic]:
    """Yield the inputs that have a default in an ONNX model, and that OpenVINO made constants of."""
    flow, kept = FORMATS[model.format].dataflow(model), set[str]().union(*ir.inputs)
    for input in flow.inputs:
        value, name = flow.value(input.key), input.names[0]
        is_constant = value is not None and value.constant is not None  # as all defaults of old files are
        if input.default is None or is_constant or not kept.isdisjoint(input.names):
            continue
        code = Reason.INPUT_LOST
        message = (
            f"input {name!r} becomes a constant: the IR holds its default, for which alone it is verified"
        )
        place = Location(model.path, scope=name)
        help = f"remove the initializer {name!r} to keep the input"
        yield Diagnostic(code, code.rule, Severity.WARNING, message, place, help=help)


def _refused(found: Diagnostic, verb: str, code: Reason) -> Refused:
    name = found.node.name if found.node else ""
    return Refused(code, f"{verb} {found.code}: {found.message}", name, found.location)


def _readable_by_openvino(model: Model, options: Mapping[str, Any]) -> Conversion | None:
    """Rewrite what OpenVINO does not read, reads wrongly, or what is no longer legal; None without any."""
    keys = [*(spec.key for spec in TENSOR_SCATTER), *(spec.key for spec in SPECS.values() if spec.is_removed)]
    rows = (find(one.domain, one.type, one.opset) for one in model.definitions(scatter_types(model.domain)))
    wanted = {name: options[name] for name in ("assume", "verify", "seed")}
    agreed = agreed_opset(model)
    if agreed is not None:
        wanted["opset"] = agreed
    if any(row is not None and row.spec is not None and row.spec.key in keys for row in rows):
        wanted["guard"] = options.get(
            "guard"
        )  # the start of a run is to be limited, not each of its positions
        return convert(model, SCATTER_ELEMENTS[-1].key.type, sources=tuple(map(str, keys)), **wanted)
    return None if agreed is None else convert(model, **wanted)


def _compare(
    models: Sequence[Model], ir: Model, options: Mapping[str, Any], constraints: Mapping[str, Conditions]
) -> tuple[int, str, str]:
    """Return on how many cases outputs in NumPy are equal, how they differ, and why they cannot be compared.

    Of models of one meaning the first that NumPy computes is taken; an IR's outputs stand in its order. Large
    models get one case.
    """
    reason = ""
    try:
        after = Reference(ir)
        for model in models:
            before, elements = Reference(model), 0
            for number in range(options["verify"]):
                if elements > MOST_ELEMENTS:
                    return number, "", ""
                feeds = draw_feeds(model, options["seed"] + number, constraints=constraints).feeds
                elements += sum(array.size for array in feeds.values())
                waiting = [one.start(feeds) for one in (before, after)]
                (old, sight), (new, _) = (finish(TIME_LIMIT) for finish in waiting)
                failed = next((one for one in (new, old) if one.status is not Status.OK), None)
                if failed is not None:
                    reason = failed.message
                    break
                named = dict(zip(old.outputs, new.outputs.values(), strict=False))
                verdict, difference = against_numpy(replace(new, runs=(named,)), old, sight)
                if verdict.is_difference:
                    return 0, difference, ""
            else:
                return options["verify"], "", ""
    except Error as error:
        reason = str(error).replace(ir.path, "the IR")
    return 0, "", reason


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
        listed.append(replace(known, node=node, source=origin.spec.key if origin and origin.spec else None))
    return tuple(listed)
