"""Runners of OpenVINO: its devices, and its constant folding."""
