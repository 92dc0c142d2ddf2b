"""Moving ONNX models to another opset without changing what they mean."""
