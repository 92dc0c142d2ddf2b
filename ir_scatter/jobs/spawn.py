"""Processes of `multiprocessing` that import nothing from the current folder: it starts Python without -P."""

from multiprocessing.context import SpawnContext, SpawnProcess

from ir_scatter.core.process import safe_path


class SafeProcess(SpawnProcess):
    """A spawned process. The class has a module, since the process reads which one it is."""

    def start(self) -> None:
        with safe_path():
            super().start()


class SafeSpawn(SpawnContext):
    """Starts such processes."""

    Process = SafeProcess
