"""Processes of `multiprocessing` that import nothing from the current folder; it starts Python without -P."""

from multiprocessing.context import SpawnContext, SpawnProcess

from ir_scatter.core.process import safe_path


class SafeProcess(SpawnProcess):
    """A spawned process; at module level, since the process imports this class by its name."""

    def start(self) -> None:
        with safe_path():
            super().start()


class SafeSpawn(SpawnContext):
    """A context of `multiprocessing` that starts `SafeProcess`es."""

    Process = SafeProcess
