"""What OpenVINO made of the nodes of a model: kernels, precisions, times; in its process."""

from typing import Any

_TIME = "execTimeMcs"
_NOT_RUN = "not_executed"


def node_facts(compiled: Any, request: Any) -> list[dict[str, Any]]:
    """Return what `NodeFacts` holds, for every node of the runtime model.

    Args:
        compiled: the model that ran.
        request: what ran it; the times are its own.
    """
    try:
        nodes = compiled.get_runtime_model().get_ordered_ops()
    except Exception:  # AUTO and HETERO have no such model
        return []
    times = _times(request)
    return [_facts(node, times) for node in nodes if node.get_type_name() not in {"Constant", "Result"}]


def _facts(node: Any, times: dict[str, float]) -> dict[str, Any]:
    information = {name: _text(value) for name, value in node.get_rt_info().items()}
    name = node.get_friendly_name()
    written = information.get(_TIME, _NOT_RUN)
    return {
        "name": name,
        "originals": [one for one in information.get("originalLayersNames", "").split(",") if one],
        "kind": information.get("layerType", node.get_type_name()),
        "kernel": information.get("primitiveType", ""),
        "precision": information.get("runtimePrecision", ""),
        "outputs": [one for one in information.get("outputPrecisions", "").split(",") if one],
        "microseconds": times.get(name, None if written == _NOT_RUN else float(written)),
    }


def _times(request: Any) -> dict[str, float]:
    try:
        found = request.get_profiling_info()
    except Exception:  # a device that does not measure
        return {}
    return {
        one.node_name: one.real_time.total_seconds() * 1e6
        for one in found
        if "NOT_RUN" not in str(one.status)
    }


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))
