"""Files of ONNX: read lazily, copied with single nodes replaced."""
