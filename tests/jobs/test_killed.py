"""Commands on three workers with TLS while one after the other is killed, and a job that kills them.

IR_SCATTER_FLEET_FILES and IR_SCATTER_FLEET_SECONDS make it as large as it is wanted.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("openvino")

from tests.jobs.lab import free_port
from tests.jobs.variants import make

pytestmark = [pytest.mark.long, pytest.mark.openvino, pytest.mark.timeout(3600)]

FILES = int(os.environ.get("IR_SCATTER_FLEET_FILES", 60))
SECONDS = float(os.environ.get("IR_SCATTER_FLEET_SECONDS", 6))
ROOT = Path(__file__).parents[2]
HOSTS = {"machine", "machines", "seconds", "microseconds"}


class Lab:
    """A scheduler and workers, each a command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
        self.run("worker", "--make-certificates", "lab")
        files = (("ca", "ca.pem"), ("cert", "lab.pem"), ("key", "lab-key.pem"))
        self.tls = [word for name, file in files for word in (f"--tls-{name}", f"lab/{file}")]
        self.address = f"tls://127.0.0.1:{free_port()}"
        self.start("scheduler", "scheduler", "--listen", self.address)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", "from ir_scatter_cli.main import main; main()", *words]

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                self.command(*words, *self.tls), cwd=self.folder, env=self.environment, stderr=log, stdout=log
            )
        sign = "listens" if name == "scheduler" else "works for"
        while sign not in (self.folder / f"{name}.log").read_text():
            assert self.running[name].poll() is None, (self.folder / f"{name}.log").read_text()
            time.sleep(0.1)

    def worker(self, name: str) -> None:
        (self.folder / f"{name}.log").unlink(missing_ok=True)
        self.start(name, "worker", self.address, "--name", name)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in [*self.running]:
            self.kill(name)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    try:
        for name in "abc":
            made.worker(name)
        make(made.folder / "models", FILES)
        yield made
    finally:
        made.close()


def without_hosts(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: without_hosts(value) for key, value in found.items() if key not in HOSTS}
    return [without_hosts(one) for one in found] if isinstance(found, list) else found


def test_killed_workers_change_nothing(lab: Lab) -> None:
    words = ["compare", "--each", "models", "--on", "CPU", "--format", "json"]
    fleet = ["--scheduler", lab.address, *lab.tls]
    begun = time.monotonic()
    with (lab.folder / "fleet.json").open("wb") as file, (lab.folder / "fleet.log").open("wb") as log:
        process = subprocess.Popen(
            lab.command(*words, *fleet), cwd=lab.folder, env=lab.environment, stdout=file, stderr=log
        )
        killed = 0
        while process.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - begun > SECONDS * (killed + 1):
                name = "abc"[killed % 3]
                lab.kill(name)
                killed += 1
                lab.worker(name)
    seconds = time.monotonic() - begun
    print(f"{FILES} models, {killed} killed, {seconds:.0f} s; {(lab.folder / 'fleet.log').read_text()}")
    assert killed
    there = json.loads((lab.folder / "fleet.json").read_text())
    begun = time.monotonic()
    here = json.loads(lab.run(*words).stdout)
    print(f"here {time.monotonic() - begun:.0f} s")
    assert {one["machine"] for one in there["reports"]} == set("abc")
    assert json.dumps(without_hosts(there)) == json.dumps(without_hosts(here))
    assert process.returncode == 1


def test_a_scheduler_that_goes_away_and_comes_back(lab: Lab) -> None:
    words = ["validate", "models", "--format", "json", "--scheduler", lab.address, *lab.tls]
    process = subprocess.Popen(
        lab.command(*words),
        cwd=lab.folder,
        env=lab.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    finished = lab.folder / "cache" / "ir-scatter" / "finished"
    while not (finished.is_dir() and any(finished.iterdir())) and process.poll() is None:
        time.sleep(0.01)
    lab.kill("scheduler")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "is gone: " in err
    assert "not finished; --resume goes on with the rest" in err
    assert len(json.loads(out)["files"]) < FILES
    (lab.folder / "scheduler.log").unlink()
    lab.start("scheduler", "scheduler", "--listen", lab.address)
    while lab.run("devices", "--scheduler", lab.address, *lab.tls).returncode:
        time.sleep(0.5)
    again = lab.run(*words, "--resume")
    here = lab.run("validate", "models", "--format", "json")
    assert (again.returncode, again.stdout) == (here.returncode, here.stdout)
    assert not any(finished.iterdir())


def test_every_command(lab: Lab) -> None:
    """Devices are those of machines, and one that nobody has is named before any work."""
    fleet = ["--scheduler", lab.address, *lab.tls]
    model = next(str(path) for path in sorted((lab.folder / "models").rglob("*.xml")))
    told = json.loads(lab.run("devices", "--format", "json", *fleet).stdout)
    assert {"a/openvino:CPU", "b/openvino:CPU"} <= {
        one["runner"] for one in told["runners"] if one["available"]
    }
    missing = lab.run("compare", model, "--on", "NPU", *fleet)
    assert missing.returncode == 4
    assert "has openvino:NPU; there is " in missing.stderr
    both = json.loads(
        lab.run("compare", model, "--on", "a/CPU", "--on", "b/CPU", "--format", "json", *fleet).stdout
    )
    assert [one["runner"] for one in both["outcomes"]] == ["numpy", "a/openvino:CPU", "b/openvino:CPU"]
    assert any(line.startswith("on a: ") for line in both["about"]["a/openvino:CPU"])
    found = json.loads(lab.run("doctor", "--on", "c/CPU", "--format", "json", *fleet).stdout)
    assert [(one["runner"], one["available"]) for one in found["devices"]] == [("c/openvino:CPU", True)]
    assert any(one["is_here"] for one in found["devices"][0]["defects"])
    fuzzed = lab.run(
        "fuzz", "--on", "b/CPU", "--cases", "60", "--operator", "ScatterUpdate-3", "--format", "json", *fleet
    )
    assert json.loads(fuzzed.stdout)["runners"] == ["b/openvino:CPU"]
    assert json.loads(fuzzed.stdout)["not_run"] < 60
