"""Facts about a model and its nodes: taps, names, states, and the kernels that a runtime chose."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import PRECISION_BITS, coarser
from ir_scatter.compare.result import ModelFacts
from ir_scatter.core.errors import Error
from ir_scatter.core.files import sha256_of
from ir_scatter.core.model import Model
from ir_scatter.formats import FORMATS, dataflow_of
from ir_scatter.ops.general import find as find_general
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.reading import files_beside
from ir_scatter.runners.base import NodeFacts, Tap, tap_of

_SUFFIX = re.compile(r"(?:\.\d+)+$")
"""What a plugin adds to the name of a node when it puts conversions around it; these get more of it."""


def facts_about_model(model: Model) -> ModelFacts:
    """Return what tells a model from others; files that cannot be read are left out."""
    opsets = [f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items()]
    if not opsets:
        found = {str(node.opset) for node in model.walk() if node.opset is not None}
        opsets = sorted(found, key=lambda word: (len(word), word))
    files = list[tuple[str, int, str]]()
    for path in (model.path, *(beside for beside, _ in files_beside(model.path))):
        with suppress(OSError):
            files.append((path, os.path.getsize(path), sha256_of(path)))
    return ModelFacts(model.path, FORMATS[model.format].title, tuple(opsets), tuple(files))


def is_one_node(model: Model) -> bool:
    """Tell whether a model is a scatter node and what feeds it, and nothing else."""
    with suppress(Error):
        flow = dataflow_of(model)
        links = [flow.link(output.key) for output in flow.outputs]
        if len(links) != 1 or links[0] is None or links[0].node.type not in scatter_types(model.domain):
            return False
        inputs = [key for key in links[0].inputs if key is not None]
        return all(flow.link(key) is None or flow.constant(key) is not None for key in inputs)
    return False


def nodes_by_tap(model: Model) -> dict[Tap, ScatterNode]:
    """Return the scatter nodes whose opset contains them, bodies included, by what asks for them."""
    facts, found = Facts(), {}
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            found[tap_of(node, model.format)] = ScatterNode(node, lookup, facts)
    return found


def output_of(scatter: ScatterNode) -> str:
    named = scatter.node.outputs[0].name if scatter.node.outputs else ""
    return named or scatter.node.name


def has_states(model: Model) -> bool:
    """Tell whether a model keeps anything from one inference to the next."""
    ops = (find_general(node.domain, node.type) for node in model.graph.walk())
    return any(op is not None and op.state == "written" for op in ops)


def tolerance_names(scatter: ScatterNode) -> tuple[str, ...]:
    return output_of(scatter), scatter.node.name, scatter.node.scope


def computed_in(facts: Sequence[NodeFacts]) -> str:
    """Return the coarsest floating-point precision of any node; "" if nothing is known."""
    found = {one.precision.lower() for one in facts} & PRECISION_BITS.keys()
    return coarser(*sorted(found)) if found else ""


def facts_about(facts: Sequence[NodeFacts], scopes: Mapping[str, str]) -> tuple[NodeFacts, ...]:
    """Return what a runtime made of some nodes; in `originals` they have the names that they have here.

    `scopes` are these names by those that the runtime may have for them.
    """
    best: dict[str, tuple[int, int]] = {}
    for number, one in enumerate(facts):
        for name in one.originals:
            known = name if name in scopes else _SUFFIX.sub("", name)
            if known in scopes:
                rank = (len(name) - len(known), number)
                best[scopes[known]] = min(best.get(scopes[known], rank), rank)
    chosen: dict[int, list[str]] = {}
    for scope, (_, number) in best.items():
        chosen.setdefault(number, []).append(scope)
    return tuple(replace(facts[number], originals=tuple(chosen[number])) for number in sorted(chosen))
