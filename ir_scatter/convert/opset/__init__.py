"""Converts ONNX models to another opset without changing results."""
