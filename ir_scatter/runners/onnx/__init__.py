"""Runners of ONNX models: onnxruntime, and the reference evaluator of the onnx package."""
