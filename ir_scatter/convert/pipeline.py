"""Which nodes are to become what, and in which opset; each of them through rewriting and proof."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter.analysis.conditions import Condition, judge
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.signature import signature
from ir_scatter.convert.conversion import DEFAULT_CASES, Conversion, Converted, Refused, Verified
from ir_scatter.convert.output import source_files
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Severity
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import ONNX, OPENVINO, Function, Model, Node, OpKey
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import counted
from ir_scatter.ops.lookup import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import OpSpec
from ir_scatter.reading import read
from ir_scatter.rewrites import all_rewrites, leads_to
from ir_scatter.rewrites.base import Promises
from ir_scatter.rewrites.guard import NAMES, Guard, is_needed, may_be_cut
from ir_scatter.rewrites.refusals import Reason, Refusal

if TYPE_CHECKING:
    from ir_scatter.portability import Portability

_DIALECTS = {ONNX: "ONNX", OPENVINO: "OpenVINO"}


class _Candidate(NamedTuple):
    """One scatter node as the file holds it, in a function that of the definition.

    It is seen by role once for each signature of the function; where they do not look alike, what is
    known whatever the signature comes first.
    """

    node: Node
    scatters: tuple[ScatterNode, ...]

    @property
    def spec(self) -> OpSpec | None:
        """Its row, None if its opset does not contain it."""
        return self.scatters[0].lookup.spec

    @property
    def key(self) -> OpKey | None:
        spec = self.spec
        return None if spec is None else spec.key


_Task: TypeAlias = tuple[_Candidate, OpSpec | None, int | None]
"""A node, the row that is wanted, None where it stays what it is, and the opset that its new nodes belong to;
None in an IR."""


def convert(
    model: Model | str | Path,
    to: str | None = None,
    *,
    sources: Collection[str] = (),
    nodes: Sequence[str] = (),
    opset: int | None = None,
    assume: Collection[str] = (),
    keep_negative_indices: bool = False,
    verify: int = DEFAULT_CASES,
    seed: int = 0,
    targets: Sequence[str] = (),
    guard: str | None = None,
) -> Conversion:
    """Rewrite scatter nodes into equal forms, as `ir_scatter.convert` says of each argument."""
    for text in assume:
        if text not in list(Condition):
            guess = did_you_mean(text, Condition)
            raise UsageError(f"{text!r} cannot be assumed{guess}, expected one of {', '.join(Condition)}")
    if guard is not None and guard not in list(Guard):
        raise UsageError(
            f"{guard!r} is no guard{did_you_mean(guard, Guard)}, expected one of {', '.join(Guard)}"
        )
    promises = Promises(frozenset(map(Condition, assume)), keep_negative_indices)
    converted, refused, verified = list[Converted](), list[Refused](), list[Verified]()
    proofs: dict[Rewritten, int | Refusal] = {}  # nodes that look the same are proven once
    with collector_paused():
        known = read(model) if isinstance(model, str | Path) else model
        with suppress(UnreadableModel):  # said when the model is written
            source_files(known)  # what is copied later must still be the same as now
        rewriter = Rewriter(known, promises)
        portability: Portability | None = None
        if targets:
            # These load all that is known of devices.
            from ir_scatter.convert.around import around, at_no_cost, may_be_met, not_guarded, shares_memory
            from ir_scatter.portability import portability_to

            portability = portability_to(tuple(targets))
        everywhere, tasks, final = _candidates(rewriter, sources, nodes), list[_Task](), None
        if portability is not None and to is None:
            if opset is not None:
                raise UsageError(
                    "the devices alone change no opset, expected one with an operator to convert to"
                )
            tasks = _met(everywhere, portability)
            surely = {id(candidate.node) for candidate, _, _ in tasks}
            for one in [one for one in everywhere if one.spec is not None and id(one.node) not in surely]:
                better = at_no_cost(rewriter, portability, one.scatters, _targets(), _own(one))
                tasks += [(one, better[0], _own(one))] if better is not None else []
        elif to is not None or opset is not None or guard is None:
            tasks, final = _plan(rewriter, to, everywhere, opset, is_explicit=bool(sources or nodes))
        entering = [one for one in everywhere if to is None and final and _enters(rewriter, one, final)]
        tasks = [task for task in tasks if task[0] not in entering]
        wanted = Guard(guard or Guard.CLAMP) if guard or portability is not None else None
        exposed = [one for one in everywhere if wanted is not None and _is_exposed(one, wanted)]
        if guard is not None:
            others = {id(candidate.node) for candidate, _, _ in tasks}
            tasks += [(one, None, final or _own(one)) for one in exposed if id(one.node) not in others]
        for candidate, target, own in tasks:
            node, scatters = candidate
            own_guard = wanted if guard is not None and candidate in exposed else None
            if portability is not None and candidate.spec is not None:
                is_free = to is None and (target is None or target.key == candidate.key)
                rows = [None, *_targets()] if is_free else [target]
                target, outcome = around(rewriter, portability, scatters, rows, own, own_guard)
            else:
                outcome = rewriter.rewrite(scatters, target, own, own_guard)
                target = target or candidate.spec
            if isinstance(outcome, Rewritten) and verify > 0:
                from ir_scatter.convert.proof import prove

                if outcome not in proofs:
                    proofs[outcome] = prove(rewriter, outcome.seen or scatters[0], outcome, own, verify, seed)
                proof = proofs[outcome]
                if isinstance(proof, Refusal):
                    outcome = proof
                else:
                    verified.append(Verified(node, proof))
            source, became = candidate.key, target.key if target else candidate.key
            if isinstance(outcome, Refusal):
                refused.append(
                    Refused(
                        outcome.code, outcome.message, node.name, node.location, source, became, node.type
                    )
                )
            elif outcome is not None and became is not None:
                names = tuple([rewrite.name for rewrite in outcome.way])
                converted.append(
                    Converted(node, source, became, names, outcome.assumptions, outcome.fragment)
                )
        move = None
        if final is not None:
            from ir_scatter.convert.opset.move import plan_move

            # Nodes that are converted become nodes of the opset by themselves, others move as they are.
            settled_nodes = [*(one.node for one in converted), *(one.node for one in entering)]
            move = plan_move(known, final, ignore=settled_nodes)
    told = {one.location.scope for one in refused}
    for scope, type, reason in move.obstacles if move is not None else ():
        message = reason if reason.startswith(type) else f"{type}: {reason}"
        place = Location(known.path, scope=scope)
        if scope not in told:
            refused.append(Refused(Reason.OPSET, message, scope.rpartition("/")[2], place, type=type))
    warnings: tuple[Diagnostic, ...] = ()
    if portability is not None:
        settled = {one.node.scope for one in converted}
        warnings = may_be_met(known, portability, settled)
        if guard is None:
            warnings += not_guarded(
                portability, [one.scatters[0] for one in exposed if one.spec is not None], settled
            )
    guarded = {id(one.node) for one in converted if not set(NAMES.values()).isdisjoint(one.rewrites)}
    if known.domain == OPENVINO or any(target.startswith(OPENVINO) for target in _runners_of(portability)):
        warnings += _cut([one.scatters[0] for one in exposed if id(one.node) in guarded])
    found = Conversion(
        known, tuple(converted), tuple(refused), tuple(verified), move, seed, cases=verify, warnings=warnings
    )
    if portability is None:
        return found
    return replace(found, warnings=(*warnings, *shares_memory(found, portability)))


def _runners_of(portability: "Portability | None") -> list[str]:
    return [] if portability is None else [target.runner for target in portability.targets]


def _cut(scatters: Sequence[ScatterNode]) -> tuple[Diagnostic, ...]:
    """Return the one warning that indices of guarded nodes may be cut to 32 bits before they are guarded."""
    wide = list(filter(may_be_cut, scatters))
    if not wide:
        return ()
    scatter, code = wide[0], Reason.CUT_INDICES
    assert scatter.indices is not None
    others = f"; {counted(len(wide) - 1, 'other node')} as well" if len(wide) > 1 else ""
    port, type = scatter.indices.port.name, scatter.indices.element_type
    shown = "of unknown type" if type is None else type.name
    return (
        Diagnostic(
            code,
            code.rule,
            Severity.WARNING,
            f"{port} are {shown}, and OpenVINO's CPU and GPU plugins compute them in 32 bits{others}",
            scatter.node.location,
            NodeRef(scatter.node.name, scatter.lookup.type, scatter.spec.key.version),
            port,
            scatter.indices.index,
            help="the guard holds there for indices from -2147483648 to 2147483647; "
            "one beyond is cut before, and may come out in range",
        ),
    )


def _met(candidates: Sequence[_Candidate], portability: "Portability") -> list[_Task]:
    """Return the nodes that a defect certainly meets; what they become is found for each."""
    return [
        (one, one.spec, _own(one))
        for one in candidates
        if one.spec is not None and any(map(portability.surely_met, one.scatters))
    ]


def _own(one: _Candidate) -> int | None:
    """Return the opset of a node in ONNX."""
    return one.node.opset if isinstance(one.node.opset, int) else None


def _enters(rewriter: Rewriter, one: _Candidate, opset: int) -> bool:
    """Tell whether a node that its own opset does not contain is a legal one of another opset as it is.

    It can have been meant as nothing else: the opset of the model was too low for it.
    """
    lookup = find(one.node.domain, one.node.type, opset)
    if one.spec is not None or lookup is None or lookup.spec is None:
        return False
    found = [
        diagnostic
        for scatter in one.scatters
        for diagnostic in rewriter.check.node(
            ScatterNode(scatter.node, lookup, scatter.facts), scatter.node.graph
        )
    ]
    is_known = all(scatter.lookup.is_known_opset for scatter in one.scatters)
    return is_known and all(diagnostic.severity is not Severity.ERROR for diagnostic in found)


def _is_exposed(one: _Candidate, guard: Guard) -> bool:
    """Tell whether a guard may change what a node does; one that cannot be understood is no better."""
    return one.spec is None or any(is_needed(scatter, guard) for scatter in one.scatters)


def _plan(
    rewriter: Rewriter, to: str | None, found: Sequence[_Candidate], opset: int | None, *, is_explicit: bool
) -> tuple[list[_Task], int | None]:
    """Return what becomes of scatter nodes, and the opset that an ONNX model moves to; None if it stays."""
    model = rewriter.model
    if opset is not None and model.domain != ONNX:
        raise UsageError("an opset is chosen for ONNX models only: each layer of an IR has its own")
    rows = _find_targets(model, to) if to is not None else None
    specs = {one.key: one.spec for one in found}
    wanted: dict[OpKey | None, Sequence[OpSpec] | None] = {}  # None for nodes that are not concerned
    for key, spec in specs.items():
        if rows is not None:
            is_meant = is_explicit or spec is None or any(leads_to(spec.key, row.key) for row in rows)
            wanted[key] = rows if is_meant else None
        else:  # a deprecated operator becomes what replaces it
            successor = spec.deprecated_by[:2] if spec is not None and spec.deprecated_by else None
            wanted[key] = next((_family(row) for row in _targets() if row.key[:2] == successor), None)
    meant = [one for one in found if wanted[one.key] is not None]
    if model.domain != ONNX:
        return [(one, (wanted[one.key] or ())[-1], None) for one in meant], None

    if opset is not None and not 1 <= opset <= LATEST_OPSET:
        newer = ", the newest that was checked" if opset > LATEST_OPSET else ""
        raise UsageError(f"the opset is {opset}, expected 1 to {LATEST_OPSET}{newer}")
    current, final = model.opset_imports.get(ONNX), opset
    possible = list({row.key: row for several in wanted.values() for row in several or ()}.values())
    opsets = {number for row in possible for number in row.opsets if isinstance(number, int)}
    if opset is not None and opsets and opset not in opsets:
        names = " and ".join(_names(possible))
        raise UsageError(f"opset {opset} has no {names}, expected opset {min(opsets)} to {max(opsets)}")
    if opset is None and current is not None and opsets and current not in opsets:
        final = min(opsets, key=lambda number: (abs(number - current), number))
        if final > current:
            from ir_scatter.convert.opset.move import lowest_opset

            final = lowest_opset(model, final, ignore=[one.node for one in meant]) or final
    if current is None or final == current:
        final = None
    tasks = list[_Task]()
    for one in meant if final is None else found:  # in another opset a version may change, meant or not
        own, several = one.node.opset if final is None else final, wanted[one.key]
        if not isinstance(own, int):
            continue
        if several is None:
            lookup = find(one.node.domain, one.node.type, own)
            several = [lookup.spec] if lookup is not None and lookup.spec is not None else []
        target = next((row for row in several if own in row.opsets), several[-1] if several else None)
        if target is not None and target.key != one.key:
            tasks.append((one, target, own))
    return tasks, final


# The scatter nodes of a model


def _candidates(rewriter: Rewriter, sources: Collection[str], nodes: Sequence[str]) -> list[_Candidate]:
    """Return the nodes that may be meant, of these operators and with these names, if any are given."""
    model = rewriter.model
    found = [
        _Candidate(scatter.node, (scatter,)) for scatter in scatter_nodes(model.graph, rewriter.check.facts)
    ]
    for function in model.functions:
        found += _of_function(rewriter, function)
    if nodes:
        found = _matching(found, nodes)
    if sources:
        keys = _find_sources(model, sources)
        found = [one for one in found if one.key in keys]
    return found


def _of_function(rewriter: Rewriter, function: Function) -> Iterator[_Candidate]:
    types = scatter_types(rewriter.model.domain)
    walks = [list(instance.walk(types)) for instance in function.instances]
    for number, node in enumerate(function.definition.walk(types)):
        own = rewriter.scatter(node)
        scatters = [rewriter.scatter(walk[number]) for walk in walks if number < len(walk)]
        known = [scatter for scatter in scatters if scatter is not None]
        if own is None:
            continue
        if not known or any(_looks(scatter) != _looks(known[0]) for scatter in known):
            known.insert(0, own)
        yield _Candidate(node, tuple(known))


def _looks(scatter: ScatterNode) -> object:
    """Return what decides the form of a node; what is not known to be like another one is like no other."""
    key = signature(scatter)
    if key is None:
        return scatter
    array, proven = scatter.index_array, [judge(condition, scatter) for condition in Condition]
    return key, None if array is None else array.tobytes(), proven


def _matching(found: Sequence[_Candidate], patterns: Sequence[str]) -> list[_Candidate]:
    """Return the nodes that a pattern names: literally, or else as a glob."""
    names = [(one.node.name, one.node.scope) for one in found]
    chosen: set[int] = set()
    for pattern in patterns:
        named = [at for at, both in enumerate(names) if pattern in both]
        named = named or [
            at for at, both in enumerate(names) if any(fnmatchcase(name, pattern) for name in both)
        ]
        if not named:
            guess = did_you_mean(pattern, [name for both in names for name in both])
            raise UsageError(f"no scatter node is named {pattern!r}{guess}; `ir-scatter inspect` lists them")
        chosen.update(named)
    return [found[at] for at in sorted(chosen)]


# Operators by the names that users write


@cache
def _targets() -> tuple[OpSpec, ...]:
    """Return the rows that some rewrite leads to."""
    return tuple({rewrite.target.key: rewrite.target for rewrite in all_rewrites()}.values())


def _find_targets(model: Model, text: str) -> tuple[OpSpec, ...]:
    """Return the rows that a target names, oldest first; in an IR, which takes any of them, the newest."""
    known = [spec for spec in _targets() if _is_named(spec.key, text)]
    fitting = [spec for spec in known if spec.key.domain == model.domain]
    if fitting:
        fitting.sort(key=lambda row: row.key.version)
        return tuple(fitting if model.domain == ONNX else fitting[-1:])
    what = f"is no target in {_DIALECTS[model.domain]}" if known else "is no target"
    keys = [spec.key for spec in _targets() if spec.key.domain == model.domain]
    raise _no_operator(text, what, keys, is_one=any(_is_named(key, text) for key in SPECS))


def _find_sources(model: Model, texts: Collection[str]) -> frozenset[OpKey]:
    keys = [key for key in SPECS if key.domain == model.domain]
    found: set[OpKey] = set()
    for text in texts:
        named = {key for key in keys if _is_named(key, text)}
        if not named:
            raise _no_operator(text, f"is no scatter operator of {_DIALECTS[model.domain]}", keys)
        found |= named
    return frozenset(found)


def _no_operator(text: str, what: str, keys: Collection[OpKey], *, is_one: bool = False) -> UsageError:
    names = ", ".join(map(str, sorted(keys)))
    words = dict.fromkeys(word for key in sorted(keys) for word in (key.type, str(key)))
    guess = "" if is_one else did_you_mean(text, words)
    return UsageError(f"{text!r} {what}{guess}, expected one of {names}, or one without its version")


def _is_named(key: OpKey, text: str) -> bool:
    return text.lower() in {str(key).lower(), key.type.lower()}


def _names(rows: Sequence[OpSpec]) -> list[str]:
    """Return the names of rows; the type alone if all its versions are among them."""
    keys = {row.key for row in rows}
    is_whole = [keys >= {other.key for other in _family(row)} for row in rows]
    names = [row.key.type if whole else str(row.key) for row, whole in zip(rows, is_whole, strict=True)]
    return list(dict.fromkeys(names))


def _family(spec: OpSpec) -> tuple[OpSpec, ...]:
    lookup = find(spec.key.domain, spec.key.type, spec.opsets[0])
    assert lookup is not None
    return lookup.family
