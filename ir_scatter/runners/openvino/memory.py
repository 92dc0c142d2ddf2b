"""Writes an `openvino.Model` in memory to files, because all other modules read files."""

import re
from pathlib import Path
from typing import Any

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel

_LONGEST_NAME = 80
"""Limit of characters of a file name, which comes from the name of the model."""


def is_model(one: object) -> bool:
    """Return whether an object is an `openvino.Model`, without importing openvino."""
    names = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(one).__mro__)
    return ("openvino", "Model") in names


def write_model(model: Any, folder: Path) -> Path:
    """Write a model to a folder as an IR with unchanged element types; return the path of its `.xml`.

    The model itself is not changed.

    Raises:
        UnreadableModel: openvino cannot write the model; the message contains the reason.
    """
    name = "model"
    try:
        import openvino

        name = re.sub(r"[^\w.-]", "_", model.get_friendly_name())[:_LONGEST_NAME] or name
        path = folder / f"{name}.xml"
        openvino.serialize(model, path, path.with_suffix(".bin"))
    except Exception as error:  # the message of any exception is the reason
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next((line for line in reversed(lines) if line), type(error).__name__)
        message = f"openvino cannot write the model: {reason}"
        raise UnreadableModel("unreadable-file", message, Location(f"<openvino.Model {name}>")) from error
    return path
