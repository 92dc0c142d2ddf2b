"""A scheduler and workers with TLS, each a command of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.jobs.lab import free_port

ROOT = Path(__file__).parents[2]


class Lab:
    """A scheduler and workers, each a command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
        self.run("worker", "--make-certificates", "lab")
        files = (("ca", "ca.pem"), ("cert", "lab.pem"), ("key", "lab-key.pem"))
        self.tls = [word for name, file in files for word in (f"--tls-{name}", f"lab/{file}")]
        self.address = f"tls://127.0.0.1:{free_port()}"
        self.start("scheduler", "scheduler", "--listen", self.address)
        self.fleet = ["--scheduler", self.address, *self.tls]

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", "from ir_scatter_cli.main import main; main()", *words]

    def environment(self, packages: str = "") -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (packages, str(ROOT), str(ROOT / "cli")))),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }

    def pipes(self) -> dict[str, Any]:
        """Return the arguments of a process whose output a test reads."""
        pipe = subprocess.PIPE
        return {"cwd": self.folder, "env": self.environment(), "stdout": pipe, "stderr": pipe}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, name: str, *words: str, packages: str = "") -> None:
        command, environment = self.command(*words, *self.tls), self.environment(packages)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, cwd=self.folder, env=environment, stderr=log, stdout=log
            )
        sign = "listens" if name == "scheduler" else "works for"
        while sign not in (self.folder / f"{name}.log").read_text():
            assert self.running[name].poll() is None, (self.folder / f"{name}.log").read_text()
            time.sleep(0.1)

    def worker(self, name: str, packages: str = "") -> None:
        """Start a worker; with a folder of packages these come before those that are installed."""
        (self.folder / f"{name}.log").unlink(missing_ok=True)
        self.start(name, "worker", self.address, "--name", name, packages=packages)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in [*self.running]:
            self.kill(name)
