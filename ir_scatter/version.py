"""The version of ir_scatter, and the versions of packages on which its results depend."""

__version__ = "0.1.0"

PACKAGES = ("openvino", "onnx", "lxml", "numpy")


def version_of(package: str) -> str:
    """Return the version of a package without importing it; "" if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Return the versions by package name."""
    found = {package: version_of(package) or "not installed" for package in PACKAGES}
    return {"ir-scatter": __version__, **found}
