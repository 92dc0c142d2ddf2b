"""Runs models on OpenVINO's GPU plugin without a GPU: what happens in its process."""

from ir_scatter.runners import gpu_on_cpu
from ir_scatter.runners.openvino import child as openvino


def main() -> None:
    """Load what the plugin needs, before anything imports openvino, and serve."""
    gpu_on_cpu.prepare()
    openvino.main()
