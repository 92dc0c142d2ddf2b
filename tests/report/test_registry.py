"""The types of the registry's overloads and options are those of the renderers."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from ir_scatter.report import registry

FOLDER = Path(registry.__file__).parent


class Names(ast.NodeTransformer):
    """Replaces imported names by their full names, and strings in annotations by what they hold."""

    def __init__(self, tree: ast.Module) -> None:
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        self.full = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in imports
            for alias in node.names
        }

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.full.get(node.id, node.id))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node


def annotation(names: Names, node: ast.expr | None) -> str:
    assert node is not None
    return ast.unparse(names.visit(node))


def functions(path: Path) -> Iterator[tuple[Names, ast.FunctionDef]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "render":
            yield Names(tree), node


def overloads() -> dict[str, str]:
    """Return the type of each result, from the overloads of `render`."""
    types = {}
    for names, function in functions(FOLDER / "registry.py"):
        result, _, value = function.args.args
        if function.decorator_list:
            assert isinstance(result.annotation, ast.Subscript)
            assert isinstance(result.annotation.slice, ast.Constant)
            types[str(result.annotation.slice.value)] = annotation(names, value.annotation)
    return types


def options() -> dict[str, str]:
    """Return the type of each option, from `RenderOptions`."""
    tree = ast.parse((FOLDER / "registry.py").read_text(encoding="utf-8"))
    (record,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    names = Names(tree)
    fields = (node for node in record.body if isinstance(node, ast.AnnAssign))
    return {ast.unparse(field.target): annotation(names, field.annotation) for field in fields}


RENDERERS = [(result, format) for result in overloads() for format in registry.formats(result)]


@pytest.mark.parametrize(("result", "format"), RENDERERS)
def test_a_renderer_has_the_types_of_the_registry(result: str, format: str) -> None:
    module, package = FOLDER / f"{result}_{format}.py", FOLDER / f"{result}_{format}" / "__init__.py"
    ((names, function),) = functions(module if module.exists() else package)
    (value,) = function.args.args
    assert annotation(names, value.annotation) == overloads()[result]
    assert annotation(names, function.returns) == "str"
    types = {argument.arg: annotation(names, argument.annotation) for argument in function.args.kwonlyargs}
    assert types == {name: options().get(name) for name in types}


def test_every_result_and_option_is_used() -> None:
    paths = chain(FOLDER.glob("*_*.py"), FOLDER.glob("*_*/__init__.py"))
    renderers = {path: list(functions(path)) for path in paths}
    used = {
        argument.arg
        for found in renderers.values()
        for _, function in found
        for argument in function.args.kwonlyargs
    }
    assert used == set(options())
    results = {
        (path.stem if path.stem != "__init__" else path.parent.name).partition("_")[0]
        for path, found in renderers.items()
        if found
    }
    assert results == set(overloads())
