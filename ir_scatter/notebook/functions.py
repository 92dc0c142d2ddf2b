"""The public functions of the library: they accept models from any source, and results have short reprs.

Heavy modules are imported when a function is called, so that `import ir_scatter` stays fast.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.analysis.constants import MAX_CONSTANT_ELEMENTS
from ir_scatter.contract import Contract, make_contract
from ir_scatter.convert.conversion import DEFAULT_CASES
from ir_scatter.core.errors import BadFeed, UnreadableModel, UsageError
from ir_scatter.explain import explain as explain_topic
from ir_scatter.inspect import inspect as inspect_model
from ir_scatter.notebook.shown import (
    ComparisonResult,
    Devices,
    Explanation,
    Findings,
    Outputs,
    ScatterNodes,
    ShownConversion,
)
from ir_scatter.notebook.sources import (
    InputRanges,
    InputShapes,
    Readable,
    in_a_file,
    input_range,
    input_shape,
    read,
    type_with_article,
)
from ir_scatter.rules.selection import code_prefixes
from ir_scatter.runners.defaults import PRECISION, PRECISIONS, TAP_MEMORY, TAPS, TIME_LIMIT
from ir_scatter.validate import check_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.compare.request import ComparedModels
    from ir_scatter.core.arrays import Array
    from ir_scatter.fuzz.explain import FuzzFinding


def _several(value: "str | Iterable[str]", name: str) -> tuple[str, ...]:
    """Return one string or several as a tuple; `name` is the parameter's name, for errors."""
    texts = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
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
    given: str | Sequence[str] = (),
) -> Findings:
    """Check the scatter nodes of a model against their specifications, and the file for consistency.

    Args:
        model: a path, or anything else that `read` accepts.
        select: the rules to check, by name ("index-out-of-range") or by code prefix: "SCT2" or
            ["SCT203", "SCT3"]; empty for all.
        ignore: the rules to skip, in the same notation.
        max_index_elements: constants with more elements are not checked; a note in the result says so.
        shapes_given: whether the caller changed input shapes; shapes stored for other values may then be
            outdated, and are not checked.
        targets: devices, "CPU" or ["GPU@2025.4"], whose known defects are checked too.
        given: conditions that inputs satisfy, "position in 0..15"; an index that may then still be out of
            range is an error.

    Returns:
        All findings, in the order of the file. An unreadable file is a finding too.

    Raises:
        UsageError: `select` or `ignore` names no rule, `targets` names no device, or a condition in `given`
            is malformed or impossible.
        TypeError: the model is not of a type that `read` accepts.

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
        source = read(model)
    except UnreadableModel as error:
        return Findings(unreadable(error, error.location.path))
    check = check_of(
        source, **codes, max_index_elements=max_index_elements, shapes_given=shapes_given,
        given=_several(given, "given"),
    )  # fmt: skip
    diagnostics = check.diagnostics()
    if devices := _several(targets, "targets"):
        from ir_scatter.convert.fixes import with_conversions

        diagnostics = with_defects(check, diagnostics, devices, **codes)
        diagnostics = [*with_conversions(source, diagnostics, devices)]
    return Findings(file_result(source, diagnostics))


def inspect(model: "Readable", *, max_index_elements: int = MAX_CONSTANT_ELEMENTS) -> ScatterNodes:
    """List the scatter nodes of a model in the order of the file, a function's once per signature.

    Args:
        model: a path, or anything else that `read` accepts.
        max_index_elements: the values of constants with more elements are not read.

    Raises:
        UnreadableModel: the model cannot be read.
        TypeError: the model is not of a type that `read` accepts.

    Example:
        >>> import ir_scatter as irs
        >>> nodes = irs.inspect("samples/documented/scatter_update_1.xml")
        >>> nodes
        <ScatterNodes 1 scatter node: 1 ScatterUpdate-3>
        >>> nodes[0].name, nodes[0].shapes["updates"], str(nodes[0].indices)
        ('scatter', (1000, 125, 20, 10, 15), 'not constant')
    """
    source = read(model)
    return ScatterNodes(inspect_model(source, max_index_elements=max_index_elements), source.path)


def explain(topic: str = "index") -> Explanation:
    """Return the explanation of a rule ("SCT203", "updates-shape-mismatch") or operator ("ScatterND-18").

    An operator without a version stands for all its versions. Other topics are the names of pages; the page
    "index" lists all of them.

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


def contract(model: "Readable", *, given: str | Sequence[str] = ()) -> Contract:
    """Return what the inputs of a model must satisfy so that every index of its scatter nodes is in range.

    The conditions are proven from the file alone, for all legal inputs. NumPy runs the model only to confirm
    examples of inputs that break an index.

    Args:
        model: a path, or anything else that `read` accepts.
        given: conditions that inputs satisfy: "position in 0..15", or several such texts.

    Returns:
        `.nodes` and `.inputs` with conditions; `.check(feeds)` raises ValueError for inputs that break a
        condition; `str` gives the text that the command line prints.

    Raises:
        BadGiven: a condition in `given` is malformed, names no input, or is impossible.
        UnreadableModel: the model cannot be read.
        TypeError: the model is not of a type that `read` accepts.

    Example:
        >>> import ir_scatter as irs
        >>> contract = irs.contract("samples/kv_cache/decoder.xml")
        >>> contract
        <Contract decoder.xml: 2 scatter nodes, 2 conditional>
        >>> contract.inputs[0].conditions
        ('position in 0..15',)
        >>> contract.check({"position": [16]})
        Traceback (most recent call last):
        ValueError: position[0] is 16, expected position <= 15 (value_cache/scatter)
    """
    return make_contract(read(model), _several(given, "given"))


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
    at_any_cost: bool = False,
    guard: str | None = None,
    given: str | Sequence[str] = (),
) -> ShownConversion:
    """Rewrite scatter nodes as equivalent ones, mostly of other operators; nothing is written yet.

    Args:
        model: a path, or anything else that `read` accepts.
        to: the target operator, "ScatterNDUpdate" or "ScatterNDUpdate-3"; without a version the newest one
            (in ONNX, that of the model's opset). None: convert deprecated operators to their successors.
        sources: convert only nodes of this operator or these operators; empty for all.
        nodes: convert only nodes whose name or path matches this glob, or one of these.
        opset: the opset of the converted ONNX model; None for the nearest one that works.
        assume: conditions that the caller guarantees where the file does not prove them: "unique-indices",
            "non-negative-indices", "equal-indices", "full-indices".
        keep_negative_indices: keep negative indices even if the target operator forbids them.
        verify: the number of random inputs on which old and new nodes are compared; 0 for none.
        seed: the seed of these inputs.
        targets: devices, "CPU" or "GPU@2025.4", whose known defects are to be avoided. Without `to`, this is
            the only change.
        at_any_cost: whether to avoid also defects that only some inputs trigger, even if that copies data
            once more; by default these are only avoided where it costs little.
        guard: treatment of indices not proven to be in range: "clamp" limits them to the range, "drop"
            removes updates whose index is out of range, "wrap" adds the size to negative ones. Without `to`
            and `targets`, this is the only change.
        given: conditions that inputs satisfy, "position in 0..15"; their consequences need neither `assume`
            nor `guard`.

    Returns:
        The converted, refused and verified nodes, and the risks that remain on the devices of `targets`;
        `.write(path)` writes the model.

    Raises:
        UsageError: a name, an operator, an opset, a condition or a guard does not exist.
        UnreadableModel: the model cannot be read.
        TypeError: the model is not of a type that `read` accepts.

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
        at_any_cost=at_any_cost,
        guard=guard,
        given=_several(given, "given"),
    )
    return ShownConversion(**{field.name: getattr(bare, field.name) for field in fields(bare)})


def evaluate_model(model: "Readable", feeds: "Mapping[str, ArrayLike]") -> Outputs:
    """Compute the outputs of a model in NumPy.

    The scatter operators are computed according to their specifications (`evaluate`). An output of an IR is
    named by the alphabetically first name of its tensor, as by OpenVINO's `get_any_name`, or by its layer if
    the tensor has no name.

    Args:
        model: a path, or anything else that `read` accepts.
        feeds: one array for each input, by the name of its Parameter or any name of its tensor; inputs
            of an ONNX model that have an initializer may be omitted.

    Returns:
        The outputs of the main graph by name; they may be read-only, and share no memory with feeds.

    Raises:
        UnreadableModel: the model, or a constant that is needed, cannot be read.
        BrokenModel: operators of the model, or the file itself, break rules.
        UnknownOperator: NumPy does not compute one of the nodes.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        EvaluationFailed: a node cannot be computed with the values of its inputs.
        TypeError: the model is not of a type that `read` accepts.

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
) -> "Iterator[FuzzFinding]":
    """Search for bugs of runtimes, and shrink each one to a small node.

    Args:
        on: the runners, "CPU" or ["CPU", "onnxruntime"] (see `devices`); empty for all available ones.
        operators: "ScatterNDUpdate-15", or all versions of "ScatterNDUpdate"; empty for all.
        seconds: time limit in seconds of wall time; None for 60 seconds, or for no limit if `cases` is given.
        cases: the number of cases to draw.
        seed: the seed of the drawn cases.
        values: "any", "plain" for ordinary numbers, or "edge" for values at the limits of their type.
        illegal: whether each case breaks one rule.
        output: a folder for the model, a reproducing program and a report of each finding.
        resume: whether to continue the search whose findings are in that folder.

    Yields:
        Findings as they come, one for each operator, runner, symptom and condition: `.signature`, `.when`,
        `.symptom`, `.case`, `.as_json()`.

    Raises:
        UsageError: a name does not exist, or a runner in `on` cannot run here.
        CannotWrite: the folder cannot be written.

    Example:
        >>> import ir_scatter as irs
        >>> [found.when for found in irs.fuzz(on="onnxruntime", operators="ScatterND-13", cases=2)]
        []
    """
    from ir_scatter.fuzz.job import FuzzRequest, prepare, run
    from ir_scatter.report.campaign_folder import write_report

    folder = None if output is None else Path(output)
    names, rows = ([words] if isinstance(words, str) else list(words) for words in (on, operators))
    job = FuzzRequest(names, rows, seconds, cases, seed, values, illegal, folder, resume)
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
    input_ranges: "InputRanges | None" = None,
    given: str | Sequence[str] = (),
    tolerance: str | Sequence[str] = (),
    precision: str = PRECISION,
    pairwise: bool = False,
    reference: bool = True,
    timeout: float = TIME_LIMIT,
    taps: str = TAPS[0],
    tap_memory: int = TAP_MEMORY,
    skip_missing: bool = False,
    save: "str | PathLike[str] | None" = None,
    against: "str | PathLike[str] | None" = None,
    extract: "str | PathLike[str] | None" = None,
    map_inputs: Mapping[str, str] | None = None,
    map_outputs: Mapping[str, str] | None = None,
) -> ComparisonResult:
    """Run a model on several runtimes; report which node, which element and which runtime is wrong.

    Args:
        model: a path, or anything else that `read` accepts.
        other: a second model, whose outputs are compared with those of the first.
        on: the runners, "CPU" or ["numpy", "CPU", "onnxruntime"] (see `devices`); empty for NumPy and
            every device found.
        cases: the number of input sets; the first ones are those of `inputs`.
        seed: the seed of generated inputs.
        repeat: the number of runs of each case.
        values: "plain" for ordinary numbers, "edge" for extreme ones.
        inputs: arrays by name, or a path: of an npz, of a folder of ONNX tensors (`test_data_set_0`, or
            several), or "FILE.py:FUNCTION"; None to generate legal ones.
        input_shapes: shapes of generated inputs by name: "2,3" or numbers.
        input_ranges: ranges of the numbers of generated inputs by name, both ends included: (0, 31999) or
            "0..31999".
        given: conditions that inputs satisfy, "position in 0..15": generated inputs satisfy them, and
            `inputs` are checked.
        tolerance: the allowed difference, "OUTPUT=ABS,REL", or "ABS,REL" for all outputs.
        precision: the precision of the runtimes: "f32", "f16", "bf16" or "default".
        pairwise: compare every pair of runners, not all with NumPy.
        reference: whether NumPy is the reference even if `on` does not name it.
        timeout: time limit of each run, in seconds.
        taps: "scatter" to read the values of scatter nodes; "all" to read those of all nodes if an output
            differs.
        tap_memory: maximum bytes of node inputs and outputs in memory at once.
        skip_missing: skip runners that cannot run here.
        save: a folder for inputs, outputs, and inputs and outputs of nodes.
        against: a folder of saved results to compare with.
        extract: a folder for a one-node model of each node that differs.
        map_inputs: for two models: input names of the second by input names of the first, for inputs that
            cannot be matched by name, order or shape.
        map_outputs: the same for outputs.

    Returns:
        The result; `.differs`, `.verdict`, `.to_pandas()`, `.write_report(path)`.

    Raises:
        UsageError: a name does not exist, arguments contradict each other, or feeds do not fit a model.
        UnreadableModel: a model cannot be read.
        NoInputs: no legal inputs were found.
        KeyboardInterrupt: interrupted; its attribute `found` is the finished part of the result.
        TypeError: a model is not of a type that `read` accepts.

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
    from ir_scatter.convert.fixes import with_fixes

    for name, word, allowed in (
        ("values", values, ("plain", "edge")),
        ("precision", precision, PRECISIONS),
        ("taps", taps, TAPS),
    ):
        if word not in allowed:
            raise UsageError(f"{name} is {word!r}, expected one of {', '.join(allowed)}")
    settings = CompareSettings(
        seed=seed,
        cases=cases,
        repeat=repeat,
        values=values,
        input_shapes={name: input_shape(name, shape) for name, shape in (input_shapes or {}).items()},
        input_ranges={name: input_range(name, ends) for name, ends in (input_ranges or {}).items()},
        given=_several(given, "given"),
        tolerances=Tolerances(_several(tolerance, "tolerance")),
        precision=precision,
        pairwise=pairwise,
        reference=reference,
        timeout=timeout,
        taps=taps,
        tap_memory=tap_memory,
        describes=True,
        map_inputs=tuple((map_inputs or {}).items()),
        map_outputs=tuple((map_outputs or {}).items()),
    )
    sources = (model,) if other is None else (model, other)
    with ExitStack() as opened:
        files = [opened.enter_context(in_a_file(source)) for source in sources]
        job = CompareRequest(
            tuple(file.path for file in files),
            _several(on, "on"),
            settings,
            inputs=None if inputs is None else _arrays(inputs),
            skip_missing=skip_missing,
            save=_path(save),
            against=_path(against),
            extract=_path(extract),
            loaded=tuple(file.model for file in files),
        )
        names = {file.path: file.name for file in files}
        try:
            done = with_fixes(run_job(job))
        except Interrupted as interrupt:
            raise Interrupted(_renamed(interrupt.found, names)) from None
    for message in done.unwritten:
        warnings.warn(message, stacklevel=2)
    return _renamed(done, names)


def _renamed(done: "ComparedModels", names: Mapping[str, str]) -> ComparisonResult:
    """Return a comparison in which models from memory have their names instead of temporary paths."""
    comparisons = [
        replace(
            compared,
            model=names.get(compared.model, compared.model),
            other=names.get(compared.other, compared.other),
            leads=tuple([replace(lead, model=names.get(lead.model, lead.model)) for lead in compared.leads]),
        )
        for compared in done.found
    ]
    return ComparisonResult(replace(done, found=tuple(comparisons)))


def _path(folder: "str | PathLike[str] | None") -> str | None:
    return None if folder is None else fspath(folder)


def _arrays(inputs: "str | PathLike[str] | Mapping[str, ArrayLike]") -> "str | Mapping[str, Array]":
    """Return a path unchanged, or a mapping of names to arrays as NumPy arrays."""
    if isinstance(inputs, str | PathLike):
        return fspath(inputs)
    if not isinstance(inputs, Mapping):
        raise BadFeed(f"the inputs are {type_with_article(inputs)}, expected arrays by name or a path")
    import numpy

    return {name: numpy.asarray(array) for name, array in inputs.items()}


def devices() -> Devices:
    """List all runners: their devices and versions, or why they cannot run here.

    Each runner is tried in its own process, which takes a second or two.

    Example:
        >>> import ir_scatter as irs
        >>> irs.devices()[0].runner
        'numpy'
    """
    from ir_scatter.compare.request import survey

    return Devices(survey())
