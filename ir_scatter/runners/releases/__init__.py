"""Runners of other releases of OpenVINO and onnxruntime, which are installed into the user's cache."""
