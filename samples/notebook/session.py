"""The notebook of this folder: `python -m samples.notebook.session` runs it in a kernel and writes it.

That needs nbclient and ipykernel, which the extra `test` has.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NAME = "session.ipynb"

CELLS = (
    """\
# A session with ir_scatter

What a model does with its scatter operators, where it breaks their documents, and how to mend it. Models come
from paths, bytes, open files, `onnx.ModelProto` and `openvino.Model`.""",
    """\
import ir_scatter as irs

model = irs.read("../broken/scatter_nd_update.xml")
model""",
    """\
import onnx
import openvino

live = openvino.Core().read_model("../kv_cache/decoder.xml")
irs.read(onnx.load("../kv_cache/decoder.onnx")), irs.read(live)""",
    """\
node = model.scatter_nodes[-1]
node.operator, node.shapes, str(node.indices), node.attributes""",
    """\
## What is wrong

A list of findings; `print(found)` shows the text of the command line, `found.to_pandas()` gives a
`DataFrame`.""",
    """\
found = irs.validate(model, select="SCT3")
found""",
    """print(*irs.explain(found[0].code).splitlines()[:9], sep="\\n")""",
    """\
## What an operator should give

Its document, computed with NumPy; without a version the newest.""",
    'irs.evaluate("ScatterElements", data=[1, 2, 3, 4], indices=[3, 0], updates=[40, 10])',
    """\
try:
    irs.evaluate("ScatterUpdate", data=[1, 2, 3], indices=[3], updates=[9], axis=0)
except irs.Error as error:
    print(error)""",
    """\
## Another operator, and what a device makes of it

`conversion.write("new.xml")` writes the model. The comparison runs in a process of its own.""",
    """\
legal = "../operators/scatter_update_3_axis_0.xml"
conversion = irs.convert(legal, to="ScatterNDUpdate")
conversion""",
    'irs.compare(legal, on=["numpy", "CPU"])',
)
"""The sources of cells; those with code begin with a name in small letters."""


def bare() -> dict[str, Any]:
    """Return the notebook as nbformat has it, before anything has run."""
    cells: list[dict[str, Any]] = []
    for number, source in enumerate(CELLS, 1):
        is_code = source[0].islower()
        more: dict[str, Any] = {"execution_count": None, "outputs": []} if is_code else {}
        cell_type = "code" if is_code else "markdown"
        cells.append(
            {"cell_type": cell_type, "id": f"cell-{number}", "metadata": {}, "source": source, **more}
        )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def run(folder: Path = FOLDER) -> dict[str, Any]:
    """Return the notebook with what a Jupyter kernel makes of it; `folder` is the kernel's."""
    client, format = import_module("nbclient"), import_module("nbformat")
    notebook = format.from_dict(bare())
    resources = {"metadata": {"path": str(folder)}}
    client.NotebookClient(notebook, timeout=120, record_timing=False, resources=resources).execute()
    found: dict[str, Any] = json.loads(json.dumps(notebook))
    found["metadata"].pop("language_info", None)  # the version of Python
    return found


def text(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    (FOLDER / NAME).write_text(text(run()), encoding="utf-8")
