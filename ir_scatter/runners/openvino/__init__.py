"""Runners of OpenVINO: its devices, its GPU plugin without a GPU, its constant folding."""
