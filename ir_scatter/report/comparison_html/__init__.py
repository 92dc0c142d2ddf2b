"""What a comparison found as a page with pictures: one file that needs neither a network nor a script."""

from typing import TYPE_CHECKING

from ir_scatter.core.errors import UsageError

if TYPE_CHECKING:
    from ir_scatter.compare.request import Done


def require_packages() -> None:
    """Do nothing if the package is there that a report needs.

    Raises:
        UsageError: it is missing.
    """
    from importlib.util import find_spec

    if find_spec("jinja2") is None:
        raise UsageError(
            "an HTML report needs jinja2, which is not installed: pip install 'ir-scatter[report]'"
        )


def render(done: "Done", *, inputs: str | None = None, against: str | None = None) -> str:
    """The page; the same comparison always gives the same page.

    It names the file that inputs came from, or the folder with earlier results.

    Raises:
        UsageError: a package is missing.
    """
    require_packages()
    from ir_scatter.report.comparison_html.page import fill, make_page

    return fill(make_page(done, inputs, against))
