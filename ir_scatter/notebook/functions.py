"""The functions of the library, which take models from anywhere, and results that show themselves.

Everything heavy is imported when it is called.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS
from ir_scatter.convert.conversion import DEFAULT_CASES
from ir_scatter.core.errors import BadFeed, UnreadableModel, UsageError
from ir_scatter.explain import explain as explain_topic
from ir_scatter.inspect import inspect as inspect_model
from ir_scatter.notebook.shown import (
    ComparisonResult,
    Conversion,
    Devices,
    Explanation,
    Findings,
    Outputs,
    ScatterNodes,
)
from ir_scatter.notebook.sources import InputShapes, Readable, in_a_file, input_shape, read, type_with_article
from ir_scatter.rules.selection import code_prefixes
from ir_scatter.runners.defaults import PRECISION, PRECISIONS, TAP_MEMORY, TIME_LIMIT
from ir_scatter.validate import check_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.compare.request import ComparedModels
    from ir_scatter.core.arrays import Array
    from ir_scatter.fuzz.explain import Finding


def _several(given: "str | Iterable[str]", name: str) -> tuple[str, ...]:
    """Return what is one text or several as several."""
    texts = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{name} has {type_with_article(text)}, expected a string or several")
    return texts


def validate(
    model: "Readable",
    *,
    select: str | Collection[str] = (),
    ignore: str | Collection[str] = (),
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    shapes_given: bool = False,
    targets: str | Collection[str] = (),
) -> Findings:
    """Hold every scatter node of a model against the documents, and the file against itself.

    Args:
        model: a path, or anything else that `read` takes.
        select: only rules with this name or one of these names, "index-out-of-range", or with codes that
            begin so, "SCT2" or ["SCT203", "SCT3"]; empty for all.
        ignore: none of these rules.
        max_index_elements: constants with more elements are not looked at, and a note says so.
        shapes_given: the shapes are the caller's own, so that those the file stores are not held
            against them.
        targets: devices, "CPU" or ["GPU@2025.4"], whose known defects are looked for, too.

    Returns:
        All violations of all nodes, in the order of the file. A file that cannot be read is one, too.

    Raises:
        UsageError: `select` or `ignore` holds what is no rule, `targets` what is no device.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> found = irs.validate("samples/broken/scatter_nd_update.xml", select="SCT3")
        >>> found
        <Findings scatter_nd_update.xml: 2 errors in 1 file (5 scatter nodes)>
        >>> found[0]
        <Diagnostic error SCT303 samples/broken/scatter_nd_update.xml:57: indices[1, 0] is -1, expected 0 to 3 in ScatterNDUpdate-3>
    """  # noqa: E501
    from ir_scatter.lint import file_result, unreadable, with_defects

    codes = {"select": _several(select, "select"), "ignore": _several(ignore, "ignore")}
    for texts in codes.values():
        code_prefixes(texts)
    try:
        known = read(model)
    except UnreadableModel as error:
        return Findings(unreadable(error, error.location.path))
    check = check_of(known, **codes, max_index_elements=max_index_elements, shapes_given=shapes_given)
    found = check.diagnostics()
    if devices := _several(targets, "targets"):
        found = with_defects(check, found, devices, **codes)
    return Findings(file_result(known, found))


def inspect(model: "Readable", *, max_index_elements: int = MAX_CONSTANT_ELEMENTS) -> ScatterNodes:
    """List the scatter nodes of a model in the order of the file, a function's once per signature.

    Args:
        model: a path, or anything else that `read` takes.
        max_index_elements: the numbers of constants with more elements are not looked at.

    Raises:
        UnreadableModel: the model cannot be read.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> nodes = irs.inspect("samples/documented/scatter_update_1.xml")
        >>> nodes
        <ScatterNodes 1 scatter node: 1 ScatterUpdate-3>
        >>> nodes[0].name, nodes[0].shapes["updates"], str(nodes[0].indices)
        ('scatter', (1000, 125, 20, 10, 15), 'not constant')
    """
    known = read(model)
    return ScatterNodes(inspect_model(known, max_index_elements=max_index_elements), known.path)


def explain(topic: str = "index") -> Explanation:
    """Explain a rule ("SCT203", "updates-shape-mismatch"), an operator ("ScatterND-18"), or give a page.

    An operator without a version stands for all of its versions. The page "index" names the others.

    Raises:
        UsageError: there is no such rule, operator or page.

    Example:
        >>> import ir_scatter as irs
        >>> irs.explain("SCT302").splitlines()[0]
        'SCT302 index-out-of-range (error)'
    """
    if not isinstance(topic, str):
        raise TypeError(f"the topic is {type_with_article(topic)}, expected a string")
    return Explanation(explain_topic(topic))


def convert(
    model: "Readable",
    to: str | None = None,
    *,
    sources: str | Collection[str] = (),
    nodes: str | Sequence[str] = (),
    opset: int | None = None,
    assume: str | Collection[str] = (),
    keep_negative_indices: bool = False,
    verify: int = DEFAULT_CASES,
    seed: int = 0,
    targets: str | Collection[str] = (),
    guard: str | None = None,
) -> Conversion:
    """Rewrite scatter nodes into equal forms; nothing is written yet.

    Args:
        model: a path, or anything else that `read` takes.
        to: the operator that is wanted, "ScatterNDUpdate" or "ScatterNDUpdate-3"; without a version
            the newest (in ONNX that of the model's opset). None: deprecated operators become their
            successors.
        sources: only nodes of this operator or these; empty for all.
        nodes: only nodes with this name or scope path or these, literally or as globs.
        opset: the opset that an ONNX model is to have; None for the nearest one that works.
        assume: conditions to take for granted where the file does not tell: "unique-indices",
            "non-negative-indices", "equal-indices", "full-indices".
        keep_negative_indices: leave negative indices as they are where the target forbids them.
        verify: on how many generated inputs both forms of each node are compared; 0 for none.
        seed: for these inputs.
        targets: devices, "CPU" or "GPU@2025.4", whose known defects no node is to meet. Without `to` nothing
            but that happens.
        guard: "clamp" limits indices to their range where nothing proves that they are in it, "drop" leaves
            out updates whose index is out of range, "wrap" counts negative ones from the front. Without
            `to` and `targets` nothing but that happens.

    Returns:
        What is rewritten, what is refused and why, and what was proven; `.write(path)` writes it.

    Raises:
        UsageError: a name, an operator, an opset, a condition or a guard does not exist.
        UnreadableModel: the model cannot be read.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> irs.convert("samples/operators/scatter_update_3_axis_0.xml", to="ScatterNDUpdate")
        <Conversion scatter_update_3_axis_0.xml: 1 node converted, verified on 8 cases each>
    """
    from ir_scatter.convert import pipeline

    bare = pipeline.convert(
        read(model),
        to,
        sources=_several(sources, "sources"),
        nodes=_several(nodes, "nodes"),
        opset=opset,
        assume=_several(assume, "assume"),
        keep_negative_indices=keep_negative_indices,
        verify=verify,
        seed=seed,
        targets=_several(targets, "targets"),
        guard=guard,
    )
    return Conversion(**{field.name: getattr(bare, field.name) for field in fields(bare)})


def evaluate_model(model: "Readable", feeds: "Mapping[str, ArrayLike]") -> Outputs:
    """Compute the outputs of a model in NumPy.

    The scatter operators are computed as their documents say (`evaluate`). An output of an IR has
    the first name of its tensor in the order of the alphabet, as OpenVINO's `get_any_name` has it,
    or the name of the layer that it comes from if the tensor has none.

    Args:
        model: a path, or anything else that `read` takes.
        feeds: one array for each input, by the name of the Parameter or any of its tensor; inputs
            of an ONNX model that have an initializer may be left out.

    Returns:
        The outputs of the main graph by name; they may be read-only, and share no memory with feeds.

    Raises:
        UnreadableModel: the model, or a constant that is needed, cannot be read.
        BrokenModel: operators of the model, or the file itself, break rules.
        UnknownOperator: NumPy does not compute one of the nodes.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        EvaluationFailed: a node cannot be computed with the values that reach it.
        TypeError: the model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> import numpy as np
        >>> feeds = {"data": np.zeros((1, 5), "f"), "updates": np.ones((1, 2), "f")}
        >>> found = irs.evaluate_model("samples/documented/scatter_2.onnx", feeds)
        >>> found
        <Outputs scatter f32[1, 5]>
        >>> found["scatter"]
        array([[0., 1., 0., 1., 0.]], dtype=float32)
    """
    from ir_scatter.evaluate.model import prepare

    return Outputs(prepare(read(model)).run(feeds))


def fuzz(
    on: str | Sequence[str] = (),
    *,
    operators: str | Sequence[str] = (),
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
    values: str = "any",
    illegal: bool = False,
    output: "str | PathLike[str] | None" = None,
    resume: bool = False,
) -> "Iterator[Finding]":
    """Find what runtimes get wrong, and shrink each defect to one small node.

    Args:
        on: who computes, "CPU" or ["CPU", "onnxruntime"] (see `devices`); empty for all that are here.
        operators: "ScatterNDUpdate-15", or all versions of "ScatterNDUpdate"; empty for all.
        seconds: of wall time for everything; None for 60, or for no limit where `cases` is given.
        cases: how many to draw.
        seed: what is drawn follows from it.
        values: "any", "plain" for ordinary numbers, or "edge" for those at the edges of their type.
        illegal: whether each case breaks one rule.
        output: a folder for a model, a program and a report of each finding.
        resume: whether to go on with the findings of that folder.

    Yields:
        Findings as they come, one for each operator, runner, symptom and condition: `.signature`, `.when`,
        `.symptom`, `.case`, `.as_json()`.

    Raises:
        UsageError: a name does not exist, or a runner that was named cannot run here.
        CannotWrite: the folder cannot be written.

    Example:
        >>> import ir_scatter as irs
        >>> [found.when for found in irs.fuzz(on="onnxruntime", operators="ScatterND-13", cases=2)]
        []
    """
    from ir_scatter.fuzz.job import Job, prepare, run
    from ir_scatter.report.campaign_folder import write_report

    folder = None if output is None else Path(output)
    names, rows = ([one] if isinstance(one, str) else list(one) for one in (on, operators))
    job = Job(names, rows, seconds, cases, seed, values, illegal, folder, resume)
    campaign = prepare(job)
    for finding in run(job, campaign):
        yield finding
        write_report(campaign, folder)
    write_report(campaign, folder)


def compare(
    model: "Readable",
    other: "Readable | None" = None,
    *,
    on: str | Sequence[str] = (),
    cases: int = 1,
    seed: int = 0,
    repeat: int = 1,
    values: str = "plain",
    inputs: "str | PathLike[str] | Mapping[str, ArrayLike] | None" = None,
    input_shapes: "InputShapes | None" = None,
    tolerance: str | Sequence[str] = (),
    precision: str = PRECISION,
    pairwise: bool = False,
    reference: bool = True,
    timeout: float = TIME_LIMIT,
    tap_memory: int = TAP_MEMORY,
    skip_missing: bool = False,
    save: "str | PathLike[str] | None" = None,
    against: "str | PathLike[str] | None" = None,
    extract: "str | PathLike[str] | None" = None,
    map_inputs: Mapping[str, str] | None = None,
    map_outputs: Mapping[str, str] | None = None,
) -> ComparisonResult:
    """Run a model on several runtimes and say which node, which element, which side is wrong.

    Args:
        model: a path, or anything else that `read` takes.
        other: a second model, whose outputs are compared with those of the first.
        on: who computes, "CPU" or ["numpy", "CPU", "onnxruntime"] (see `devices`); empty for NumPy and
            every device found.
        cases: on so many inputs; those of `inputs` are the first.
        seed: for generated inputs.
        repeat: each is run so often.
        values: "plain" for ordinary numbers, "edge" for extreme ones.
        inputs: arrays by name, or the path of an npz; None to generate legal ones.
        input_shapes: shapes that inputs are drawn in by name: "2,3" or numbers.
        tolerance: how far apart is close, "OUTPUT=ABS,REL" or "ABS,REL" for all.
        precision: what runtimes compute in: "f32", "f16", "bf16" or "default".
        pairwise: compare every pair of runners, not all with NumPy.
        reference: whether NumPy is the reference where it can compute the model, though it is not named.
        timeout: in seconds, per run.
        tap_memory: bytes of tapped values that are held at once.
        skip_missing: pass over runners that cannot run here.
        save: a folder for inputs, outputs and tapped values.
        against: a folder with what was saved before, to compare with.
        extract: a folder for a model of each node that differs.
        map_inputs: of two models those inputs of the second, by name of the first's, that no name, order and
            shape leads to.
        map_outputs: the same of outputs.

    Returns:
        What was found; `.differs`, `.verdict`, `.to_pandas()`, `.write_report(path)`.

    Raises:
        UsageError: a name does not exist, options do not fit each other, or feeds do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
        KeyboardInterrupt: with what was finished as `found`.
        TypeError: a model is nothing that `read` takes.

    Example:
        >>> import ir_scatter as irs
        >>> found = irs.compare("samples/operators/scatter_update_3_axis_0.xml", on=["numpy", "CPU"])
        >>> found.differs
        False
    """
    import warnings
    from contextlib import ExitStack

    from ir_scatter.compare.measure import Tolerances
    from ir_scatter.compare.phases import Interrupted
    from ir_scatter.compare.request import CompareRequest, run_job
    from ir_scatter.compare.result import CompareSettings

    for name, word, known in (("values", values, ("plain", "edge")), ("precision", precision, PRECISIONS)):
        if word not in known:
            raise UsageError(f"{name} is {word!r}, expected one of {', '.join(known)}")
    settings = CompareSettings(
        seed=seed,
        cases=cases,
        repeat=repeat,
        values=values,
        input_shapes={name: input_shape(name, shape) for name, shape in (input_shapes or {}).items()},
        tolerances=Tolerances(_several(tolerance, "tolerance")),
        precision=precision,
        pairwise=pairwise,
        reference=reference,
        timeout=timeout,
        tap_memory=tap_memory,
        describes=True,
        map_inputs=tuple((map_inputs or {}).items()),
        map_outputs=tuple((map_outputs or {}).items()),
    )
    given = (model,) if other is None else (model, other)
    with ExitStack() as opened:
        sources = [opened.enter_context(in_a_file(readable)) for readable in given]
        job = CompareRequest(
            tuple(source.path for source in sources),
            _several(on, "on"),
            settings,
            inputs=None if inputs is None else _arrays(inputs),
            skip_missing=skip_missing,
            save=_path(save),
            against=_path(against),
            extract=_path(extract),
            loaded=tuple(source.model for source in sources),
        )
        names = {source.path: source.name for source in sources}
        try:
            done = run_job(job)
        except Interrupted as interrupt:
            raise Interrupted(_renamed(interrupt.found, names)) from None
    for message in done.unwritten:
        warnings.warn(message, stacklevel=2)
    return _renamed(done, names)


def _renamed(done: "ComparedModels", names: Mapping[str, str]) -> ComparisonResult:
    """Return what came of a comparison with models from memory called what they are called."""
    found = [
        replace(one, model=names.get(one.model, one.model), other=names.get(one.other, one.other))
        for one in done.found
    ]
    return ComparisonResult(replace(done, found=tuple(found)))


def _path(folder: "str | PathLike[str] | None") -> str | None:
    return None if folder is None else fspath(folder)


def _arrays(inputs: "str | PathLike[str] | Mapping[str, ArrayLike]") -> "str | Mapping[str, Array]":
    """Return the path of an npz, or arrays by name."""
    if isinstance(inputs, str | PathLike):
        return fspath(inputs)
    if not isinstance(inputs, Mapping):
        raise BadFeed(
            f"the inputs are {type_with_article(inputs)}, expected arrays by name or the path of an npz"
        )
    import numpy

    return {name: numpy.asarray(array) for name, array in inputs.items()}


def devices() -> Devices:
    """List what can run here: each runner with its device and versions, and why others cannot.

    Each is tried in a process of its own, which takes a second or two.

    Example:
        >>> import ir_scatter as irs
        >>> irs.devices()[0].runner
        'numpy'
    """
    from ir_scatter.compare.request import survey

    return Devices(survey())
