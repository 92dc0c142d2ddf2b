"""Moving ONNX models to another opset without changing what they mean."""

from ir_scatter.opsets.misread import agreed_opset
from ir_scatter.opsets.move import Move, Obstacle, lowest_opset, plan_move

__all__ = ["Move", "Obstacle", "agreed_opset", "lowest_opset", "plan_move"]
