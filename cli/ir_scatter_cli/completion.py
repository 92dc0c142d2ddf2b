"""Shell completion of option values.

Large models are not read, since the user waits for the completion.
"""

import os
from collections.abc import Iterator
from itertools import islice

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    split_arg_string,
)

from ir_scatter.core.files import SUFFIXES

_LARGEST_MODEL = 1 << 25
"""Maximum size in bytes of a model that is read for completion: larger ones take noticeable time."""
_MOST_NODES = 200
"""Maximum node names offered: more would not fit on a screen."""


def complete(kind: str, incomplete: str) -> list[CompletionItem[str]]:
    """Return the words of a kind with this beginning (case does not matter), each with its help text."""
    words = globals()[kind](incomplete)
    return [CompletionItem(word, help=words[word] or None) for word in words if _begins(word, incomplete)]


def _begins(word: str, incomplete: str) -> bool:
    return word.lower().startswith(incomplete.lower())


# Kinds: a function each, which returns words with their help


def codes(incomplete: str) -> dict[str, str]:
    """Return codes of rules, and names once a word is begun; completes the last item of "A,B,C"."""
    from ir_scatter.explain import REFUSAL, catalogue

    done, comma, word = incomplete.rpartition(",")
    entries = [entry for entry in catalogue() if entry.severity != REFUSAL]
    words = {entry.code: entry.name for entry in entries}
    words |= {entry.name: entry.code for entry in entries} if word else {}
    return {f"{done}{comma}{code}": help for code, help in words.items()}


def topics(_: str) -> dict[str, str]:
    from ir_scatter.explain import catalogue, pages

    rules = dict(
        pair for entry in catalogue() for pair in ((entry.code, entry.name), (entry.name, entry.code))
    )
    return {**rules, **dict.fromkeys((*_operators(None), *pages()), "")}


def operators(_: str) -> dict[str, str]:
    return dict.fromkeys(_operators(_domain()), "")


def targets(_: str) -> dict[str, str]:
    """Return target operators of rewrites, in the dialect of the model on the command line."""
    from ir_scatter.rewrites import all_rewrites

    reachable = {str(rewrite.target.key) for rewrite in all_rewrites()}
    reachable |= {name.rpartition("-")[0] for name in reachable}
    return {name: "" for name in _operators(_domain()) if name in reachable}


def conditions(_: str) -> dict[str, str]:
    from ir_scatter.analysis.conditions import Condition

    return dict.fromkeys(Condition, "")


def runners(incomplete: str) -> dict[str, str]:
    """Return full and short names of runners, including numpy."""
    return {"numpy": "", **devices(incomplete)}


def devices(_: str) -> dict[str, str]:
    from ir_scatter import runners

    return {name: "" for long in runners.known() for name in (long, runners.short(long))}


def nodes(incomplete: str) -> dict[str, str]:
    """Return the scatter nodes of the model on the command line."""
    from ir_scatter.analysis.constants import Facts
    from ir_scatter.analysis.scatter_node import scatter_nodes
    from ir_scatter.reading import read

    path = _model()
    if path is None or os.path.getsize(path) > _LARGEST_MODEL:
        return {}
    model = read(path)
    types = {node.node.scope: node.lookup.type for node in scatter_nodes(model, Facts(0, model))}
    matches = (pair for pair in types.items() if _begins(pair[0], incomplete))
    return dict(islice(matches, _MOST_NODES))


def _operators(domain: str | None) -> Iterator[str]:
    """Yield the names of scatter operators, without and with their versions."""
    from ir_scatter.ops.lookup import SPECS

    keys = [key for key in SPECS if domain is None or key.domain == domain]
    yield from dict.fromkeys(name for key in keys for name in (key.type, str(key)))


def _model() -> str | None:
    """Return the path of the model on the command line, before or after the cursor."""
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    paths = (os.path.expanduser(word) for word in words if word.lower().endswith(SUFFIXES))
    return next(filter(os.path.isfile, paths), None)


def _domain() -> str | None:
    """Return the operator domain of the model on the command line; None without a model."""
    from ir_scatter import formats
    from ir_scatter.core.model import ONNX, OPENVINO
    from ir_scatter.formats.base import IR

    path = _model()
    return None if path is None else OPENVINO if formats.format_of(path) == IR else ONNX


@add_completion_class
class Bash(BashComplete):
    """Completion for bash: handles words with colons, where bash splits words; quotes special characters."""

    source_template = """\
%(complete_func)s() {
    local before=${COMP_LINE:0:COMP_POINT} type value word prefix=
    word=${before##*[[:space:]]}
    [[ $COMP_WORDBREAKS == *:* ]] && prefix=${word%%"${word##*:}"}
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *[^[:alnum:]_@%%+=:,./-]* ]] && printf -v value '%%q' "$value"
                COMPREPLY+=("${value#"$prefix"}") ;;
        esac
    done < <(env COMP_WORDS="$COMP_LINE" COMP_CWORD="$before" %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words before the cursor, and the incomplete word at it."""
        before = os.environ["COMP_CWORD"]
        if before.isdigit():  # a script generated by an older version
            return super().get_completion_args()
        words = split_arg_string(before)
        incomplete = words.pop() if len(words) > 1 and not before[-1:].isspace() else ""
        return words[1:], incomplete


@add_completion_class
class Fish(FishComplete):
    """Completion for fish: handles words with commas."""

    source_template = FishComplete.source_template.replace('split ","', 'split -m 1 ","')
