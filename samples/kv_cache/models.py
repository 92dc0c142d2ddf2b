"""One attention step with a cache of keys and values: 2 heads of 4, 16 positions."""

from pathlib import Path
from typing import Any

import numpy as np
from openvino import opset1, opset3, opset8

from samples.ir_files import constant, parameter, save_ir
from samples.onnx_files import FLOAT, INT64, ints, node, save_onnx

_CACHE = [1, 2, 16, 4]


def write_kv_cache(folder: Path) -> None:
    """Write the network as IR with ScatterUpdate, as ONNX with ScatterElements and with TensorScatter."""
    write_ir(folder / "decoder.xml")
    write_onnx(folder / "decoder.onnx", opset=18)
    write_onnx(folder / "decoder_opset24.onnx", opset=24)


def _weights(seed: int) -> Any:
    """Return an 8 x 8 matrix that every machine computes alike."""
    return (((np.arange(64) * seed % 11) - 5) / np.float32(8)).astype(np.float32).reshape(8, 8)


def write_ir(path: Path) -> None:
    """Write the new rows of the cache with ScatterUpdate, at any number of positions."""
    hidden, position = parameter("hidden", [1, -1, 8]), parameter("position", [-1], np.int64)
    past = {name: parameter(f"past_{name}", _CACHE) for name in ("key", "value")}
    axis = constant("axis", 2)
    query = _heads(hidden, "query", 3)
    present = {
        name: opset3.scatter_update(
            past[name], position, _heads(hidden, name, seed), axis, name=f"{name}_cache/scatter"
        )
        for name, seed in (("key", 5), ("value", 7))
    }
    scores = opset1.matmul(query, present["key"], False, True, name="scores")
    mixed = opset1.matmul(
        opset8.softmax(scores, 3, name="probabilities"), present["value"], False, False, name="mix"
    )
    turned = opset1.transpose(mixed, constant("mix/order", [0, 2, 1, 3]), name="mix/turned")
    flat = opset1.reshape(turned, constant("mix/shape", [0, 0, 8]), True, name="mix/flat")
    save_ir(path, [flat, present["key"], present["value"]], [hidden, position, *past.values()])


def _heads(hidden: Any, name: str, seed: int) -> Any:
    """Project [1, t, 8] and split it: [1, 2, t, 4]."""
    matrix = constant(f"{name}/weights", _weights(seed), np.float32)
    projected = opset1.matmul(hidden, matrix, False, False, name=f"{name}/projected")
    split = opset1.reshape(projected, constant(f"{name}/shape", [0, 0, 2, 4]), True, name=f"{name}/split")
    return opset1.transpose(split, constant(f"{name}/order", [0, 2, 1, 3]), name=f"{name}/heads")


def write_onnx(path: Path, opset: int) -> None:
    """Write one new row of the cache, at a position that is an input."""
    nodes = [
        *_onnx_heads("query"),
        *_onnx_heads("key"),
        *_onnx_heads("value"),
        *(_tensor_scatter() if opset >= 24 else _scatter_elements()),
        node("Transpose", "turned_keys", "key_cache", perm=[0, 1, 3, 2]),
        node("MatMul", "scores", "query_heads", "turned_keys"),
        node("Softmax", "probabilities", "scores", axis=-1),
        node("MatMul", "mixed", "probabilities", "value_cache"),
        node("Transpose", "turned", "mixed", perm=[0, 2, 1, 3]),
        node("Reshape", "output", "turned", "flat_shape"),
    ]
    matrices = {f"{name}_weights": _weights(seed) for name, seed in (("query", 3), ("key", 5), ("value", 7))}
    shapes = {"head_shape": ints(1, 1, 2, 4), "flat_shape": ints(1, 1, 8), "row_shape": ints(1, 2, 1, 4)}
    if opset >= 24:
        del shapes["row_shape"]
    save_onnx(
        path,
        nodes,
        {"hidden": (FLOAT, [1, 1, 8]), "position": (INT64, [1])}
        | {"past_key": (FLOAT, _CACHE), "past_value": (FLOAT, _CACHE)},
        {"output": (FLOAT, [1, 1, 8]), "key_cache": (FLOAT, _CACHE), "value_cache": (FLOAT, _CACHE)},
        matrices | shapes,
        opset,
    )


def _onnx_heads(name: str) -> list[Any]:
    return [
        node("MatMul", f"{name}_projected", "hidden", f"{name}_weights"),
        node("Reshape", f"{name}_split", f"{name}_projected", "head_shape"),
        node("Transpose", f"{name}_heads", f"{name}_split", perm=[0, 2, 1, 3]),
    ]


def _scatter_elements() -> list[Any]:
    return [
        node("Expand", "rows", "position", "row_shape"),
        node("ScatterElements", "key_cache", "past_key", "rows", "key_heads", axis=2),
        node("ScatterElements", "value_cache", "past_value", "rows", "value_heads", axis=2),
    ]


def _tensor_scatter() -> list[Any]:
    return [
        node("TensorScatter", "key_cache", "past_key", "key_heads", "position"),
        node("TensorScatter", "value_cache", "past_value", "value_heads", "position"),
    ]
