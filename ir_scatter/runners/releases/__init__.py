"""Runners of other releases of OpenVINO and onnxruntime than the one installed, side by side in the cache."""
