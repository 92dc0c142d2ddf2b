"""Checks inputs against a contract: directly, or by generated Python source."""

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis.symbolic.feeds import ELEMENTS, FedInputs
from ir_scatter.analysis.symbolic.linear import Linear, Monomial, Symbol, SymbolKind
from ir_scatter.analysis.symbolic.proofs import leaves
from ir_scatter.analysis.symbolic.words import input_of, simplified
from ir_scatter.contract.conditions import ContractCondition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def check(requirements: Sequence[ContractCondition], feeds: "Mapping[str, ArrayLike]") -> None:
    """Raise ValueError for the first condition that inputs break; see `Contract.check`."""
    fed: dict[int, FedInputs] = {}
    for requirement in requirements:
        walker = requirement.walker
        inputs = fed.setdefault(id(walker), FedInputs(walker, feeds))
        condition = simplified(requirement.condition, walker)
        if not inputs.holds(condition):
            culprit = inputs.culprit(condition)
            expected = f"expected {requirement.text} ({requirement.node})"
            raise ValueError(f"{culprit}, {expected}" if culprit else expected)


# Python source


def python_source(path: str, conditions: Sequence[ContractCondition], unknown: Sequence[str]) -> str:
    """Return the source of a module with a function `check(feeds)`, which needs only NumPy.

    Args:
        path: the path of the model, for the module's docstring.
        conditions: the conditions to check.
        unknown: nodes without known conditions, which a comment lists as not checked.
    """
    requirements = different(conditions)
    variables: dict[str, str] = {}
    body: list[str] = []
    floats: dict[str, str] = {}
    for requirement in requirements:
        walker, condition = requirement.walker, simplified(requirement.condition, requirement.walker)
        names = {}
        for symbol in leaves(condition):
            value = input_of(symbol, walker)
            assert value is not None
            name = walker.name(value)
            names[symbol] = variables.setdefault(name, _identifier(name, variables))
            type = walker.facts.element_type(value)
            if symbol.kind in ELEMENTS and (type is None or type.kind == "float"):
                floats[names[symbol]] = name
        body += _python_check(requirement, condition, names)
    head = [
        f'"""Checks the inputs of {_plain(path)} before a run: whether every index is in range."""',
        "",
        "import numpy",
        "",
        "",
        "def check(feeds):",
        '    """Raise ValueError if an input breaks an index; `feeds` are arrays by input name."""',
    ]
    reads = [f"    {variable} = numpy.asarray(feeds[{name!r}])" for name, variable in variables.items()]
    for variable, name in floats.items():
        reads += [
            f"    if not numpy.isfinite({variable}).all():",
            f"        raise ValueError({f'{name} holds numbers that are not finite'!r})",
        ]
    notes = []
    if unknown:
        notes = [f"    # not checked, because their indices are unknown: {_plain(', '.join(unknown))}"]
    end = [] if body else ["    return"]
    return "\n".join([*head, *reads, *body, *notes, *end, *(_ELEMENT if body else [])]) + "\n"


_ELEMENT = [
    "",
    "",
    "def _element(name, array, number, column=()):",
    "    place = numpy.unravel_index(number, array.shape)",
    "    shown = ', '.join(map(str, (*place, *column)))",
    "    return f'{name}[{shown}] is {array[place]}' if shown else f'{name} is {array[place]}'",
]
"""Source of a helper that names an element in a message."""


def _plain(text: str) -> str:
    return re.sub(r"[^ -~]|[\"\\]", "?", text)


def different(requirements: Sequence[ContractCondition]) -> list[ContractCondition]:
    """Return one requirement for each different condition."""
    seen: dict[Any, ContractCondition] = {}
    for each in requirements:
        seen.setdefault((each.condition, id(each.walker)), each)
    return [*seen.values()]


def _identifier(name: str, taken: Mapping[str, str]) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "input"
    word = f"input_{word}" if word[0].isdigit() or word in {"feeds", "numpy", "check"} else word
    word = f"{word}_" if keyword.iskeyword(word) else word
    while word in taken.values():
        word += "_"
    return word


def _python_check(
    requirement: ContractCondition, condition: Linear, names: Mapping[Symbol, str]
) -> list[str]:
    """Return the source lines that raise ValueError if a condition does not hold."""
    elements = [symbol for symbol in leaves(condition) if symbol.kind in ELEMENTS]
    sized = [f"{names[symbol]}.size" for symbol in elements]
    less = {monomial: -coefficient for monomial, coefficient in condition.terms if coefficient < 0}
    more = {monomial: coefficient for monomial, coefficient in condition.terms if coefficient > 0}
    right = condition.constant if (more and less) or not more else 0
    left = -condition.constant if more and not less else 0
    test = f"{_python_sum(less, left, names)} > {_python_sum(more, right, names)}"
    lines = [f"    if {' and '.join(dict.fromkeys([*sized, test]))}:"]
    expected = f"expected {requirement.text} ({requirement.node})"
    if len(elements) != 1:
        return [*lines, f"        raise ValueError({expected!r})"]
    (symbol,) = elements
    variable = names[symbol]
    part = variable if symbol.axis < 0 else f"{variable}[..., {symbol.axis}]"
    pick = "argmin" if symbol.kind is SymbolKind.LEAST else "argmax"
    value = input_of(symbol, requirement.walker)
    assert value is not None
    column = "" if symbol.axis < 0 else f", ({symbol.axis},)"
    element = f"_element({requirement.walker.name(value)!r}, {part}, {part}.{pick}(){column})"
    return [*lines, f"        raise ValueError({element} + {f', {expected}'!r})"]


def _python(expression: Linear, names: Mapping[Symbol, str]) -> str:
    return _python_sum(expression.coefficients(), expression.constant, names)


def _python_sum(terms: Mapping[Monomial, int], constant: int, names: Mapping[Symbol, str]) -> str:
    parts = []
    for monomial, coefficient in sorted(terms.items(), key=lambda term: str(term[0])):
        factors = [_python_symbol(symbol, names) for symbol in monomial]
        parts.append(" * ".join([str(coefficient), *factors] if coefficient != 1 else factors))
    if constant or not parts:
        parts.append(str(constant))
    return " + ".join(parts).replace("+ -", "- ")


def _python_symbol(symbol: Symbol, names: Mapping[Symbol, str]) -> str:
    if symbol.dividend is not None:
        inner = _python(symbol.dividend, names)
        if symbol.truncates:
            return f"(abs({inner}) // {symbol.divisor} * (1 if {inner} >= 0 else -1))"
        return f"(({inner}) // {symbol.divisor})"
    name = names[symbol]
    if symbol.kind is SymbolKind.SIZE:
        return f"{name}.shape[{symbol.axis}]"
    if symbol.kind is SymbolKind.COUNT:
        return f"int(numpy.count_nonzero({name}))"
    part = name if symbol.axis < 0 else f"{name}[..., {symbol.axis}]"
    return f"int({part}.{'min' if symbol.kind is SymbolKind.LEAST else 'max'}())"
