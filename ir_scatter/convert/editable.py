"""What cannot be edited in place: the nodes that stand in the way, or the file as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ir_scatter.convert.conversion import Conversion, Converted, Refused
from ir_scatter.convert.writing import Files, make_files
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import NotEditable
from ir_scatter.formats.base import IR
from ir_scatter.rewrites.refusals import Reason

_TRIALS = 64
"""How often parts of a conversion are tried: a file with more bad nodes than that finds is refused."""


def with_files(conversion: Conversion, path: Path) -> tuple[Conversion, Files | None]:
    """Return what is to be written, without the nodes that cannot be edited: they are refused.

    Returns:
        The conversion, with refusals more where nodes or the file cannot be edited, and the files;
        None if not even a part can be written.
    """
    if conversion.is_stuck:
        return conversion, None
    try:
        return conversion, make_files(conversion, path)
    except NotEditable as error:
        whole = str(error)
    bad = {} if conversion.move is not None else _bad_nodes(conversion)
    if not bad:
        refusal = Refused(Reason.NOT_EDITABLE, whole, "", Location(conversion.model.path))
        return replace(conversion, refused=(*conversion.refused, refusal)), None
    rest = _without(conversion, bad)
    return rest, make_files(rest, path)


def _without(conversion: Conversion, bad: dict[Converted, str]) -> Conversion:
    """Return a conversion in which some nodes are refused."""
    refused = [
        Refused(Reason.NOT_EDITABLE, message, one.name, one.location, one.source, one.target, _type_of(one))
        for one, message in bad.items()
    ]
    scopes = {one.location.scope for one in bad}
    return replace(
        conversion,
        converted=tuple(one for one in conversion.converted if one not in bad),
        verified=tuple(one for one in conversion.verified if one.location.scope not in scopes),
        refused=(*conversion.refused, *refused),
    )


def _type_of(one: Converted) -> str:
    return one.node.type if one.fragment else ""


def _bad_nodes(conversion: Conversion) -> dict[Converted, str]:
    """Return the nodes that cannot be edited, and why; none where it is the file that cannot be."""
    nodes = [one for one in conversion.converted if one.fragment is not None]
    trials = _Trials(conversion)
    try:
        ends = {trials.problem(nodes[:1]), trials.problem(nodes[-1:])}
        if len(nodes) > 1 and len(ends) == 1 and "" not in ends:
            return {}
        found = dict(trials.bad(nodes))
    except _TooMany:
        return {}
    rest = [one for one in nodes if one not in found]
    return {} if not rest or trials.problem(rest) else found


class _TooMany(Exception):
    """There are more bad nodes than are looked for."""


class _Trials:
    """Writes parts of a conversion into memory."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        self.left = _TRIALS

    def problem(self, nodes: Sequence[Converted]) -> str:
        """Return why nodes cannot be edited, "" if they can."""
        patches = [one.patch for one in nodes if one.patch is not None]
        try:
            if self.conversion.model.format == IR:
                from ir_scatter.formats.openvino.writer import write_ir

                write_ir(self.conversion.model, patches)
            else:
                from ir_scatter.formats.onnx.writer import write_onnx

                write_onnx(self.conversion.model, patches)
        except NotEditable as error:
            return str(error)
        return ""

    def bad(self, nodes: Sequence[Converted]) -> Iterator[tuple[Converted, str]]:
        """Yield the nodes that cannot be edited, and why."""
        self.left -= 1
        if self.left < 0:
            raise _TooMany
        problem = self.problem(nodes)
        if problem and len(nodes) == 1:
            yield nodes[0], problem
        elif problem:
            middle = len(nodes) // 2
            yield from self.bad(nodes[:middle])
            yield from self.bad(nodes[middle:])
