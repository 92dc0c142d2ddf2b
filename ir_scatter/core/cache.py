"""Where things are kept that can be made again."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path | None:
    """Return this library's folder in the user's cache, which may not be there yet; None without a home."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not told.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            return None
        usual = {"win32": home / "AppData" / "Local", "darwin": home / "Library" / "Caches"}
        told = usual.get(sys.platform, home / ".cache")
    return told / "ir-scatter"
