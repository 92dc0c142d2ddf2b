"""Settings of hypothesis for every test, the options of all, and the figures of campaigns."""

import gc
import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis import core as hypothesis_core
from hypothesis.internal.conjecture import providers

from ir_scatter.runners import base
from tests.kept_processes import KeptChild
from tests.skips import fail_unless_allowed

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In the background of a script an interrupt is ignored, and every process that a test begins inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it

os.environ["IR_SCATTER_NO_PROGRESS"] = "1"  # else a slow machine writes lines that no test expects

_SLOW = [HealthCheck.too_slow]
_FIGURES = "figures"

settings.register_profile("ci", max_examples=12, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "long", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("nightly", max_examples=5000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
if hasattr(providers, "_get_local_constants"):
    # Some draws of hypothesis are literals of the modules imported so far, also with `derandomize`: the cases of a
    # test would change with the tests that ran before it in the same process, and with every edit of a module.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the outputs that tests compare with anew"
    )
    parser.addoption(
        "--allow-skips",
        action="store_true",
        help="skip tests for reasons that tests/skips.py does not list too",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped for a reason that is not listed."""
    report = yield
    if not item.config.getoption("--allow-skips"):
        fail_unless_allowed(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that is skipped for a reason that is not listed."""
    report = yield
    if not collector.config.getoption("--allow-skips"):
        fail_unless_allowed(report)
    return report


def is_long_profile(config: pytest.Config) -> bool:
    """Return whether this session is that of `pytest -m long`, with the settings of hypothesis for it."""
    return config.option.markexpr == "long" and "HYPOTHESIS_PROFILE" not in os.environ


def pytest_configure(config: pytest.Config) -> None:
    if is_long_profile(config):
        settings.load_profile("long")
    if (
        hypothesis_core.global_force_seed is None
    ):  # `--hypothesis-seed N` draws other cases of the nightly profile
        setattr(hypothesis_core, "global_force_seed", 0)  # noqa: B010  (its declared type is None)
    if not hasattr(config, "workerinput"):  # whose workers inherit it: no test hangs on what a machine keeps
        folder = tempfile.TemporaryDirectory(prefix="ir-scatter-cache-")
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_CACHE_HOME"] = folder.name


LONG = (
    "analysis/test_propagation.py::test_real_models",
    "analysis/test_signature.py::test_real_models",
    "campaigns/test_forms.py::test_every_rank_is_drawn",
    "campaigns/test_onnx_reader.py::test_seeds",
    "cli/test_convert_models.py",
    "cli/test_models.py",
    "compare/test_plugins.py",
    "evaluate/test_model_runtimes.py",
    "fuzz/test_campaign.py::test_what_nobody_reads_is_not_drawn",
    "fuzz/test_campaign.py::test_what_the_end_of_the_time_cuts_off_does_not_hang",
    "fuzz/test_rounds.py::test_ranks_go_up_to_eight_and_large_cases_name_many_targets",
    "formats/test_cycles.py::test_a_chain_takes_steps",
    "formats/test_ir_hostile.py::test_memory_in_proportion",
    "formats/test_ir_mutations.py::test_files_cut_at_any_byte",
    "formats/test_ir_characters.py::test_names_that_save_model_writes",
    "formats/test_ir_characters.py::test_references_in_every_attribute",
    "formats/test_ir_writer.py::test_real_models",
    "formats/test_onnx_functions.py::test_functions_that_multiply",
    "formats/test_onnx_inference.py::test_a_model_that_is_too_much",
    "formats/test_onnx_operators.py::test_every_case",
    "formats/test_onnx_read.py::test_inference_that_asks_for_all_memory",
    "core/test_atomic_write.py::test_a_kill_at_any_call",
    "core/test_atomic_write.py::test_many_at_once_of_which",
    "formats/test_xml_index.py::test_real_models",
    "ops/test_kernels_runtimes.py",
    "rewrites/test_runtimes.py",
    "jobs/test_fleet.py::test_a_scheduler_that_goes_away",
    "runners/test_broken_packages.py",
    "runners/test_ends_of_models.py",
    "runners/test_gpu_on_cpu.py",
    "runners/test_runner_models.py",
    "runners/test_tap_memory.py",
    "samples/test_readmes.py::test_commands",
    "test_a_loop_that_never_ends_is_followed_once",
    "test_real_models_hold_all",
)
"""Tests that take seconds each, by the beginnings of their names: `pytest -m long` runs them."""
takes_long = re.compile(f"(/|::)({'|'.join(map(re.escape, LONG))})").search


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what takes long, and give the campaigns of the nightly profile the time they need."""
    is_update = "UPDATE_README" in os.environ  # which is to run every command of every page
    for item in items:
        if is_update and "samples" in item.path.parts:
            continue
        is_drawn = is_long_profile(config) and is_hypothesis_test(getattr(item, "obj", None))
        if is_drawn or takes_long(f"/{item.nodeid}"):
            item.add_marker(pytest.mark.long)
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
        for item in items:
            if "campaigns" in item.path.parts:
                item.add_marker(pytest.mark.timeout(0))


STARTS_PROCESSES = {"benchmarks", "defects", "fuzz", "jobs", "runners"}
"""Folders whose tests are about the processes of runners, or run what may damage one: each has its own."""


@pytest.fixture(scope="module", autouse=True)
def kept_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the runners of other folders take over processes, rather than start them."""
    if STARTS_PROCESSES & {*request.path.parts}:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "Child", KeptChild)
        yield


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over thousands of tests that stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Iterator[Counter[str]]:
    """Counts by name; they are printed at the end of the run, whether the test passes or fails."""
    counted: Counter[str] = Counter()
    yield counted
    record_property(_FIGURES, ", ".join(f"{name} {count:,}" for name, count in counted.items()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    lines = {
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == _FIGURES and value
    }
    if lines:
        terminalreporter.section("campaigns")
        for line in sorted(lines):
            terminalreporter.write_line(line)
