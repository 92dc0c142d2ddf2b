"""The contract of a model: what its inputs must satisfy so that every index of its scatter nodes is legal.

    result = make_contract(read("decoder.xml"), ["position in 0..15"])
    print(result)                    what is proven, and what inputs must satisfy
    result.check(feeds)              raises ValueError for a feed that breaks it

Everything is proven from the file alone, for all legal inputs; nothing is run, except to confirm a witness.
"""

from collections.abc import Sequence
from pathlib import Path

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.symbolic.givens import Given
from ir_scatter.analysis.symbolic.linear import Knowledge, Linear, of_symbol
from ir_scatter.analysis.symbolic.proofs import IndexProofs, is_admitted
from ir_scatter.analysis.symbolic.targets import IndexProof, ProofStatus, TargetProofs, prove_node, reach_of
from ir_scatter.analysis.symbolic.walker import Walker
from ir_scatter.analysis.symbolic.words import as_texts, rounded
from ir_scatter.contract.conditions import ContractCondition
from ir_scatter.contract.result import Claim, Contract, InputContract, NodeContract
from ir_scatter.contract.witness import Witnesses
from ir_scatter.core.model import Model
from ir_scatter.core.words import listed
from ir_scatter.reading import read

__all__ = ["Claim", "Contract", "InputContract", "NodeContract", "make_contract"]


def make_contract(model: "Model | str | Path", given: Sequence[str] = ()) -> Contract:
    """Return the contract of a model.

    Args:
        model: a model, or the path of one.
        given: what is known of its inputs, as `analysis.symbolic.givens` reads it: "position in 0..15".

    Raises:
        UnreadableModel: the model cannot be read.
        BadGiven: a text in `given` cannot be read, names no input, or cannot hold.
    """
    loaded = model if isinstance(model, Model) else read(model)
    facts = Facts(model=loaded, given=given)
    proofs = facts.result_of(IndexProofs)
    exact, merging, givens = proofs.exact, proofs.merging, proofs.givens
    witnesses = Witnesses(loaded, exact)
    nodes, requirements = list[NodeContract](), list[ContractCondition]()
    for scatter in scatter_nodes(loaded, facts):
        if scatter.lookup.spec is None:
            continue
        node, required = _node_contract(scatter, exact, merging, givens, witnesses)
        nodes.append(node)
        requirements += required
    return Contract(
        loaded.path, tuple(given), tuple(nodes), _by_input(requirements), _sizes(requirements),
        tuple(requirements),
    )  # fmt: skip


def _node_contract(
    scatter: ScatterNode, exact: Walker, merging: Walker, givens: Sequence[Given], witnesses: Witnesses
) -> tuple[NodeContract, list[ContractCondition]]:
    """Return the contract of one node, and what it requires of inputs."""
    walker, proofs = exact, prove_node(exact, scatter)
    equalities: list[Linear] = []
    if _is_open(proofs):
        again = prove_node(merging, scatter)
        if _rank(again) < _rank(proofs):
            equalities = _equalities(merging)
            walker, proofs = merging, _with_equalities(again, equalities, proofs)
    witness = None
    in_range = proofs.range
    broken = [each for each in in_range.conditions if is_admitted(each, givens)]
    if in_range.status is ProofStatus.CONDITIONAL and broken:
        witness = next(filter(None, map(witnesses.breaking, broken)), None)
        if witness is not None:
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
        _claim(in_range, walker, witness), _claim(proofs.distinct, walker, None), location,
        _breach(scatter, in_range, broken, walker),
    )  # fmt: skip
    return node, requirements


def _breach(scatter: ScatterNode, proof: IndexProof, admitted: Sequence[Linear], walker: Walker) -> str:
    """Return how inputs that are given break an index; "" if it is not certain that some do."""
    if proof.status is ProofStatus.REFUTED and not proof.conditions:
        return "are out of range for all inputs"
    reach = reach_of(walker, scatter) if admitted else ""
    if proof.status is ProofStatus.REFUTED:
        conditions = listed(as_texts(proof.conditions, walker))
        return reach.removeprefix("may ") or f"may be out of range, expected {conditions}"
    return reach if reach.startswith("reach") else ""


def _is_open(proofs: TargetProofs) -> bool:
    return not all(proof.status is ProofStatus.PROVEN for proof in (proofs.range, proofs.distinct))


_ORDER = {ProofStatus.PROVEN: 0, ProofStatus.CONDITIONAL: 1, ProofStatus.REFUTED: 1, ProofStatus.UNKNOWN: 2}


def _rank(proofs: TargetProofs) -> int:
    return _ORDER[proofs.range.status] + _ORDER[proofs.distinct.status]


def _equalities(walker: Walker) -> list[Linear]:
    """Return the conditions that dimensions of one name have one size, for all that were taken for one."""
    result = []
    for symbol, first in walker.merged.items():
        gap = of_symbol(symbol).minus(of_symbol(first))
        result += [gap, gap.times(-1)]
    return result


def _with_equalities(
    proofs: TargetProofs, equalities: Sequence[Linear], before: TargetProofs
) -> TargetProofs:
    """Return proofs that rest on equal sizes of dimensions of one name, which runtimes do not demand."""

    def conditional(proof: IndexProof, old: IndexProof) -> IndexProof:
        if proof.status not in {ProofStatus.PROVEN, ProofStatus.CONDITIONAL} or old == proof:
            return old if _ORDER[old.status] <= _ORDER[proof.status] else proof
        conditions = tuple(dict.fromkeys((*proof.conditions, *equalities)))
        return IndexProof(ProofStatus.CONDITIONAL, proof.because, conditions, proof.texts)

    return TargetProofs(
        conditional(proofs.range, before.range), conditional(proofs.distinct, before.distinct),
        proofs.non_negative,
    )  # fmt: skip


def _claim(proof: IndexProof, walker: Walker, witness: "dict[str, object] | None") -> Claim:
    texts = (*as_texts(proof.conditions, walker), *proof.texts)
    return Claim(str(proof.status.value), proof.because, texts, witness)


def _by_input(requirements: Sequence[ContractCondition]) -> tuple[InputContract, ...]:
    """Return what each input must satisfy, by its name."""
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
    kept = [*dict.fromkeys(rounded(each, walker) for each in conditions)]
    for condition in list(kept):
        rest = [each for each in kept if each is not condition]
        knowledge = Knowledge(walker.knowledge)
        for further in rest:
            knowledge.add(further)
        if knowledge.proves(condition):
            kept = rest
    return kept


def _sizes(requirements: Sequence[ContractCondition]) -> tuple[str, ...]:
    """Return the conditions that are about sizes alone."""
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
