"""Facts about a model and its nodes: taps, names, states, and the kernels that a runtime has chosen."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.compare.measure import PRECISION_BITS, coarsest
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
"""Suffixes such as ".0" that a plugin appends to a node's name for the conversions that it inserts."""


def facts_about_model(model: Model) -> ModelFacts:
    """Return the format, opsets and file hashes that identify a model; unreadable files are left out."""
    opsets = [f"{domain or 'ai.onnx'} {version}" for domain, version in model.opset_imports.items()]
    if not opsets:
        names = {str(node.opset) for node in model.walk() if node.opset is not None}
        opsets = sorted(names, key=lambda name: (len(name), name))
    files = list[tuple[str, int, str]]()
    for path in (model.path, *(beside for beside, _ in files_beside(model.path))):
        with suppress(OSError):
            files.append((path, os.path.getsize(path), sha256_of(path)))
    return ModelFacts(model.path, FORMATS[model.format].title, tuple(opsets), tuple(files))


def is_one_node(model: Model) -> bool:
    """Return whether a model consists of a scatter node and its inputs."""
    with suppress(Error):
        flow = dataflow_of(model)
        links = [flow.link(output.key) for output in flow.outputs]
        if len(links) != 1 or links[0] is None or links[0].node.type not in scatter_types(model.domain):
            return False
        inputs = [key for key in links[0].inputs if key is not None]
        return all(flow.link(key) is None or flow.constant(key) is not None for key in inputs)
    return False


def nodes_by_tap(model: Model) -> dict[Tap, ScatterNode]:
    """Return the scatter node of each tap, in bodies too.

    Nodes whose opset does not define them are left out.
    """
    facts, nodes = Facts(), {}
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None and lookup.spec is not None:
            nodes[tap_of(node, model.format)] = ScatterNode(node, lookup, facts)
    return nodes


def output_name(scatter: ScatterNode) -> str:
    """Return the name of a scatter node's first output tensor, or the node's name if the tensor has none."""
    name = scatter.node.outputs[0].name if scatter.node.outputs else ""
    return name or scatter.node.name


def has_states(model: Model) -> bool:
    """Return whether a model has states: variables whose values one inference passes to the next."""
    ops = (find_general(node.domain, node.type) for node in model.graph.walk())
    return any(op is not None and op.state == "written" for op in ops)


def tolerance_names(scatter: ScatterNode) -> tuple[str, ...]:
    """Return the names under which a user may set the tolerance of a node."""
    return output_name(scatter), scatter.node.name, scatter.node.scope


def inference_precision(facts: Sequence[NodeFacts]) -> str:
    """Return the coarsest precision in which a runtime executed any node, such as "f16"; "" if unknown."""
    precisions = {node.precision.lower() for node in facts} & PRECISION_BITS.keys()
    return coarsest(*sorted(precisions)) if precisions else ""


def facts_about(facts: Sequence[NodeFacts], scopes: Mapping[str, str]) -> tuple[NodeFacts, ...]:
    """Return the facts about some nodes, renamed from the runtime's names to scopes of the model.

    A conversion that a plugin inserts beside node "a" is called "a.0". If there are facts about "a" and
    "a.0", those with the shorter suffix are returned.

    Args:
        facts: about all nodes that the runtime has executed.
        scopes: the scopes of the requested nodes, by every name that the runtime may use for them.
    """
    best: dict[str, tuple[int, int]] = {}
    for number, fact in enumerate(facts):
        for original in fact.originals:
            name = original if original in scopes else _SUFFIX.sub("", original)
            if name in scopes:
                rank = (len(original) - len(name), number)
                best[scopes[name]] = min(best.get(scopes[name], rank), rank)
    chosen: dict[int, list[str]] = {}
    for scope, (_, number) in best.items():
        chosen.setdefault(number, []).append(scope)
    return tuple(replace(facts[number], originals=tuple(chosen[number])) for number in sorted(chosen))
