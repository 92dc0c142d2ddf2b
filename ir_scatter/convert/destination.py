"""Where a conversion may be written: never over its source, and over nothing that exists unless told so."""

import os
from pathlib import Path

from ir_scatter.core.errors import CannotWrite, UsageError
from ir_scatter.core.model import Model

_IR_SUFFIX = ".xml"


def is_ir_path(output: str) -> bool:
    """Tell whether a path is that of an IR."""
    return output.lower().endswith(_IR_SUFFIX)


def demand_destination(model: Model, output: str, *, is_ir: bool, overwrite: bool) -> None:
    """Demand that an output can be written, before any work is done for it.

    Args:
        model: the source.
        output: the path of the new model.
        is_ir: whether it is an IR.
        overwrite: whether files that exist may be replaced.

    Raises:
        UsageError: it has the name of something else, it is a file of the source, or a file exists.
        CannotWrite: it is in no folder.
    """
    from ir_scatter.convert.writing import source_files

    path = Path(output)
    if is_ir and not is_ir_path(output):
        was = "an IR cannot become an ONNX model" if output.lower().endswith(".onnx") else f"it is {output!r}"
        raise UsageError(f"{was}, expected an output that ends in {_IR_SUFFIX}")
    if not output or output.endswith(os.sep) or path.is_dir():
        raise UsageError(f"{output!r} is a folder, expected the name of a file")
    sources = source_files(model)
    for written in [path, path.with_suffix(".bin")] if is_ir else [path]:
        if any(_is_same(written, source) for source in sources):
            raise UsageError(f"{written} is a file of the model itself, expected another one or --in-place")
        if os.path.lexists(written) and not overwrite:
            raise UsageError(f"{written} exists, expected a path that is free or --overwrite")
    if not path.parent.is_dir():
        raise CannotWrite(f"{path} cannot be written: there is no folder {path.parent}")


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False
