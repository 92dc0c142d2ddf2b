"""The result of a conversion: which nodes were rewritten, refused (with reasons) and verified."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.core.diagnostics import Diagnostic, Location
from ir_scatter.core.display import record
from ir_scatter.core.errors import UsageError
from ir_scatter.core.fragment import Fragment, Patch
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model, Node, OpKey
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import counted
from ir_scatter.formats import FORMATS

if TYPE_CHECKING:
    from ir_scatter.convert.opset.move import Move
    from ir_scatter.convert.output import Files

DEFAULT_CASES = 8
"""Default number of random inputs on which each rewritten node is verified."""


class _OfNode:
    __slots__ = ()
    node: Node

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def location(self) -> Location:
        return self.node.location


@record()
class Converted(_OfNode):
    """A node that is rewritten.

    Attributes:
        source: the operator before; None if the model before had no node with this name.
        assumptions: the user's promises on which the new form depends; empty if it is unconditionally
            equivalent.
        fragment: the new nodes; None if only the opset of the model changes the node's version.
    """

    node: Node
    source: OpKey | None
    target: OpKey
    rewrites: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    fragment: Fragment | None = None

    @property
    def is_safe(self) -> bool:
        return not self.assumptions


@record(eq=False, is_brief=True)
class Refused:
    """A node that is not rewritten; without a name the whole model.

    Attributes:
        source: its operator; None if the opset does not contain it.
        type: the operator as the file names it, "ScatterUpdate"; "" for the model.
    """

    code: str
    message: str
    name: str
    location: Location
    source: OpKey | None = None
    target: OpKey | None = None
    type: str = ""


@record()
class Verified(_OfNode):
    """A node whose old and new form had equal results on `cases` random inputs."""

    node: Node
    cases: int


@record()
class Risk:
    """A known defect that still affects a node of the written model, for some or all legal inputs.

    Attributes:
        node: the name of the node.
        scope: the path to it: "loop:body/scatter".
        defect: its code, "DEV306".
        runner: the device with the defect, "openvino:GPU".
        when: the condition on inputs; "" if all inputs trigger it.
        advice: how to avoid it.
    """

    node: str
    scope: str
    defect: str
    runner: str
    when: str
    advice: str


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """The result of a conversion.

    Attributes:
        move: the changes of all other nodes, if an ONNX model is converted to another opset.
        seed: the seed of the generated inputs.
        cases: how many generated inputs were requested for each node.
        origin: the original file, if OpenVINO has read and rewritten the model before.
        warnings: other problems that may occur at run time: indices out of range that a device accepts.
        risks: known defects that affect nodes of the new model for legal inputs.
        costs: for each node with a costly form, a text with its cost.
        inlined: the number of inlined calls of each function; the model is the inlined one.
        inlined_from: for each node of an inlined function, its scope in the file, by its scope in the model.
    """

    model: Model
    converted: tuple[Converted, ...] = ()
    refused: tuple[Refused, ...] = ()
    verified: tuple[Verified, ...] = ()
    move: "Move | None" = None
    seed: int = 0
    origin: str | None = None
    cases: int = 0
    warnings: tuple[Diagnostic, ...] = ()
    risks: tuple[Risk, ...] = ()
    costs: tuple[str, ...] = ()
    inlined: Mapping[str, int] = field(default_factory=dict)
    inlined_from: Mapping[str, str] = field(default_factory=dict)

    @property
    def opset(self) -> int | None:
        """The new opset of an ONNX model; None if it does not change."""
        return None if self.move is None else self.move.opset

    @property
    def patches(self) -> tuple[Patch, ...]:
        return tuple(
            [
                Patch(converted.node, converted.fragment)
                for converted in self.converted
                if converted.fragment is not None
            ]
        )

    @property
    def is_whole(self) -> bool:
        """Whether every selected node is rewritten."""
        return not self.refused

    @property
    def is_empty(self) -> bool:
        """Whether the model does not change."""
        return (
            self.move is None
            and not self.inlined
            and all(converted.fragment is None for converted in self.converted)
        )

    @property
    def is_stuck(self) -> bool:
        """Whether nothing can be written, because the model cannot be converted to the new opset."""
        return self.move is not None and bool(self.move.obstacles)

    def inlining(self) -> tuple[str, ...]:
        """Return a remark for each function that was inlined."""
        return tuple([f"{name}: {counted(calls, 'call')} inlined" for name, calls in self.inlined.items()])

    def files(self, path: Path) -> "Files":
        """Return the files to write for a destination path; raises the same errors as `write`."""
        from ir_scatter.convert.output import make_files

        if self.move is not None and self.move.obstacles:
            scope, _, reason = self.move.obstacles[0]
            raise UsageError(f"the model cannot move to opset {self.move.opset}: {scope}: {reason}")
        if self.is_empty and self.model.identity is not None:  # otherwise there is no file to copy
            return make_files(self.model, None, b"", path)
        with collector_paused():
            written = FORMATS[self.model.format].write(self.model, self.patches, self.move)
        files = make_files(self.model, written.content, written.appended, path)
        return files._replace(remarks=files.remarks + ((written.remark,) if written.remark else ()))

    def write(self, path: "str | Path", *, overwrite: bool = False, partial: bool = False) -> tuple[str, ...]:
        """Write the converted model. All files are replaced together or not at all.

        The `.bin` of an IR, or the external data of an ONNX model, is written at the same relative location.

        Args:
            path: the new `.xml` or `.onnx`; the source's own path replaces the source.
            overwrite: whether existing files may be replaced.
            partial: whether to write even if a node was refused.

        Returns:
            Remarks: a sentence for each missing weight file.

        Raises:
            UsageError: a file exists, a node was refused, or the model cannot move to the new opset.
            UnreadableModel: the model names external data outside of its folder.
            NotEditable: the text of the file cannot be edited safely.
            CannotWrite: a file cannot be written; nothing was changed.
        """
        from ir_scatter.convert.output import commit

        if self.refused and not partial:
            count = len(self.refused)
            nodes = f"{counted(count, 'node')} {'was' if count == 1 else 'were'}"
            raise UsageError(f"{nodes} refused, expected none or partial=True")
        files = self.files(Path(path))
        return files.remarks + commit(files, Path(path), overwrite=overwrite)

    def diff(self) -> str:
        """Return the changes as a unified diff of the `.xml`, for ONNX as a list of nodes; "" without any.

        Raises:
            NotEditable: the text of the file cannot be edited safely.
        """
        model, move, patches, lines = self.model, self.move, self.patches, list[str]()
        if move is not None:
            lines += [f"-opset {model.opset_imports.get('')}\n", f"+opset {move.opset}\n"]
        lines += [f"~{remark}\n" for remark in self.inlining()]
        if patches:
            lines += FORMATS[model.format].diff(model, patches, self.origin or model.path)
        if move is not None and move.changes:
            lines.append(
                f"~{len(move.changes)} other nodes converted to their versions in opset {move.opset}\n"
            )
        return "".join(lines)


@record(eq=False)
class ConversionRun:
    """The result of a call of `convert`, with the verification on devices.

    Attributes:
        devices: for each device, the number of inputs on which both models had equal results.
        failed_devices: runners that could not compare the models, with the reason.
        unverified: why a requested comparison of the whole models was not possible; "" if it was.
    """

    conversion: Conversion
    written: str | None = None
    remarks: tuple[str, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)
    failed_devices: Mapping[str, str] = field(default_factory=dict)
    diff: str | None = None
    unverified: str = ""

    @property
    def not_verified(self) -> str:
        """Why some converted nodes are not verified; "" if all are."""
        conversion = self.conversion
        if self.failed_devices:
            return f"{', '.join(self.failed_devices)} could not compare the models"
        if self.devices or (conversion.is_empty and conversion.origin is None):
            return ""
        if conversion.inlined and not conversion.converted:
            return ""  # inlining is proven without running anything
        if not conversion.cases:
            return f"no case was requested ({Parameter('verify', 0)})"
        if self.unverified:
            return f"{self.unverified} ({Parameter('verify_on')} compares both models on a device)"
        moved = 0 if conversion.move is None else len(conversion.move.changes)
        if moved:
            nodes = counted(moved, "other node")
            return f"{nodes} in the new opset ({Parameter('verify_on')} compares both models on a device)"
        return "" if conversion.verified else "no node was rewritten"
