"""Commands on three workers with TLS while one after the other is killed, and a job that kills them.

IR_SCATTER_FLEET_FILES and IR_SCATTER_FLEET_SECONDS make it as large as it is wanted; from 1,000 files on the
real models beside the checkout are among them.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("openvino")

from tests.jobs.commands import ROOT, Lab
from tests.jobs.variants import make
from tests.processes import running

pytestmark = [pytest.mark.long, pytest.mark.openvino, pytest.mark.timeout(3600)]

FILES = int(os.environ.get("IR_SCATTER_FLEET_FILES", 90))
SECONDS = float(os.environ.get("IR_SCATTER_FLEET_SECONDS", 6))
REAL = ROOT.parent / "shared" / "models"
AT_WORK = 12  # three machines hold so many jobs at once
HOSTS = {"machine", "machines", "seconds", "microseconds"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    try:
        for name in "abc":
            made.worker(name)
        real = [path for path in sorted(REAL.rglob("*.*")) if path.suffix in {".xml", ".onnx"}]
        make(made.folder / "models", FILES, real if FILES >= 1000 else ())
        yield made
    finally:
        made.close()


def without_hosts(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: without_hosts(value) for key, value in found.items() if key not in HOSTS}
    return [without_hosts(one) for one in found] if isinstance(found, list) else found


def test_killed_workers_change_nothing(lab: Lab) -> None:
    """What a killed machine was at is finished before the next is killed: two of them would make it guilty."""
    words = ["compare", "--each", "models", "--on", "CPU", "--format", "json"]
    begun, finished = time.monotonic(), lab.folder / "cache" / "ir-scatter" / "finished"
    with (lab.folder / "fleet.json").open("wb") as file, (lab.folder / "fleet.log").open("wb") as log:
        process = subprocess.Popen(
            lab.command(*words, *lab.fleet), cwd=lab.folder, env=lab.environment(), stdout=file, stderr=log
        )
        killed, last, wanted = 0, begun, 2 * AT_WORK
        while process.poll() is None:
            time.sleep(0.1)
            is_time = not killed or time.monotonic() - last > SECONDS
            count = len(list(finished.iterdir())) if is_time and finished.is_dir() else 0
            if count >= wanted:
                name = "abc"[killed % 3]
                lab.kill(name)
                killed, last, wanted = killed + 1, time.monotonic(), count + 2 * AT_WORK
                lab.worker(name)
    seconds = time.monotonic() - begun
    print(f"{FILES} models, {killed} killed, {seconds:.0f} s; {(lab.folder / 'fleet.log').read_text()}")
    assert killed
    there = json.loads((lab.folder / "fleet.json").read_text())
    begun = time.monotonic()
    local = lab.run(*words)
    here = json.loads(local.stdout)
    print(f"here {time.monotonic() - begun:.0f} s")
    # models without their weights stay here, where that is told best
    assert {one["machine"] for one in there["reports"] if "machine" in one} == set("abc")
    assert json.dumps(without_hosts(there)) == json.dumps(without_hosts(here))
    assert process.returncode == local.returncode


def test_a_scheduler_that_goes_away_and_comes_back(lab: Lab) -> None:
    words = ["validate", "models", "--format", "json", *lab.fleet]
    finished = lab.folder / "cache" / "ir-scatter" / "finished"
    with running(lab.command(*words), **lab.pipes()) as process:
        while not (finished.is_dir() and any(finished.iterdir())) and process.poll() is None:
            time.sleep(0.01)
        lab.kill("scheduler")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "is lost: " in err
    assert "not finished; continue with --resume" in err
    assert len(json.loads(out)["files"]) < FILES
    (lab.folder / "scheduler.log").unlink()
    lab.start("scheduler", "scheduler", "--listen", lab.address)
    while lab.run("devices", *lab.fleet).returncode:
        time.sleep(0.5)
    again = lab.run(*words, "--resume")
    here = lab.run("validate", "models", "--format", "json")
    assert (again.returncode, again.stdout) == (here.returncode, here.stdout)
    assert not any(finished.iterdir())


def test_who_interrupts_gets_what_is_finished(lab: Lab) -> None:
    """The machines stop what they were at, and somebody else can work there at once."""
    command = lab.command("compare", "--each", "models", "--on", "CPU", "--format", "json", *lab.fleet)
    finished = lab.folder / "cache" / "ir-scatter" / "finished"
    with running(command, **lab.pipes()) as process:
        while not (finished.is_dir() and len(list(finished.iterdir())) > 1) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    told = json.loads(out)
    assert 0 < len(told["reports"]) < FILES
    missing = FILES - len(told["reports"]) - len(told["failures"])
    assert told["interrupted"] == f"interrupted: {missing} of {FILES} models were not finished"
    model = next(str(path) for path in sorted((lab.folder / "models").rglob("*.onnx")))
    assert lab.run("validate", model, *lab.fleet).returncode in {0, 1}


def test_every_command(lab: Lab) -> None:
    """Devices are those of machines, and one that nobody has is named before any work."""
    model = str(max((lab.folder / "models").rglob("*.xml")))  # the last is of the samples: it has its weights
    told = json.loads(lab.run("devices", "--format", "json", *lab.fleet).stdout)
    assert {"a/openvino:CPU", "b/openvino:CPU"} <= {
        one["runner"] for one in told["runners"] if one["available"]
    }
    missing = lab.run("compare", model, "--on", "NPU", *lab.fleet)
    assert missing.returncode == 4
    assert "has openvino:NPU; there is " in missing.stderr
    both = json.loads(
        lab.run("compare", model, "--on", "a/CPU", "--on", "b/CPU", "--format", "json", *lab.fleet).stdout
    )
    assert [one["runner"] for one in both["outcomes"]] == ["numpy", "a/openvino:CPU", "b/openvino:CPU"]
    assert any(line.startswith("on a: ") for line in both["about"]["a/openvino:CPU"])
    found = json.loads(lab.run("doctor", "--on", "c/CPU", "--format", "json", *lab.fleet).stdout)
    assert [(one["runner"], one["available"]) for one in found["devices"]] == [("c/openvino:CPU", True)]
    assert any(one["is_here"] for one in found["devices"][0]["defects"])
    fuzzed = lab.run(
        "fuzz",
        "--on",
        "b/CPU",
        "--cases",
        "60",
        "--operator",
        "ScatterUpdate-3",
        "--format",
        "json",
        *lab.fleet,
    )
    assert json.loads(fuzzed.stdout)["runners"] == ["b/openvino:CPU"]
    assert json.loads(fuzzed.stdout)["not_run"] < 60


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_worker_that_is_stopped_leaves_nothing(lab: Lab, name: str, code: int) -> None:
    """It ends as an interrupted command does, its child too, and the scheduler knows that it is gone."""
    lab.worker("stopped")
    model = next(str(path) for path in sorted((lab.folder / "models").rglob("*.onnx")))
    assert lab.run("validate", model, *lab.fleet).returncode in {0, 1}
    process = lab.running.pop("stopped")
    children = children_of(process.pid)
    process.send_signal(getattr(signal, name))
    assert process.wait(timeout=60) == code
    assert "Traceback" not in (lab.folder / "stopped.log").read_text()
    for child in children:
        await_end(child)
    while "stopped" in lab.run("devices", "--format", "json", *lab.fleet).stdout:
        time.sleep(0.2)
    assert lab.run("validate", model, *lab.fleet).returncode in {0, 1}


def children_of(process: int) -> list[int]:
    """Return the ids of the processes that a process started."""
    lines = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(line) for line in lines]


def await_end(process: int) -> None:
    """Wait until a process is gone, or only waits to be collected."""
    while True:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
