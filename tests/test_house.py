"""The shape of the library: its size, its imports, and that what is the same has the same name."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ir_scatter import runners

LIBRARY = Path(__file__).resolve().parent.parent / "ir_scatter"
MODULES = {
    ".".join(("ir_scatter", *path.relative_to(LIBRARY).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(LIBRARY.rglob("*.py"))
}


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the modules that a file imports, wherever in the file."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def strings(text: str) -> tuple[str, ...]:
    """Return the literals of a module, docstrings aside."""
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    literals = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return tuple(node.value for node in literals if isinstance(node.value, str))


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return groups of modules that reach each other."""

    def reached(start: str) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            for other in graph[waiting.pop()] - found:
                found.add(other)
                waiting.append(other)
        return found

    reach = {module: reached(module) for module in graph}
    groups = {frozenset(other for other in reach[module] if module in reach[other]) for module in graph}
    return [set(group) for group in groups if group]


def test_a_circle_is_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}
    assert sorted(map(sorted, circles(graph))) == [["b", "c"], ["d"]]


TAG = re.compile(r"</?[a-z][a-z0-9]*( [a-z-]+=|>)")


def test_templates_alone_make_html() -> None:
    """What is escaped automatically cannot be forgotten."""
    tagged = {
        name
        for name, path in MODULES.items()
        if name.startswith("ir_scatter.report")
        if any(map(TAG.search, strings(path.read_text())))
    }
    assert tagged == set()
    for template in (LIBRARY / "report" / "templates").glob("*.j2"):
        for marked in re.findall(r"(\w+(?:\.\w+)*)\|safe", template.read_text()):
            assert marked in {"picture.image", "picture.scale"}, template.name


@cache
def layer_numbers() -> dict[str, int]:
    """Return for each package or module of the layers contract how many lines are above it."""
    settings = tomllib.loads((LIBRARY.parent / "pyproject.toml").read_text())
    lines = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return {name: number for number, line in enumerate(lines) for name in line.split(" | ")}


def upward_names(module: str, text: str) -> list[str]:
    """Return strings of a module that name modules of a higher layer, docstrings aside."""
    numbers = layer_numbers()
    own = next((numbers[name] for name in numbers if f"{module}.".startswith(f"{name}.")), -1)
    names = [
        name for string in strings(text) for name in re.findall(r"\bir_scatter(?:_cli)?(?:\.\w+)*", string)
    ]
    above = [name for name, number in numbers.items() if number < own]
    return [name for name in names if any(f"{name}.".startswith(f"{one}.") for one in above)]


def test_a_string_that_names_a_higher_layer_is_seen() -> None:
    text = '"""ir_scatter.doctor"""\nROWS = {"a": "ir_scatter.doctor:probe", "b": "ir_scatter.core.model"}'
    assert upward_names("ir_scatter.jobs", text) == ["ir_scatter.doctor"]
    assert upward_names("ir_scatter.report.page", text) == []


def test_no_module_names_one_of_a_higher_layer_in_a_string() -> None:
    found = {module: upward_names(module, path.read_text()) for module, path in MODULES.items()}
    assert {module: names for module, names in found.items() if names} == {}


def test_no_modules_import_each_other() -> None:
    graph = {module: set(imports(path)) & MODULES.keys() for module, path in MODULES.items()}
    assert circles(graph) == []


def test_both_dialects_have_the_same_file_names() -> None:
    same = {
        "formats": ("__init__", "checks", "dataflow", "graph", "index", "reader", "writer"),
        "runners": ("__init__", "child", "runner", "taps"),
    }
    for package, names in same.items():
        for folder in ("onnx", "openvino"):
            assert {path.stem for path in (LIBRARY / package / folder).glob("*.py")} >= set(names)


SEAMS = {
    "ir_scatter.formats": "the folder of IRs has the name of its runtime",
    "ir_scatter.core.model": "the dialect of an IR has the name of its runtime",
    "ir_scatter.report.routes_json": "the dialect of an IR has the name of its runtime",
    "ir_scatter.report.records.routes": "the dialect of an IR has the name of its runtime",
    "ir_scatter.version": "versions of installed packages, of which one has the name of its runtime",
    "ir_scatter.formats.onnx.checks": "the runtime that refuses a file, a fact about the file",
}
"""Modules that may spell the name of a runtime, and why; those of runners and of known defects besides."""
KNOWING = ("ir_scatter.runners", "ir_scatter.defects")
WITHOUT_FACTS = {"ir_scatter.defects", "ir_scatter.defects.base", "ir_scatter.defects.evidence"}
"""Modules of known defects that hold no table by runner."""
OF_A_RUNTIME = {
    "ir_scatter.convert.to_ir": "it exports by OpenVINO",
    "ir_scatter.lint": "OpenVINO propagates shapes",
    "ir_scatter.notebook.sources": "it reads models that OpenVINO holds",
    "ir_scatter.report.comparison_html": "its pages say how far the emulated GPU plugin is like a GPU",
}
"""Modules that use a function which one runtime alone has, and why."""


def runtime_names(text: str) -> list[str]:
    """Return the literals that are the name of a runner or begin one, without docstrings."""
    runtimes = {name.partition(":")[0] for name in runners.known()}
    name = re.compile(rf"(?:{'|'.join(runtimes)})(?:[:@]\S*)?")
    return [word for word in strings(text) if name.fullmatch(word)]


def test_the_name_of_a_runtime_is_seen() -> None:
    text = '"""openvino:CPU"""\nNAME = "onnxruntime"\ntext = f"openvino:{NAME}"\nhelp = "openvino does it"'
    assert runtime_names(text) == ["onnxruntime", "openvino:"]


def test_runners_alone_spell_names_of_runtimes() -> None:
    free = {name for name in MODULES if name.startswith(KNOWING)} - WITHOUT_FACTS
    spelled = {name: runtime_names(MODULES[name].read_text()) for name in MODULES.keys() - free}
    assert {name: words for name, words in spelled.items() if words and name not in SEAMS} == {}
    assert {name for name in SEAMS if not spelled[name]} == set()


def test_no_other_module_imports_a_runtime_folder() -> None:
    folders = tuple(
        f"ir_scatter.runners.{path.parent.name}."
        for path in LIBRARY.glob("runners/*/runner.py")
        if path.parent.name != "releases"  # environments of any runtime
    )
    found = {
        name
        for name, path in MODULES.items()
        if not name.startswith("ir_scatter.runners")
        and any(module.startswith(folders) for module in imports(path))
    }
    assert found == OF_A_RUNTIME.keys()


VAGUE = frozenset(
    [
        "one",
        "found",
        "known",
        "told",
        "given",
        "wanted",
        "made",
        "own",
        "shown",
        "other",
        "others",
        "what",
        "x",
        "tmp",
        "ret",
        "res",
        "val",
    ]
)
"""Names that say nothing of what they hold."""
MOST_VAGUE = 0.006
"""Their share of all bindings; this bound only falls."""


def bindings(path: Path) -> Iterator[str]:
    """Yield the names of variables and parameters that a module binds."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_bindings_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def f(one, *, b):\n    found = [x for x in b]\n    return found\n")
    assert sorted(bindings(path)) == ["b", "found", "one", "x"]


def test_few_names_are_vague() -> None:
    sources = [*LIBRARY.rglob("*.py"), *(LIBRARY.parent / "cli").rglob("*.py")]
    names = Counter(name for path in sources for name in bindings(path))
    assert sum(names[name] for name in VAGUE) <= MOST_VAGUE * names.total()


def test_no_public_class_is_defined_twice() -> None:
    places: dict[str, list[Path]] = {}
    for path in (*LIBRARY.rglob("*.py"), *(LIBRARY.parent / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    assert [name for name, paths in places.items() if len(paths) > 1] == []


def test_words_have_the_owner_that_the_page_names() -> None:
    page = (LIBRARY / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(\w+)` \| `(ir_scatter/[\w/]+\.py)` \|$", page, re.MULTILINE)
    assert len(rows) > 10
    for name, path in rows:
        assert re.search(rf"^class {name}\b", (LIBRARY.parent / path).read_text(), re.MULTILINE), name
