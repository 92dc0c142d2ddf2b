"""The conversion of a model: selects nodes, targets and the opset, then rewrites and verifies each node."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter.analysis.conditions import Condition, judge
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.signature import signature
from ir_scatter.compare.phases import in_turn
from ir_scatter.convert.conversion import DEFAULT_CASES, Conversion, Converted, Refused, Verified
from ir_scatter.convert.output import source_files
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Severity
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import ONNX, OPENVINO, Function, Model, Node, OpKey
from ir_scatter.core.parameters import Invocation, Parameter
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import counted
from ir_scatter.ops.lookup import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import OpSpec
from ir_scatter.reading import read
from ir_scatter.rewrites import all_rewrites, leads_to
from ir_scatter.rewrites.base import Promises
from ir_scatter.rewrites.existing_guards import is_needed
from ir_scatter.rewrites.guard import NAMES, Guard, may_exceed_32_bits
from ir_scatter.rewrites.refusals import Reason, Refusal

if TYPE_CHECKING:
    from ir_scatter.convert.functions import InlinedModel
    from ir_scatter.portability import Portability

_DIALECTS = {ONNX: "ONNX", OPENVINO: "OpenVINO"}


class _Candidate(NamedTuple):
    """A scatter node as written in the file; a node of a function counts once for all calls.

    `scatters` has one view of the node for each signature of the function's calls. If these differ, the first
    view contains only the facts that hold for all.
    """

    node: Node
    scatters: tuple[ScatterNode, ...]

    @property
    def spec(self) -> OpSpec | None:
        """The node's operator version; None if its opset does not contain the operator."""
        return self.scatters[0].lookup.spec

    @property
    def key(self) -> OpKey | None:
        spec = self.spec
        return None if spec is None else spec.key


_Task: TypeAlias = tuple[_Candidate, OpSpec | None, int | None]
"""A node, its target operator version (None keeps it), and the opset of its new nodes (None in an IR)."""


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
    at_any_cost: bool = False,
    guard: str | None = None,
    given: Sequence[str] = (),
) -> Conversion:
    """Rewrite scatter nodes to equivalent ones; see `ir_scatter.convert` for the arguments."""
    for text in assume:
        if text not in list(Condition):
            guess = did_you_mean(text, Condition)
            raise UsageError(f"{text!r} cannot be assumed{guess}, expected one of {', '.join(Condition)}")
    if guard is not None and guard not in list(Guard):
        raise UsageError(
            f"{guard!r} is not a guard{did_you_mean(guard, Guard)}, expected one of {', '.join(Guard)}"
        )
    promises = Promises(frozenset(map(Condition, assume)), keep_negative_indices)
    converted, refused, verified = list[Converted](), list[Refused](), list[Verified]()
    costs = list[str]()
    proofs: dict[Rewritten, int | Refusal] = {}  # each form is verified once, for all nodes that it replaces
    with collector_paused():
        source = read(model) if isinstance(model, str | Path) else model
        with suppress(UnreadableModel):  # reported when the model is written
            source_files(source)  # check that the files to copy later are still unchanged
        portability: Portability | None = None
        inlined: InlinedModel | None = None
        if targets:
            # These modules load the records of all devices.
            from ir_scatter.convert.around import (
                ReducedRisks,
                avoid_defects,
                reduce_risks,
                unguarded_warnings,
            )
            from ir_scatter.convert.functions import inline_functions, refuses_functions
            from ir_scatter.convert.risks import accepted_illegal, risks_of
            from ir_scatter.portability import portability_to

            portability = portability_to(tuple(targets))
            without = inline_functions(source) if refuses_functions(portability) else None
            if isinstance(without, Refused):
                refused.append(without)
            elif without is not None:
                inlined, source = without, without.model
        elif at_any_cost:
            raise UsageError(
                f"{Parameter('at_any_cost')} goes with {Parameter('targets')}, expected a device"
            )
        rewriter = Rewriter(source, promises, given)
        origins = {} if inlined is None else inlined.origins
        everywhere, tasks, final = _candidates(rewriter, sources, nodes, origins), list[_Task](), None
        lessened: dict[int, ReducedRisks] = {}
        if portability is not None and to is None:
            if opset is not None:
                raise UsageError(
                    "known defects alone do not change the opset, expected a target operator as well"
                )
            tasks = _surely_met(everywhere, portability)
            surely = {id(candidate.node) for candidate, _, _ in tasks}
            for candidate in everywhere:
                if candidate.spec is None or id(candidate.node) in surely:
                    continue
                own_opset = _opset_of(candidate)
                better = reduce_risks(
                    rewriter, portability, candidate.scatters, _targets(), own_opset, at_any_cost=at_any_cost
                )
                if better is not None:
                    lessened[id(candidate.node)] = better
                    is_settled = better.rewritten is not None or better.refusal is not None
                    tasks += [(candidate, better.row, own_opset)] if is_settled else []
        elif to is not None or opset is not None or guard is None:
            tasks, final = _plan(rewriter, to, everywhere, opset, is_explicit=bool(sources or nodes))
        entering = [
            candidate
            for candidate in everywhere
            if to is None and final and _enters(rewriter, candidate, final)
        ]
        tasks = [task for task in tasks if task[0] not in entering]
        guard_kind = Guard(guard or Guard.CLAMP) if guard or portability is not None else None
        exposed = [
            candidate
            for candidate in everywhere
            if guard_kind is not None and _is_exposed(candidate, guard_kind)
        ]
        if guard is not None:
            planned = {id(candidate.node) for candidate, _, _ in tasks}
            tasks += [
                (candidate, None, final or _opset_of(candidate))
                for candidate in exposed
                if id(candidate.node) not in planned
            ]
        for candidate, target, own_opset in in_turn(tasks, "nodes"):
            node, scatters = candidate
            own_guard = guard_kind if guard is not None and candidate in exposed else None
            better = lessened.get(id(node))
            outcome: Rewritten | Refusal | None
            if better is not None and better.refusal is not None:
                target, outcome = better.row, better.refusal
            elif better is not None and better.rewritten is not None and own_guard is None:
                target, outcome = better.row, better.rewritten
            elif portability is not None and candidate.spec is not None:
                is_free = to is None and (target is None or target.key == candidate.key)
                rows = [None, *_targets()] if is_free else [target]
                target, outcome = avoid_defects(rewriter, portability, scatters, rows, own_opset, own_guard)
            else:
                outcome = rewriter.rewrite(scatters, target, own_opset, own_guard)
                target = target or candidate.spec
            if isinstance(outcome, Rewritten) and verify > 0:
                from ir_scatter.convert.proof import prove

                if outcome not in proofs:
                    proofs[outcome] = prove(
                        rewriter, outcome.seen or scatters[0], outcome, own_opset, verify, seed
                    )
                proof = proofs[outcome]
                if isinstance(proof, Refusal):
                    outcome = proof
                else:
                    verified.append(Verified(node, proof))
            if better is not None and better.price is not None and isinstance(outcome, Rewritten):
                costs.append(
                    f"{node.scope}: {', '.join(rewrite.name for rewrite in outcome.way)}: {better.price}"
                )
            old_key, new_key = candidate.key, target.key if target else candidate.key
            if isinstance(outcome, Refusal):
                refused.append(
                    Refused(
                        outcome.code, outcome.message, node.name, node.location, old_key, new_key, node.type
                    )
                )
            elif outcome is not None and new_key is not None:
                names = tuple([rewrite.name for rewrite in outcome.way])
                converted.append(
                    Converted(node, old_key, new_key, names, outcome.assumptions, outcome.fragment)
                )
        move = None
        if final is not None:
            from ir_scatter.convert.opset.move import plan_move

            # Converted nodes already belong to the new opset; others are converted one by one.
            settled_nodes = [
                *(candidate.node for candidate in converted),
                *(candidate.node for candidate in entering),
            ]
            move = plan_move(source, final, ignore=settled_nodes)
    refused_scopes = {candidate.location.scope for candidate in refused}
    for scope, type, reason in move.obstacles if move is not None else ():
        message = reason if reason.startswith(type) else f"{type}: {reason}"
        place = Location(source.path, scope=scope)
        if scope not in refused_scopes:
            refused.append(Refused(Reason.OPSET, message, scope.rpartition("/")[2], place, type=type))
    warnings: tuple[Diagnostic, ...] = ()
    if portability is not None:
        settled = {candidate.node.scope for candidate in converted}
        warnings = accepted_illegal(source, portability, frozenset(settled), given)
        if guard is None:
            warnings += unguarded_warnings(
                portability,
                [candidate.scatters[0] for candidate in exposed if candidate.spec is not None],
                settled,
            )
    guarded = {
        id(candidate.node)
        for candidate in converted
        if not set(NAMES.values()).isdisjoint(candidate.rewrites)
    }
    if source.domain == OPENVINO or any(target.startswith(OPENVINO) for target in _runners_of(portability)):
        warnings += _cut_warnings(
            [candidate.scatters[0] for candidate in exposed if id(candidate.node) in guarded]
        )
    conversion = Conversion(
        source,
        tuple(converted),
        tuple(refused),
        tuple(verified),
        move,
        seed,
        cases=verify,
        warnings=warnings,
        costs=tuple(costs),
        inlined={} if inlined is None else inlined.calls,
        inlined_from=origins,
    )
    if portability is None:
        return conversion
    prices = {
        candidate.node.scope: str(better.price)
        for candidate in everywhere
        if (better := lessened.get(id(candidate.node))) is not None and better.rewritten is None
    }
    return replace(conversion, risks=risks_of(conversion, portability, prices, given))


def _runners_of(portability: "Portability | None") -> list[str]:
    return [] if portability is None else [target.runner for target in portability.targets]


def _cut_warnings(scatters: Sequence[ScatterNode]) -> tuple[Diagnostic, ...]:
    """Return at most one warning that runtimes may truncate indices to 32 bits before a guard limits them."""
    wide = list(filter(may_exceed_32_bits, scatters))
    if not wide:
        return ()
    scatter, code = wide[0], Reason.CUT_INDICES
    assert scatter.indices is not None
    rest = f"; {counted(len(wide) - 1, 'other node')} as well" if len(wide) > 1 else ""
    port, type = scatter.indices.port.name, scatter.indices.element_type
    type_name = "of unknown type" if type is None else type.name
    return (
        Diagnostic(
            code,
            code.rule,
            Severity.WARNING,
            f"{port} are {type_name}, and OpenVINO's CPU and GPU plugins compute them in 32 bits{rest}",
            scatter.node.location,
            NodeRef(scatter.node.name, scatter.lookup.type, scatter.spec.key.version),
            port,
            scatter.indices.index,
            help="there the guard works for indices from -2147483648 to 2147483647; "
            "others are truncated before it, and may become legal",
        ),
    )


def _surely_met(candidates: Sequence[_Candidate], portability: "Portability") -> list[_Task]:
    """Return tasks for the nodes that a known defect affects for all inputs; targets are chosen later."""
    return [
        (candidate, candidate.spec, _opset_of(candidate))
        for candidate in candidates
        if candidate.spec is not None and any(map(portability.surely_met, candidate.scatters))
    ]


def _opset_of(candidate: _Candidate) -> int | None:
    """Return the opset of a node in ONNX; None in an IR."""
    return candidate.node.opset if isinstance(candidate.node.opset, int) else None


def _enters(rewriter: Rewriter, candidate: _Candidate, opset: int) -> bool:
    """Return whether the node's operator exists only in a newer opset, where the node is legal unchanged.

    Then the model declares too low an opset, and moving it makes the node legal.
    """
    lookup = find(candidate.node.domain, candidate.node.type, opset)
    if candidate.spec is not None or lookup is None or lookup.spec is None:
        return False
    diagnostics = [
        diagnostic
        for scatter in candidate.scatters
        for diagnostic in rewriter.check.node(
            ScatterNode(scatter.node, lookup, scatter.facts), scatter.node.graph
        )
    ]
    is_known = all(scatter.lookup.is_known_opset for scatter in candidate.scatters)
    return is_known and all(diagnostic.severity is not Severity.ERROR for diagnostic in diagnostics)


def _is_exposed(candidate: _Candidate, guard: Guard) -> bool:
    """Return whether a guard may change a result of a node; True for an operator without a specification."""
    return candidate.spec is None or any(is_needed(scatter, guard) for scatter in candidate.scatters)


def _plan(
    rewriter: Rewriter,
    to: str | None,
    candidates: Sequence[_Candidate],
    opset: int | None,
    *,
    is_explicit: bool,
) -> tuple[list[_Task], int | None]:
    """Return the tasks for scatter nodes, and the new opset of an ONNX model (None to keep it)."""
    model = rewriter.model
    if opset is not None and model.domain != ONNX:
        raise UsageError("an opset can be chosen for ONNX models only: each layer of an IR has its own")
    rows = _find_targets(model, to) if to is not None else None
    specs = {candidate.key: candidate.spec for candidate in candidates}
    rows_by_key: dict[OpKey | None, Sequence[OpSpec] | None] = {}  # None: these nodes stay unchanged
    for key, spec in specs.items():
        if rows is not None:
            is_meant = is_explicit or spec is None or any(leads_to(spec.key, row.key) for row in rows)
            rows_by_key[key] = rows if is_meant else None
        else:  # a deprecated operator becomes its successor
            successor = spec.deprecated_by[:2] if spec is not None and spec.deprecated_by else None
            rows_by_key[key] = next((_family(row) for row in _targets() if row.key[:2] == successor), None)
    chosen = [candidate for candidate in candidates if rows_by_key[candidate.key] is not None]
    if model.domain != ONNX:
        return [(candidate, (rows_by_key[candidate.key] or ())[-1], None) for candidate in chosen], None

    if opset is not None and not 1 <= opset <= LATEST_OPSET:
        newer = ", the newest that was checked" if opset > LATEST_OPSET else ""
        raise UsageError(f"the opset is {opset}, expected 1 to {LATEST_OPSET}{newer}")
    current, final = model.opset_imports.get(ONNX), opset
    possible = list({row.key: row for several in rows_by_key.values() for row in several or ()}.values())
    opsets = {number for row in possible for number in row.opsets if isinstance(number, int)}
    if opset is not None and opsets and opset not in opsets:
        names = " and ".join(_names(possible))
        raise UsageError(f"opset {opset} has no {names}, expected opset {min(opsets)} to {max(opsets)}")
    if opset is None and current is not None and opsets and current not in opsets:
        final = min(opsets, key=lambda number: (abs(number - current), number))
        if final > current:
            from ir_scatter.convert.opset.move import lowest_opset

            final = lowest_opset(model, final, ignore=[candidate.node for candidate in chosen]) or final
    if current is None or final == current:
        final = None
    tasks = list[_Task]()
    for candidate in (
        chosen if final is None else candidates
    ):  # another opset may change the version of any node
        own_opset, several = candidate.node.opset if final is None else final, rows_by_key[candidate.key]
        if not isinstance(own_opset, int):
            continue
        if several is None:
            lookup = find(candidate.node.domain, candidate.node.type, own_opset)
            several = [lookup.spec] if lookup is not None and lookup.spec is not None else []
        target = next((row for row in several if own_opset in row.opsets), several[-1] if several else None)
        if target is not None and target.key != candidate.key:
            tasks.append((candidate, target, own_opset))
    return tasks, final


# The scatter nodes of a model


def _candidates(
    rewriter: Rewriter, sources: Collection[str], nodes: Sequence[str], origins: Mapping[str, str]
) -> list[_Candidate]:
    """Return the scatter nodes with these operators and names; an empty collection selects all."""
    model = rewriter.model
    candidates = [
        _Candidate(scatter.node, (scatter,)) for scatter in scatter_nodes(model.graph, rewriter.check.facts)
    ]
    for function in model.functions:
        candidates += _of_function(rewriter, function)
    if nodes:
        candidates = _matching(candidates, nodes, origins)
    if sources:
        keys = _find_sources(model, sources)
        candidates = [candidate for candidate in candidates if candidate.key in keys]
    return candidates


def _of_function(rewriter: Rewriter, function: Function) -> Iterator[_Candidate]:
    types = scatter_types(rewriter.model.domain)
    walks = [list(instance.walk(types)) for instance in function.instances]
    for number, node in enumerate(function.definition.walk(types)):
        definition = rewriter.scatter(node)
        uses = [rewriter.scatter(walk[number]) for walk in walks if number < len(walk)]
        scatters = [scatter for scatter in uses if scatter is not None]
        if definition is None:
            continue
        if not scatters or any(_looks(scatter) != _looks(scatters[0]) for scatter in scatters):
            scatters.insert(0, definition)
        yield _Candidate(node, tuple(scatters))


def _looks(scatter: ScatterNode) -> object:
    """Return a key of the facts that decide about the new form; unique if the node belongs to no group."""
    key = signature(scatter)
    if key is None:
        return scatter
    array, proven = scatter.index_array, [judge(condition, scatter) for condition in Condition]
    return key, None if array is None else array.tobytes(), proven


def _matching(
    candidates: Sequence[_Candidate], patterns: Sequence[str], origins: Mapping[str, str]
) -> list[_Candidate]:
    """Return the nodes that match a pattern, by their exact name, or else as a glob."""
    names = [_names_of(candidate.node, origins) for candidate in candidates]
    chosen: set[int] = set()
    for pattern in patterns:
        named = [at for at, both in enumerate(names) if pattern in both]
        named = named or [
            at for at, both in enumerate(names) if any(fnmatchcase(name, pattern) for name in both)
        ]
        if not named:
            guess = did_you_mean(pattern, [name for both in names for name in both])
            lister = Invocation("inspect", {})
            raise UsageError(f"no scatter node is named {pattern!r}{guess}; `{lister}` lists them")
        chosen.update(named)
    return [candidates[at] for at in sorted(chosen)]


def _names_of(node: Node, origins: Mapping[str, str]) -> tuple[str, ...]:
    origin = origins.get(node.scope)
    return node.name, node.scope, *((origin, origin.rpartition("/")[2]) if origin is not None else ())


# Operators by the names that users write


@cache
def _targets() -> tuple[OpSpec, ...]:
    """Return the operator versions that are targets of rewrites."""
    return tuple({rewrite.target.key: rewrite.target for rewrite in all_rewrites()}.values())


def _find_targets(model: Model, text: str) -> tuple[OpSpec, ...]:
    """Return the operator versions with a name, oldest first; in an IR only the newest."""
    rows = [spec for spec in _targets() if _is_named(spec.key, text)]
    fitting = [spec for spec in rows if spec.key.domain == model.domain]
    if fitting:
        fitting.sort(key=lambda row: row.key.version)
        return tuple(fitting if model.domain == ONNX else fitting[-1:])
    problem = f"is not a target in {_DIALECTS[model.domain]}" if rows else "is no target"
    keys = [spec.key for spec in _targets() if spec.key.domain == model.domain]
    raise _no_operator(text, problem, keys, is_one=any(_is_named(key, text) for key in SPECS))


def _find_sources(model: Model, texts: Collection[str]) -> frozenset[OpKey]:
    keys = [key for key in SPECS if key.domain == model.domain]
    keys_of_texts: set[OpKey] = set()
    for text in texts:
        named = {key for key in keys if _is_named(key, text)}
        if not named:
            raise _no_operator(text, f"is not a scatter operator of {_DIALECTS[model.domain]}", keys)
        keys_of_texts |= named
    return frozenset(keys_of_texts)


def _no_operator(text: str, problem: str, keys: Collection[OpKey], *, is_one: bool = False) -> UsageError:
    names = ", ".join(map(str, sorted(keys)))
    words = dict.fromkeys(word for key in sorted(keys) for word in (key.type, str(key)))
    guess = "" if is_one else did_you_mean(text, words)
    return UsageError(f"{text!r} {problem}{guess}, expected one of {names}, or one without its version")


def _is_named(key: OpKey, text: str) -> bool:
    return text.lower() in {str(key).lower(), key.type.lower()}


def _names(rows: Sequence[OpSpec]) -> list[str]:
    """Return the names of operator versions; only the type if all its versions are included."""
    keys = {row.key for row in rows}
    is_whole = [keys >= {member.key for member in _family(row)} for row in rows]
    names = [row.key.type if whole else str(row.key) for row, whole in zip(rows, is_whole, strict=True)]
    return list(dict.fromkeys(names))


def _family(spec: OpSpec) -> tuple[OpSpec, ...]:
    lookup = find(spec.key.domain, spec.key.type, spec.opsets[0])
    assert lookup is not None
    return lookup.family
