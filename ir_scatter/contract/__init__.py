"""Derives the contract of a model: the conditions on its inputs for which every scatter index is legal.

    result = make_contract(read("decoder.xml"), ["position in 0..15"])
    print(result)                    proofs for each node, and conditions on inputs
    result.check(feeds)              raises ValueError for feeds that break a condition

Everything is proven from the file, for all legal inputs. The model is run only to confirm a *witness*: inputs
for which an index is illegal.
"""

from collections.abc import Sequence
from pathlib import Path

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.symbolic.linear import Knowledge, Linear, of_symbol
from ir_scatter.analysis.symbolic.proofs import IndexProofs, is_admitted
from ir_scatter.analysis.symbolic.targets import Breach, IndexProof, ProofStatus, TargetProofs, prove_node
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import as_texts, simplified
from ir_scatter.contract.conditions import ContractCondition
from ir_scatter.contract.result import Claim, Contract, InputContract, NodeContract
from ir_scatter.contract.witness import Witnesses
from ir_scatter.core.model import Model
from ir_scatter.core.words import listed
from ir_scatter.reading import read

__all__ = ["FOR_ALL", "Claim", "Contract", "InputContract", "NodeContract", "make_contract"]

FOR_ALL = "are out of range for all inputs"
"""The breach of a node whose indices no input keeps in range."""


def make_contract(model: "Model | str | Path", given: Sequence[str] = ()) -> Contract:
    """Derive the contract of a model.

    Args:
        model: a model, or the path of one.
        given: conditions that all inputs satisfy, such as "position in 0..15"; the syntax is described in
            `analysis.symbolic.givens`.

    Returns:
        For each scatter node, whether its indices are in range and its targets distinct; and conditions on
        inputs.

    Raises:
        UnreadableModel: the model cannot be read.
        BadGiven: a text in `given` cannot be read, names no input, or contradicts the model or another text.
    """
    loaded = model if isinstance(model, Model) else read(model)
    facts = Facts(model=loaded, given=given)
    proofs = facts.result_of(IndexProofs)
    witnesses = Witnesses(loaded, proofs.exact, proofs.givens)
    nodes, requirements = list[NodeContract](), list[ContractCondition]()
    for scatter in scatter_nodes(loaded, facts):
        if scatter.lookup.spec is None:
            continue
        node, required = _node_contract(scatter, proofs, witnesses)
        nodes.append(node)
        requirements += required
    return Contract(
        loaded.path, tuple(given), tuple(nodes), _by_input(requirements), _sizes(requirements),
        tuple(requirements),
    )  # fmt: skip


def _node_contract(
    scatter: ScatterNode, index_proofs: IndexProofs, witnesses: Witnesses
) -> tuple[NodeContract, list[ContractCondition]]:
    """Return the contract of one node, and the conditions on inputs under which its indices are in range."""
    proofs, givens = index_proofs.of(scatter), index_proofs.givens
    walkers = dict.fromkeys(("range", "distinct"), index_proofs.exact)
    if ProofStatus.UNKNOWN in {proofs.range.status, proofs.distinct.status}:
        proofs, walkers = _with_equalities(proofs, scatter, index_proofs)
    walker = walkers["range"]
    witness = None
    in_range, breach = proofs.range, index_proofs.breach(scatter)
    broken = [each for each in in_range.conditions if is_admitted(each, givens)]
    if in_range.status is ProofStatus.CONDITIONAL and broken:
        witness = next(filter(None, [witnesses.breaking(each, scatter) for each in broken]), None)
        if witness is not None or (breach is not None and breach.is_certain):
            in_range = IndexProof(ProofStatus.REFUTED, in_range.because, in_range.conditions)
    elif in_range.status is ProofStatus.REFUTED:
        witness = witnesses.failing_at(scatter)
    requirements = [
        ContractCondition.of(condition, walker, scatter.node.scope)
        for condition in in_range.conditions
        if in_range.status is not ProofStatus.UNKNOWN
    ]
    location = scatter.node.location
    assert scatter.lookup.spec is not None
    node = NodeContract(
        scatter.node.name, location.scope, str(scatter.lookup.spec.key), location.line,
        _claim(in_range, walker, witness), _claim(proofs.distinct, walkers["distinct"], None), location,
        _breach(in_range, breach, walker),
    )  # fmt: skip
    return node, requirements


def _breach(proof: IndexProof, breach: Breach | None, walker: Walker) -> str:
    """Return how inputs that satisfy the user's conditions break an index; "" if it is not certain."""
    if proof.status is not ProofStatus.REFUTED:
        return ""
    if breach is not None:
        return breach.text.removeprefix("may ")
    conditions = listed(as_texts(proof.conditions, walker))
    return f"may be out of range, expected {conditions}" if conditions else FOR_ALL


def _equalities(walker: Walker) -> list[Linear]:
    """Return the conditions that dimensions of the same name have the same size.

    Only dimensions count that proofs have assumed to be equal.
    """
    result = []
    for symbol, first in walker.merged.items():
        gap = of_symbol(symbol).minus(of_symbol(first))
        result += [gap, gap.times(-1)]
    return result


def _with_equalities(
    proofs: TargetProofs, scatter: ScatterNode, index_proofs: IndexProofs
) -> tuple[TargetProofs, dict[str, Walker]]:
    """Return proofs that may use equal sizes for dimensions of the same name where they are unknown without.

    As runtimes do not check that, it becomes a condition of the proof. Also return the walker of each proof.
    """
    merging = index_proofs.merging
    again = prove_node(merging, scatter)
    equalities = tuple(_equalities(merging))
    claims, walkers = {}, {}
    for claim in ("range", "distinct"):
        before, after = getattr(proofs, claim), getattr(again, claim)
        claims[claim], walkers[claim] = before, index_proofs.exact
        helps = after.status in {ProofStatus.PROVEN, ProofStatus.CONDITIONAL}
        if before.status is ProofStatus.UNKNOWN and helps and equalities:
            conditions = tuple(dict.fromkeys((*after.conditions, *equalities)))
            claims[claim] = IndexProof(ProofStatus.CONDITIONAL, after.because, conditions, after.texts)
            walkers[claim] = merging
    return TargetProofs(claims["range"], claims["distinct"], proofs.non_negative), walkers


def _claim(proof: IndexProof, walker: Walker, witness: "dict[str, object] | None") -> Claim:
    texts = (*as_texts(proof.conditions, walker), *proof.texts)
    return Claim(str(proof.status.value), proof.because, texts, witness)


def _by_input(requirements: Sequence[ContractCondition]) -> tuple[InputContract, ...]:
    """Group the conditions by the inputs in them."""
    conditions: dict[str, list[ContractCondition]] = {}
    for requirement in requirements:
        for name in requirement.inputs:
            conditions.setdefault(name, []).append(requirement)
    result = []
    for name, required in conditions.items():
        walker = required[0].walker
        texts = as_texts(strictest([each.condition for each in required], walker), walker)
        result.append(InputContract(name, tuple(texts)))
    return tuple(result)


def strictest(conditions: Sequence[Linear], walker: Walker) -> list[Linear]:
    """Return the conditions that do not follow from the others."""
    kept = [*dict.fromkeys(simplified(each, walker) for each in conditions)]
    for condition in list(kept):
        rest = [each for each in kept if each is not condition]
        knowledge = Knowledge(walker.knowledge)
        for further in rest:
            knowledge.add(further)
        if knowledge.proves(condition):
            kept = rest
    return kept


def _sizes(requirements: Sequence[ContractCondition]) -> tuple[str, ...]:
    """Return the conditions on sizes alone, as text."""
    sizes = [each for each in requirements if not each.inputs]
    by_walker: dict[int, list[ContractCondition]] = {}
    for each in sizes:
        by_walker.setdefault(id(each.walker), []).append(each)
    texts = [
        text
        for group in by_walker.values()
        for text in as_texts(strictest([each.condition for each in group], group[0].walker), group[0].walker)
    ]
    return tuple(dict.fromkeys(texts))
