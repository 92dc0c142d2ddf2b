"""Spawned processes of `multiprocessing` that never import modules from the current folder.

`multiprocessing` starts Python without the option -P, so that a file in the current folder could replace a
module.
"""

from multiprocessing.context import SpawnContext, SpawnProcess

from ir_scatter.core.process import safe_path


class SafeProcess(SpawnProcess):
    """A spawned process; at module level, because the process imports this class by its name."""

    def start(self) -> None:
        with safe_path():
            super().start()


class SafeSpawn(SpawnContext):
    """A context of `multiprocessing` that starts `SafeProcess`es."""

    Process = SafeProcess
