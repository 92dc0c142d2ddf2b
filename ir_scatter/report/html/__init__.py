"""A comparison as a page with pictures: one file that needs neither a network nor a script."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ir_scatter.core.errors import UsageError

if TYPE_CHECKING:
    from ir_scatter.compare.request import Failure
    from ir_scatter.compare.result import Compared
    from ir_scatter.runners.runner import Availability

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
    found: "Sequence[Compared]",
    versions: Mapping[str, str] | None = None,
    *,
    devices: "Mapping[str, Availability] | None" = None,
    failures: "Sequence[Failure]" = (),
    skipped: Sequence[tuple[str, str]] = (),
    inputs: str | None = None,
    against: str | None = None,
) -> str:
    """Return the page; the same comparison always gives the same page.

    Args:
        found: one comparison for each model.
        versions: of the packages; None for those that are installed.
        devices: what the runners are, by their long names.
        failures: models that were not compared.
        skipped: runners that were passed over, and why.
        inputs: the file that the inputs came from; None if they were generated.
        against: the folder with the results of another time or place; None if there is none.

    Raises:
        UsageError: a package is missing.
    """
    require_packages()
    from ir_scatter.report.html.command import Source
    from ir_scatter.report.html.page import Around, make_page
    from ir_scatter.report.html.template import fill
    from ir_scatter.version import versions as installed

    known = installed() if versions is None else versions
    source = Source(inputs, against)
    around = Around(dict(known), dict(devices or {}), tuple(failures), tuple(skipped), source)
    return fill(make_page(found, around))
