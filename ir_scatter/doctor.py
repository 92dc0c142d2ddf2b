"""Runs probes (test inputs) of known defects on devices, and compares the results with the records."""

import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from ir_scatter import runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.from_probe import case_of
from ir_scatter.cases.judge import judge
from ir_scatter.cases.workshop import Workshop
from ir_scatter.compare.phases import begin
from ir_scatter.core.arrays import Array, same_bits
from ir_scatter.core.atomic_write import Output, replace_files
from ir_scatter.core.errors import Error, UsageError
from ir_scatter.core.instructions import UNKNOWN, instruction_set
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.temporary import temporary_folder
from ir_scatter.core.words import counted
from ir_scatter.defects import all_defects
from ir_scatter.defects.base import Defect, Probe, Result
from ir_scatter.defects.evidence import (
    Basis,
    Evidence,
    Row,
    Target,
    evidence,
    history,
    key_of,
    order,
    read_rows,
    result_of,
    text_of,
)
from ir_scatter.jobs import Executor, Gone, Job, NotDone, register
from ir_scatter.jobs.local import local
from ir_scatter.portability import cache_file, concerns, find_targets
from ir_scatter.runners import Directory
from ir_scatter.runners.base import Availability, Runner, Status, Streamed, plain_name
from ir_scatter.runners.releases.environments import PACKAGES, parse_release
from ir_scatter.runners.releases.environments import find as find_environment
from ir_scatter.runners.releases.runner import release_of

_TIMEOUT = 30.0
"""Time limit of one probe, in seconds."""
_IN_A_ROW = 60
"""Maximum repetitions of a probe in one model, before the results so far are judged."""


class Unanswered(Error):
    """Error: a probe got no answer, for a reason outside of the runner, such as a time limit."""


def probe_defects(
    runner: Runner, defects: Sequence[Defect], unanswered: dict[str, str] | None = None
) -> dict[str, Result]:
    """Run the probes of defects, and near misses (similar inputs that must pass), on a runner.

    Probes without an answer are missing from the results; `unanswered` gets the reasons by probe key.
    """
    results: dict[str, Result] = {}
    with temporary_folder() as folder:
        workshop = Workshop(folder, _TIMEOUT, passes_over=False)
        for defect in defects:
            for probe in (*defect.probes, *defect.near):
                try:
                    results[key_of(defect, probe)] = _probe_result(workshop, runner, probe)
                except Unanswered as error:
                    if unanswered is not None:
                        unanswered[key_of(defect, probe)] = str(error)
    return results


def _probe_result(workshop: Workshop, runner: Runner, probe: Probe) -> Result:
    case, reference_output = case_of(probe), list[Array]()
    for answer in _answers(workshop, runner, case, probe):
        if answer.status is Status.UNAVAILABLE:
            raise Unanswered(answer.message)
        if answer.status is Status.UNSUPPORTED:
            return Result.ABSENT
        if reference_output and answer.outputs and same_bits(reference_output[0], answer.outputs[0]).all():
            continue
        judgement = judge(case, answer, reference_output)
        if not judgement.is_run:
            raise Unanswered(judgement.message)
        if judgement.symptom is not None:
            return judgement.symptom.result
        if judgement.got is not None:
            reference_output = [judgement.got]
    return Result.RIGHT


def _answers(workshop: Workshop, runner: Runner, case: Case, probe: Probe) -> Iterator[Streamed]:
    """Yield the runner's answers to a probe, `probe.times` times.

    Answers are produced lazily, in groups of `_IN_A_ROW` runs.
    """
    for start in range(0, probe.times, _IN_A_ROW):
        cases = [case] * min(probe.times - start, _IN_A_ROW)
        yield from workshop.stream(runner, cases, threads=probe.threads, keeps_states=probe.keeps_state)


@dataclass(frozen=True, slots=True)
class DefectCheck:
    """The check of one defect on one device.

    Attributes:
        result: the result of the probes; RIGHT if the defect is absent, None if unknown.
        before: the evidence before the check, from this or other releases.
        missed: names of near misses with wrong results: the defect affects more cases than are known.
        unanswered: names of probes that got no answer, for a reason outside of the runner.
    """

    defect: Defect
    result: Result | None
    before: Evidence
    missed: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    other_processor: str = ""
    """"recorded on AVX-512, this machine has AVX2" if the defect depends on the instruction set and was never
    recorded with that of this machine; "" otherwise."""

    @property
    def is_here(self) -> bool:
        return self.result not in {None, Result.RIGHT}

    @property
    def is_unlike(self) -> bool:
        """Whether the result differs from records of other processors, maybe due to the instruction set."""
        return bool(self.other_processor) and self._is_other

    @property
    def differs(self) -> bool:
        """Whether the result differs from the record of the same release on a processor of the same kind."""
        return self._is_other and not self.other_processor

    @property
    def _is_other(self) -> bool:
        is_recorded = self.before.basis is Basis.RECORDED
        is_other = self.result is None or not self.defect.may_repeat(self.result, self.before.result)
        return bool(self.missed) or (is_recorded and is_other and not self.unanswered)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The checks of all known defects that concern one device."""

    device: Availability
    release: str
    defects: tuple[DefectCheck, ...] = ()
    row: Row | None = None

    @property
    def differs(self) -> bool:
        return any(check.differs for check in self.defects)

    @property
    def unanswered(self) -> int:
        """The number of probes without an answer."""
        return sum(len(check.unanswered) for check in self.defects)


def examine(
    names: Sequence[str] = (),
    record: Path | None = None,
    executor: Executor | None = None,
    *,
    is_demanded: bool = True,
    directory: Directory = runners.HERE,
) -> Iterator[Diagnosis]:
    """Run the probes of all known defects, device by device, and cache the results for `validate --for`.

    Args:
        names: names of runners as for `compare`; empty for all.
        record: a file of records to which the results are added.
        executor: runs the probes elsewhere.
        directory: resolves names of runners; in a fleet they may begin with the name of a machine.
        is_demanded: whether to report runners that cannot run here as well.

    Raises:
        UsageError: a name is unknown, or its runner delegates to other devices.
    """
    futures = []
    with local() if executor is None else nullcontext(executor) as used_executor:
        for name in names or directory.known():
            machine, _, rest = directory.find(name).name.rpartition("/")
            find_targets([rest])  # raises an error for runners that delegate to other devices
            job = Job("doctor", (rest,), machine=machine)
            futures.append((f"{machine}/{rest}".lstrip("/"), used_executor.submit(job, (rest,))))
        for name, future in futures:
            begin(name)
            try:
                device, release, row = future.result()
                is_lost = False
            except (NotDone, Gone) as error:
                is_lost = True
                device, release, row = Availability(name, False, str(error)), "", None
            device = replace(device, runner=name)
            if row is not None:
                target = Target(row.runner, release)
                concerned = [defect for defect in all_defects() if concerns(target, defect)]
                checked = tuple([check_row(defect, target, row, history()) for defect in concerned])
                diagnosis = Diagnosis(device, release, checked, row)
                yield diagnosis
                if record is not None and not diagnosis.unanswered:
                    save_row(row, record)
            elif is_demanded or is_lost:
                yield Diagnosis(device, release)


@register("doctor")
def probe_device(name: str) -> tuple[Availability, str, Row | None]:
    """Run the probes of all known defects on a runner of this machine.

    Returns:
        The availability of the device, its release, and a record of the results. The record is None if no
            defect concerns the device, it cannot run, or it answered no probe. It is cached only if all
            probes were answered.
    """
    runner = runners.find(name)
    device, own_release = runner.availability(), next(iter(runner.versions.values()), "")
    target = Target(plain_name(runner.name), own_release)
    concerned = [defect for defect in all_defects() if concerns(target, defect)]
    if not device.is_available or not concerned:
        return device, own_release, None
    unanswered = dict[str, str]()
    results = _probe_in_parallel(runner, concerned, unanswered)
    if not results:
        reason = f"no probe was answered: {next(iter(unanswered.values()))}"
        return replace(device, is_available=False, reason=reason), own_release, None
    runtime, _, word = target.runner.partition(":")
    requested_release = release_of(runner.name)
    environment = None if requested_release is None else find_environment(requested_release)
    packages = dict(runner.versions) if environment is None else environment.wheels
    instructions = instruction_set() if runner.is_on_cpu else ""
    environment_facts = {"python": platform.python_version(), "packages": packages, "day": str(date.today())}
    row = Row(
        runtime, own_release, word, results, device.full_name, device.driver, environment_facts, instructions
    )
    if not unanswered:
        save_row(row)
    return device, own_release, row


def names_of_releases(
    names: Sequence[str], releases: Sequence[str], directory: Directory = runners.HERE
) -> list[str]:
    """Combine names of runners with releases: "CPU" and "2025.4" give "openvino@2025.4:CPU".

    Without releases the names are returned unchanged.

    Raises:
        UsageError: a release does not exist for the runners; a name already contains a release, or its
            runner delegates to other devices.
    """
    release_names = list[str]()
    for release in releases:
        count = len(release_names)
        for name in names or directory.known():
            machine, slash, rest = directory.find(name).name.rpartition("/")
            find_targets([rest])  # raises an error for delegating runners, before anything is installed
            runtime, colon, device = rest.partition(":")
            if "@" in runtime:
                raise UsageError(f"{name!r} names a release, expected none beside {Parameter('releases')}")
            release_name = f"{machine}{slash}{runtime}@{release}{colon}{device}"
            if names or (runtime in PACKAGES and parse_release(f"{runtime}@{release}").may_exist):
                with nullcontext() if names else suppress(UsageError):  # an emulated plugin has no releases
                    release_names.append(directory.find(release_name).name)
        if len(release_names) == count:
            raise UsageError(f"{release!r} is not a release of any runner here, expected one like 2025.4")
    return release_names or list(names)


def _probe_in_parallel(
    runner: Runner, defects: Sequence[Defect], unanswered: dict[str, str]
) -> dict[str, Result]:
    """Run the probes of defects in two processes; return the results by probe key."""
    results, waiting, processes = dict[str, Result](), list(reversed(defects)), (runner, runner.another())

    def work(process: Runner) -> None:
        with suppress(IndexError):
            while True:
                defect = waiting.pop()
                finished = max(len(defects) - len(waiting) - len(processes), 0)
                begin(f"{runner.name}: {finished} of {counted(len(defects), 'known defect')}")
                results.update(probe_defects(process, [defect], unanswered))

    with ThreadPoolExecutor(len(processes)) as pool:
        try:
            for future in [pool.submit(copy_context().run, work, process) for process in processes]:
                future.result()
        finally:
            waiting.clear()
            for process in processes:
                process.close()  # after an interrupt this ends running probes
    return results


def check_row(defect: Defect, target: Target, row: Row, recorded: Sequence[Row]) -> DefectCheck:
    """Compare a device's results for a defect with the records.

    If the defect depends on the instruction set, records with the same instruction set count first.
    """
    passed = {Result.RIGHT, Result.ABSENT}
    answers = {probe.name: row.results.get(key_of(defect, probe)) for probe in (*defect.probes, *defect.near)}
    unanswered = tuple(name for name, result in answers.items() if result is None)
    missed = tuple(probe.name for probe in defect.near if answers[probe.name] not in {None, *passed})
    emulator = runners.emulator(target.runner)
    result, before = result_of(defect, row), evidence(defect, target, (), recorded, emulator=emulator)
    of_runner = [
        record
        for record in recorded
        if record.runner == target.runner and result_of(defect, record) is not None
    ]
    if not defect.depends_on_instructions or not row.instructions or not of_runner:
        return DefectCheck(defect, result, before, missed, unanswered)
    same_set = [record for record in recorded if record.instructions == row.instructions != UNKNOWN]
    evidence_of_set = evidence(defect, target, (), same_set, emulator=emulator)
    if evidence_of_set.basis is Basis.RECORDED:
        return DefectCheck(defect, result, evidence_of_set, missed, unanswered)
    release = order(target.release)
    of_release = [record for record in of_runner if order(record.release) == release]
    sets = [record.instructions or UNKNOWN for record in of_release or of_runner]
    where = " and ".join(dict.fromkeys(["an unknown one" if word == UNKNOWN else word for word in sets]))
    here = "this machine has " + ("an unknown one" if row.instructions == UNKNOWN else row.instructions)
    return DefectCheck(defect, result, before, missed, unanswered, f"recorded on {where}, {here}")


def _is_same_device(older: Row, newer: Row) -> bool:
    """Return whether two records have the same device, release and (if recorded) instruction set."""
    is_same = (older.runner, older.release, older.name) == (newer.runner, newer.release, newer.name)
    return is_same and older.instructions in {"", newer.instructions}


def save_row(row: Row, path: Path | None = None) -> None:
    """Save a record in a file, or in the cache; it replaces the older record of the device.

    Raises:
        Error: the file cannot be written; errors of the cache are ignored.
    """
    file = path or cache_file()
    if file is None:
        return
    older_rows = [older for older in read_rows(file) if not _is_same_device(older, row)]
    output = Output(file, text_of([*older_rows, row]).encode())
    if path is not None:
        replace_files([output])
        return
    with suppress(OSError, Error):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_files([output])
