"""ONNX to IR: OpenVINO reads it, and the result is checked like the rest."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.convert import convert
from ir_scatter.convert.conversion import Conversion, Converted, Refused
from ir_scatter.convert.engine import DEMANDS
from ir_scatter.convert.on_devices import constraints_of
from ir_scatter.convert.proof import difference_of
from ir_scatter.core.diagnostics import Location, Severity
from ir_scatter.core.errors import Error, UnreadableModel, UsageError
from ir_scatter.core.model import Model, Node
from ir_scatter.ops import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import SCATTER_ELEMENTS, TENSOR_SCATTER_24
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.validate import read, validate

if TYPE_CHECKING:
    from ir_scatter.convert.job import Done, Job
    from ir_scatter.evaluate.program import Program
    from ir_scatter.inputs.constraints import IndexConstraint


_CASES = 3
"""On how many generated inputs the IR is compared with the model: so many hold every kind of index."""


def run_to_ir(job: "Job", model: Model) -> "Done":
    """Convert an ONNX model to an IR, and then its nodes if an operator is named.

    Operators that OpenVINO does not read are rewritten in ONNX before.

    Raises:
        UsageError: an option does not fit, or a file is in the way.
        UnreadableModel: OpenVINO cannot read the model.
        CannotWrite: nothing was written.
    """
    from ir_scatter.convert.job import Done, demand_output, finish

    assert job.output is not None
    if job.options.get("opset") is not None:
        raise UsageError("--opset is for ONNX models, and the output is an IR")
    demand_output(job, model, is_ir=True)
    broken = tuple(_broken(model))
    if broken and not job.partial:
        return Done(Conversion(model, refused=broken, origin=model.path))
    with tempfile.TemporaryDirectory() as folder:
        first = _readable_by_openvino(job, model)
        if first is not None and first.refused:
            return Done(first)
        source, exported = _export(model, first, Path(folder))
        found = convert(exported, **job.options)
        refused = (*broken, *_findings(exported), *found.refused)
        remarks: tuple[str, ...] = ()
        if not refused and job.options["verify"]:
            kept = {} if first is None else constraints_of(first)
            problem, remarks = _compare([model, source], exported, job.options["seed"], kept)
            if problem:
                refused = (Refused(Reason.NOT_EQUAL, problem, "", Location(model.path)),)
        listed = _listed(model, exported, found)
        verified = (*(first.verified if first else ()), *found.verified)
        conversion = replace(found, converted=listed, refused=refused, verified=verified, origin=model.path)
        is_moved = first is not None and first.move is not None
        return finish(job, conversion, remarks, source.path if is_moved else None)


def _broken(model: Model) -> Iterator[Refused]:
    """Yield the nodes whose result no document says: OpenVINO might give them one of its own."""
    for found in validate(model):
        if found.severity is Severity.ERROR and found.code.startswith(DEMANDS):
            node = found.node
            name, type = (node.name, node.type) if node else ("", "")
            message = f"breaks {found.code}: {found.message}"
            yield Refused(Reason.BREAKS_RULES, message, name, found.location, type=type)


def _readable_by_openvino(job: "Job", model: Model) -> Conversion | None:
    """Rewrite what OpenVINO does not read, reads wrongly, or what is no longer legal; None without any."""
    from ir_scatter.convert.opset.adapters import agreed_opset

    keys = [TENSOR_SCATTER_24.key, *(spec.key for spec in SPECS.values() if spec.is_removed)]
    kinds = scatter_types(model.domain)
    rows = (find(node.domain, node.type, node.opset) for node in model.definitions(kinds))
    options = {name: job.options[name] for name in ("assume", "verify", "seed")}
    agreed = agreed_opset(model)
    if agreed is not None:
        options["opset"] = agreed
    if any(row is not None and row.spec is not None and row.spec.key in keys for row in rows):
        return convert(model, SCATTER_ELEMENTS[-1].key.type, sources=tuple(map(str, keys)), **options)
    return convert(model, **options) if "opset" in options else None


def _export(model: Model, first: Conversion | None, folder: Path) -> tuple[Model, Model]:
    """Return what OpenVINO has read, and the IR that it has written."""
    from ir_scatter.runners.openvino.export import export

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


def _findings(exported: Model) -> Iterator[Refused]:
    """Yield what `validate` has against the IR."""
    for found in validate(exported):
        if found.severity is Severity.ERROR:
            message = f"the IR breaks {found.code}: {found.message}"
            name = found.node.name if found.node else ""
            yield Refused(Reason.TARGET_BREAKS_RULES, message, name, found.location)


def _compare(
    models: Sequence[Model], exported: Model, seed: int, constraints: "Mapping[str, IndexConstraint]"
) -> tuple[str, tuple[str, ...]]:
    """Return how the outputs in NumPy differ, and what is to be said if they cannot be compared.

    Args:
        models: of the same meaning; the first that NumPy computes is taken.
        exported: the IR.
        seed: for the inputs.
        constraints: what the first model's indices keep to, by node.
    """
    from ir_scatter.evaluate.model import prepare
    from ir_scatter.inputs.model import draw_feeds

    try:
        after, before = prepare(exported), _prepare_one(models)
        for number in range(_CASES):
            feeds = draw_feeds(before, seed + number, constraints=constraints).feeds
            difference = difference_of(list(before.run(feeds).values()), list(after.run(feeds).values()))
            if difference:
                return difference, ()
        return "", ()
    except Error as error:
        reason = str(error).replace(exported.path, "the IR")
        return "", (f"the models were not compared in NumPy: {reason}",)


def _prepare_one(models: Sequence[Model]) -> "Program":
    from ir_scatter.evaluate.model import prepare

    for model in models[:-1]:
        with suppress(Error):
            return prepare(model)
    return prepare(models[-1])


def _listed(model: Model, exported: Model, found: Conversion) -> tuple[Converted, ...]:
    """List every scatter node of the IR with the node of the ONNX model that has its name."""
    before = {name: node for node in model.definitions(scatter_types(model.domain)) for name in _names(node)}
    rewritten = {one.location.scope: one for one in found.converted}
    listed = []
    for node in exported.walk(scatter_types(exported.domain)):
        lookup, source = find(node.domain, node.type, node.opset), before.get(node.name)
        if lookup is None or lookup.spec is None:
            continue
        known = rewritten.get(node.scope)
        origin = find(source.domain, source.type, source.opset) if source else None
        key = origin.spec.key if origin and origin.spec else None
        target = known.target if known else lookup.spec.key
        fragment, names = (known.fragment, known.rewrites) if known else (None, ())
        assumptions = known.assumptions if known else ()
        listed.append(Converted(node, key, target, names, assumptions, fragment))
    return tuple(listed)


def _names(node: Node) -> set[str]:
    return {node.name, *(output.name for output in node.outputs[:1])}
