"""Converts ONNX to IR: OpenVINO writes the IR, which is then validated, converted and compared in NumPy."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ir_scatter.compare.numpy_source import Reference
from ir_scatter.convert.conversion import Conversion, ConversionRun, Converted, Refused
from ir_scatter.convert.functions import inline_functions
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
"""The name under which reports list the comparison in NumPy, beside devices."""


@contextmanager
def exported(
    model: Model, options: Mapping[str, Any], *, partial: bool
) -> Iterator[tuple[ConversionRun, str | None]]:
    """Convert an ONNX model to a temporary IR, and its nodes; the IR exists within the `with` block.

    Operators that OpenVINO cannot read are first rewritten in ONNX.

    Yields:
        The result for the IR; for the ONNX model if there is no IR. Then the path of the model that OpenVINO
        has read, if it is a copy in another opset or with inlined functions, else None.
    """
    # Nodes that break a rule have no specified result; OpenVINO may compute anything.
    broken = tuple(
        replace(
            _refused(diagnostic, "breaks", Reason.BREAKS_RULES),
            type=diagnostic.node.type if diagnostic.node else "",
        )
        for diagnostic in validate(model)
        if diagnostic.severity is Severity.ERROR and by_code()[diagnostic.code].is_legality
    )
    if broken and not partial:
        yield ConversionRun(Conversion(model, refused=broken, origin=model.path)), None
        return
    inlined = inline_functions(model)
    if isinstance(inlined, Refused):
        yield ConversionRun(Conversion(model, refused=(inlined,), origin=model.path)), None
        return
    onnx = model if inlined is None else inlined.model
    first = _readable_by_openvino(onnx, options)
    if inlined is not None:
        first = replace(first or Conversion(onnx), inlined=inlined.calls)
    if first is not None and first.refused:
        yield ConversionRun(first), None
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
        conversion_of_ir = convert(ir, **options)
        against = [
            _refused(diagnostic, "the IR breaks", Reason.TARGET_BREAKS_RULES)
            for diagnostic in validate(ir)
            if diagnostic.severity is Severity.ERROR
        ]
        refused = (*broken, *against, *conversion_of_ir.refused)
        reason, equal = "", 0
        is_verified = bool(options["verify"]) and (partial or not refused)
        if is_verified and broken:
            reason = "nodes that break a rule have no specified result"
        elif is_verified:
            constraints = {} if first is None else constraints_of(first)
            models = tuple(dict.fromkeys((model, source)))
            equal, difference, reason = _compare(models, ir, options, constraints)
            if difference:
                refused = (*refused, Refused(Reason.NOT_EQUAL, difference, "", Location(model.path)))
            is_verified = not difference
        conversion = replace(
            conversion_of_ir,
            converted=_listed(onnx, ir, conversion_of_ir),
            refused=refused,
            verified=(*(first.verified if first else ()), *conversion_of_ir.verified),
            origin=model.path,
            warnings=(*conversion_of_ir.warnings, *_lost_inputs(model, ir)),
        )
        is_other = first is not None and (first.move is not None or bool(first.inlined))
        run = ConversionRun(
            conversion,
            remarks=() if first is None else first.inlining(),
            devices={_NUMPY: equal} if equal else {},
            unverified=reason,
        )
        yield run, source.path if is_other else None


def _lost_inputs(model: Model, ir: Model) -> Iterator[Diagnostic]:
    """Yield a warning for each input with a default that OpenVINO has converted to a constant."""
    flow, names = FORMATS[model.format].dataflow(model), set[str]().union(*ir.inputs)
    for input in flow.inputs:
        value, name = flow.value(input.key), input.names[0]
        is_constant = (
            value is not None and value.constant is not None
        )  # in old files every initializer is also an input
        if input.default is None or is_constant or not names.isdisjoint(input.names):
            continue
        code = Reason.INPUT_LOST
        message = f"input {name!r} becomes a constant: the IR contains its default value"
        message += ", and is verified for this value only"
        place = Location(model.path, scope=name)
        help = f"remove the initializer {name!r} to keep the input"
        yield Diagnostic(code, code.rule, Severity.WARNING, message, place, help=help)


def _refused(diagnostic: Diagnostic, verb: str, code: Reason) -> Refused:
    name = diagnostic.node.name if diagnostic.node else ""
    return Refused(code, f"{verb} {diagnostic.code}: {diagnostic.message}", name, diagnostic.location)


def _readable_by_openvino(model: Model, options: Mapping[str, Any]) -> Conversion | None:
    """Rewrite nodes that OpenVINO cannot read or misreads, or that are no longer legal.

    None if there are no such nodes.
    """
    keys = [*(spec.key for spec in TENSOR_SCATTER), *(spec.key for spec in SPECS.values() if spec.is_removed)]
    rows = (
        find(node.domain, node.type, node.opset) for node in model.definitions(scatter_types(model.domain))
    )
    arguments = {name: options[name] for name in ("assume", "verify", "seed", "given") if name in options}
    agreed = agreed_opset(model)
    if agreed is not None:
        arguments["opset"] = agreed
    if any(row is not None and row.spec is not None and row.spec.key in keys for row in rows):
        arguments["guard"] = options.get(
            "guard"
        )  # only the start of a run of positions must be limited, not each position
        return convert(model, SCATTER_ELEMENTS[-1].key.type, sources=tuple(map(str, keys)), **arguments)
    return None if agreed is None else convert(model, **arguments)


def _compare(
    models: Sequence[Model], ir: Model, options: Mapping[str, Any], constraints: Mapping[str, Conditions]
) -> tuple[int, str, str]:
    """Compare outputs in NumPy; return (equal cases, difference, reason why no comparison was possible).

    Of several equivalent models the first that NumPy can compute is used. Outputs are paired by their order.
    Large models get one case.
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
                waiting = [reference.start(feeds) for reference in (before, after)]
                (old, observations), (new, _) = (finish(TIME_LIMIT) for finish in waiting)
                failed = next((outcome for outcome in (new, old) if outcome.status is not Status.OK), None)
                if failed is not None:
                    reason = failed.message
                    break
                named = dict(zip(old.outputs, new.outputs.values(), strict=False))
                verdict, difference = against_numpy(replace(new, runs=(named,)), old, observations)
                if verdict.is_difference:
                    return 0, difference, ""
            else:
                return options["verify"], "", ""
    except Error as error:
        reason = str(error).replace(ir.path, "the IR")
    return 0, "", reason


def _listed(model: Model, ir: Model, conversion: Conversion) -> tuple[Converted, ...]:
    """Return an entry for every scatter node of the IR, with the ONNX operator of the same name as source."""
    before: dict[str, Node] = {}
    for node in model.definitions(scatter_types(model.domain)):
        before |= dict.fromkeys({node.name, *(output.name for output in node.outputs[:1])}, node)
    rewritten = {converted.location.scope: converted for converted in conversion.converted}
    listed = []
    for node in ir.walk(scatter_types(ir.domain)):
        lookup, source = find(node.domain, node.type, node.opset), before.get(node.name)
        if lookup is None or lookup.spec is None:
            continue
        entry = rewritten.get(node.scope) or Converted(node, None, lookup.spec.key)
        origin = find(source.domain, source.type, source.opset) if source else None
        listed.append(replace(entry, node=node, source=origin.spec.key if origin and origin.spec else None))
    return tuple(listed)
