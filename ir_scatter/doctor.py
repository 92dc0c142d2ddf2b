"""Runs the probes of known defects on devices, and holds what comes of them against the record."""

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from ir_scatter import runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.from_probe import case_of
from ir_scatter.cases.judge import judge
from ir_scatter.cases.workshop import Workshop
from ir_scatter.core.arrays import Array, same_bits
from ir_scatter.core.atomic_write import Output, replace_files
from ir_scatter.core.errors import Error, UsageError
from ir_scatter.core.instructions import UNKNOWN, instruction_set
from ir_scatter.core.temporary import temporary_folder
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

_TIMEOUT, _IN_A_ROW = 30.0, 60


class Unanswered(Error):
    """A runner gave no answer to a probe, for a reason that lies outside of it."""


def probe(
    runner: Runner, defects: Sequence[Defect], unanswered: dict[str, str] | None = None
) -> dict[str, Result]:
    """Return what becomes of the probes of defects on a runner, near misses included, by their keys.

    Those that were not answered are left out; `unanswered` gets the reasons by their keys.
    """
    found: dict[str, Result] = {}
    with temporary_folder() as folder:
        workshop = Workshop(folder, _TIMEOUT, passes_over=False)
        for defect in defects:
            for one in (*defect.probes, *defect.near):
                try:
                    found[key_of(defect, one)] = _result(workshop, runner, one)
                except Unanswered as error:
                    if unanswered is not None:
                        unanswered[key_of(defect, one)] = str(error)
    return found


def _result(workshop: Workshop, runner: Runner, one: Probe) -> Result:
    case, first = case_of(one), list[Array]()
    for answer in _answers(workshop, runner, case, one):
        if answer.status is Status.UNAVAILABLE:
            raise Unanswered(answer.message)
        if answer.status is Status.UNSUPPORTED:
            return Result.ABSENT
        if first and answer.outputs and same_bits(first[0], answer.outputs[0]).all():
            continue
        judged = judge(case, answer, first)
        if not judged.is_run:
            raise Unanswered(judged.message)
        if judged.symptom is not None:
            return judged.symptom.result
        if judged.got is not None:
            first = [judged.got]
    return Result.RIGHT


def _answers(workshop: Workshop, runner: Runner, case: Case, one: Probe) -> Iterator[Streamed]:
    """Yield what a runner answers, asked for many times one after the other as long as somebody reads on."""
    for begin in range(0, one.times, _IN_A_ROW):
        cases = [case] * min(one.times - begin, _IN_A_ROW)
        yield from workshop.stream(runner, cases, threads=one.threads, keeps_states=one.keeps_state)


@dataclass(frozen=True, slots=True)
class Checked:
    """One defect on one device.

    Attributes:
        result: what the probes gave; RIGHT if the defect is not there, None if nothing could be told.
        before: what was known of this release, or of others, before it was probed.
        missed: near misses that were not computed right, which says that the defect is larger than known.
    unanswered: probes, near misses included, that got no answer for a reason outside of the runner.
    """

    defect: Defect
    result: Result | None
    before: Evidence
    missed: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    other_processor: str = ""
    """"recorded on AVX-512, this machine has AVX2", if the defect depends on that and no record is of the
    instruction set of this machine; "" otherwise."""

    @property
    def is_here(self) -> bool:
        return self.result not in {None, Result.RIGHT}

    @property
    def is_unlike(self) -> bool:
        """Whether the result is not that of other processors, on which it may depend."""
        return bool(self.other_processor) and self._is_other

    @property
    def differs(self) -> bool:
        """Whether the record of the same release says something else, of processors like this one."""
        return self._is_other and not self.other_processor

    @property
    def _is_other(self) -> bool:
        is_recorded = self.before.basis is Basis.RECORDED
        is_other = self.result is None or not self.result.is_like(self.before.result)
        return bool(self.missed) or (is_recorded and is_other and not self.unanswered)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one device of this machine does with every probe of a known defect."""

    device: Availability
    release: str
    defects: tuple[Checked, ...] = ()
    row: Row | None = None

    @property
    def differs(self) -> bool:
        return any(one.differs for one in self.defects)

    @property
    def unanswered(self) -> int:
        """How many probes got no answer."""
        return sum(len(one.unanswered) for one in self.defects)


def examine(
    names: Sequence[str] = (),
    tell: Callable[[str], object] | None = None,
    record: Path | None = None,
    executor: Executor | None = None,
    *,
    is_demanded: bool = True,
    directory: Directory = runners.HERE,
) -> Iterator[Diagnosis]:
    """Run the probes of all known defects, device by device; what is found is kept for `validate --for`.

    Args:
        names: runners as `--on` names them; empty for all.
        is_demanded: whether to tell of those that cannot run here, too.
        tell: is told what is at work.
        record: a file of rows where what is found is entered, too.
        executor: does it elsewhere.
        directory: resolves names; those of a fleet may begin with the name of a machine.

    Raises:
        UsageError: a name is that of no runner, or of one that distributes work to other devices.
    """
    futures = []
    with local() if executor is None else nullcontext(executor) as used:
        for name in names or directory.known():
            machine, _, rest = directory.find(name).name.rpartition("/")
            find_targets([rest])  # refuses what distributes work to other devices
            job = Job("doctor", (rest,), machine=machine)
            futures.append((f"{machine}/{rest}".lstrip("/"), used.submit(job, (rest,))))
        for name, future in futures:
            if tell is not None:
                tell(name)
            try:
                device, own, row = future.result()
                is_lost = False
            except (NotDone, Gone) as error:
                is_lost = True
                device, own, row = Availability(name, False, str(error)), "", None
            device = replace(device, runner=name)
            if row is not None:
                target = Target(row.runner, own)
                concerned = [one for one in all_defects() if concerns(target, one)]
                checked = tuple([check_row(one, target, row, history()) for one in concerned])
                diagnosis = Diagnosis(device, own, checked, row)
                yield diagnosis
                if record is not None and not diagnosis.unanswered:
                    keep(row, record)
            elif is_demanded or is_lost:
                yield Diagnosis(device, own)


@register("doctor")
def probe_device(name: str) -> tuple[Availability, str, Row | None]:
    """Run the probes of all known defects on a runner of this machine; what is found is kept in the cache.

    Returns:
        What it is, its release, and what became of the probes, None if none concerns it, it cannot run, or
        it answered none of them. The cache keeps them only if all were answered.
    """
    runner = runners.find(name)
    device, own = runner.availability(), next(iter(runner.versions.values()), "")
    target = Target(plain_name(runner.name), own)
    concerned = [one for one in all_defects() if concerns(target, one)]
    if not device.is_available or not concerned:
        return device, own, None
    unanswered = dict[str, str]()
    results = _probed(runner, concerned, unanswered)
    if not results:
        reason = f"no probe was answered: {next(iter(unanswered.values()))}"
        return replace(device, is_available=False, reason=reason), own, None
    runtime, _, word = target.runner.partition(":")
    release = release_of(runner.name)
    environment = None if release is None else find_environment(release)
    packages = dict(runner.versions) if environment is None else environment.wheels
    instructions = instruction_set() if runner.is_on_cpu else ""
    about = {"python": platform.python_version(), "packages": packages, "day": str(date.today())}
    row = Row(runtime, own, word, results, device.full_name, device.driver, about, instructions)
    if not unanswered:
        keep(row)
    return device, own, row


def of_releases(
    names: Sequence[str], releases: Sequence[str], directory: Directory = runners.HERE
) -> list[str]:
    """Return the names of runners of releases: "openvino@2025.4:CPU" of "CPU"; without releases as they are.

    Raises:
        UsageError: a release is none, or none of what is named; a name holds one already, or is that of a
            runner that distributes work to other devices.
    """
    found = list[str]()
    for release in releases:
        before = len(found)
        for name in names or directory.known():
            machine, slash, rest = directory.find(name).name.rpartition("/")
            find_targets([rest])  # refuses what distributes work, before anything is installed
            runtime, colon, device = rest.partition(":")
            if "@" in runtime:
                raise UsageError(f"{name!r} names a release, expected none beside --release")
            one = f"{machine}{slash}{runtime}@{release}{colon}{device}"
            if names or (runtime in PACKAGES and parse_release(f"{runtime}@{release}").may_exist):
                with nullcontext() if names else suppress(UsageError):  # a stand-in has no releases
                    found.append(directory.find(one).name)
        if len(found) == before:
            raise UsageError(f"{release!r} is no release of what is found here, expected one like 2025.4")
    return found or list(names)


def _probed(runner: Runner, defects: Sequence[Defect], unanswered: dict[str, str]) -> dict[str, Result]:
    """Return what becomes of the probes of defects, two of which are looked at side by side."""
    found, waiting, both = dict[str, Result](), list(reversed(defects)), (runner, runner.another())

    def work(one: Runner) -> None:
        with suppress(IndexError):
            while True:
                found.update(probe(one, [waiting.pop()], unanswered))

    with ThreadPoolExecutor(len(both)) as pool:
        try:
            for done in [pool.submit(work, one) for one in both]:
                done.result()
        finally:
            waiting.clear()
            for one in both:
                one.close()  # which ends what is at work if somebody interrupts
    return found


def check_row(defect: Defect, target: Target, row: Row, recorded: Sequence[Row]) -> Checked:
    """Compare what a device made of the probes of a defect with what was recorded.

    Of a defect that depends on the instruction set, records of processors with the same one are taken.
    """
    passed = {Result.RIGHT, Result.ABSENT}
    answers = {one.name: row.results.get(key_of(defect, one)) for one in (*defect.probes, *defect.near)}
    unanswered = tuple(name for name, result in answers.items() if result is None)
    missed = tuple(one.name for one in defect.near if answers[one.name] not in {None, *passed})
    emulator = runners.emulator(target.runner)
    result, before = result_of(defect, row), evidence(defect, target, (), recorded, emulator=emulator)
    of_runner = [
        one for one in recorded if one.runner == target.runner and result_of(defect, one) is not None
    ]
    if not defect.depends_on_instructions or not row.instructions or not of_runner:
        return Checked(defect, result, before, missed, unanswered)
    alike = [one for one in recorded if one.instructions == row.instructions != UNKNOWN]
    of_same = evidence(defect, target, (), alike, emulator=emulator)
    if of_same.basis is Basis.RECORDED:
        return Checked(defect, result, of_same, missed, unanswered)
    release = order(target.release)
    of_release = [one for one in of_runner if order(one.release) == release]
    sets = [one.instructions or UNKNOWN for one in of_release or of_runner]
    where = " and ".join(dict.fromkeys(["an unknown one" if word == UNKNOWN else word for word in sets]))
    own = "this machine has " + ("an unknown one" if row.instructions == UNKNOWN else row.instructions)
    return Checked(defect, result, before, missed, unanswered, f"recorded on {where}, {own}")


def _is_same_place(row: Row, other: Row) -> bool:
    """Tell whether two rows are of one device and release, as far as the older one, `row`, says."""
    is_same = (row.runner, row.release, row.name) == (other.runner, other.release, other.name)
    return is_same and row.instructions in {"", other.instructions}


def keep(row: Row, path: Path | None = None) -> None:
    """Keep what was found, in the cache or another file, in the place of what this device gave before.

    Raises:
        Error: the file cannot be written; of the cache nobody needs to know.
    """
    file = path or cache_file()
    if file is None:
        return
    kept = [one for one in read_rows(file) if not _is_same_place(one, row)]
    output = Output(file, text_of([*kept, row]).encode())
    if path is not None:
        replace_files([output])
        return
    with suppress(OSError, Error):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_files([output])
