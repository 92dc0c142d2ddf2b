"""The version of ir_scatter, and those of the packages that matter to what it finds."""

__version__ = "0.1.0"

PACKAGES = ("openvino", "onnx", "lxml", "numpy")


def versions() -> dict[str, str]:
    """Return the versions by package name, without importing the packages."""
    from importlib import metadata

    found = {"ir-scatter": __version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
