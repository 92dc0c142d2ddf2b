"""What a comparison found as a page with pictures: one file that needs neither a network nor a script."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ir_scatter.core.errors import UsageError

if TYPE_CHECKING:
    from ir_scatter.compare.request import Done

_PACKAGES = ("jinja2", "matplotlib")


def require_packages() -> None:
    """Do nothing if all packages are there that a report needs.

    Raises:
        UsageError: one is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"an HTML report needs {' and '.join(missing)}, which {verb} not installed: "
            "pip install 'ir-scatter[report]'"
        )


def render(
    done: "Done",
    *,
    versions: Mapping[str, str] | None = None,
    inputs: str | None = None,
    against: str | None = None,
) -> str:
    """The page; the same comparison always gives the same page.

    Args:
        done: what came of one call.
        versions: of the packages; None for those that are installed.
        inputs: the file that the inputs came from; None if they were generated.
        against: the folder with the results of another time or place; None if there is none.

    Raises:
        UsageError: a package is missing.
    """
    require_packages()
    from ir_scatter.report.comparison_html.difference import Source
    from ir_scatter.report.comparison_html.page import fill, make_page
    from ir_scatter.version import versions as installed

    return fill(make_page(done, installed() if versions is None else versions, Source(inputs, against)))
