"""Runners of other releases of OpenVINO and onnxruntime than the installed one.

They are kept in the cache.
"""
