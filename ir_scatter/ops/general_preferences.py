"""Ranges of numbers for which operators of networks have finite results; generated inputs prefer them.

Other numbers are legal too: the square root of -1 is NaN. But then whole outputs are NaN, which hides
differences between runtimes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.value_ranges import ValueRange

_LARGEST = 8
"""Largest preferred number."""

_POSITIVE = (0.125, _LARGEST)
_UNIT = (-0.875, 0.875)

_ROWS: Mapping[str, Mapping[int, ValueRange]] = MappingProxyType(
    {
        "Sqrt": {0: _POSITIVE},
        "Log": {0: _POSITIVE},
        "Power/Pow": {0: _POSITIVE},
        "Divide/Div": {1: _POSITIVE},
        "/Reciprocal": {0: _POSITIVE},
        "BatchNormInference/BatchNormalization": {4: _POSITIVE},
        "Acos": {0: _UNIT},
        "Asin": {0: _UNIT},
        "Atanh": {0: _UNIT},
        "Acosh": {0: (1, _LARGEST)},
        "GridSample": {1: (-1, 1)},
    }
)
"""Preferred ranges by operator type and input port; "A/B" is A in OpenVINO and B in ONNX."""


def preferred_numbers(domain: str, type: str) -> Mapping[int, ValueRange]:
    """Return the preferred range of floating-point numbers, by input port of an operator."""
    return (_OPENVINO if domain == OPENVINO else _ONNX).get(type, {})


_SPLIT = [(*types.partition("/"), ports) for types, ports in _ROWS.items()]
_OPENVINO = {openvino: ports for openvino, _, _, ports in _SPLIT if openvino}
_ONNX = {onnx if slash else openvino: ports for openvino, slash, onnx, ports in _SPLIT}
