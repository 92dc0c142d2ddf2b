"""A cache whose positions are computed: total length minus new rows, and a copy that is off by one."""

from pathlib import Path

import numpy as np
from openvino import opset1, opset3, opset8

from samples.ir_files import constant, parameter, save_ir

_CACHE = [1, 2, 16, 4]


def write_contract(folder: Path) -> None:
    """Write the right model, and one that writes each row one position too far."""
    write_cache(folder / "cache.xml", shift=0)
    write_cache(folder / "off_by_one.xml", shift=1)


def write_cache(path: Path, *, shift: int) -> None:
    """Write new rows to the positions total - rows + shift, ..., total - 1 + shift."""
    past, rows = parameter("past", _CACHE), parameter("rows", [1, 2, -1, 4])
    total = parameter("total", [], np.int64)
    axis = constant("axis", 2)
    shape = opset3.shape_of(rows, "i64", name="shape")
    count = opset8.gather(shape, constant("rows_axis", 2), constant("of_shape", 0), name="count")
    end = opset3.add(total, constant("shift", shift), name="end") if shift else total
    start = opset3.subtract(end, count, name="start")
    positions = opset1.range(start, end, constant("step", 1), name="positions")
    present = opset3.scatter_update(past, positions, rows, axis, name="present")
    save_ir(path, [present], [past, rows, total])
