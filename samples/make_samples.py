"""Write the models of this folder: `python -m samples.make_samples [FOLDER]`.

The same packages give the same bytes.
"""

import sys
from pathlib import Path

from samples.broken.models import write_broken
from samples.contract.models import write_contract
from samples.documented.models import write_documented
from samples.kv_cache.models import write_kv_cache
from samples.nested.models import write_nested
from samples.operators.models import write_operators
from samples.plugins.models import write_plugins

MADE_WITH = "2026.4"
"""The version of OpenVINO whose save_model wrote the committed files."""

_WRITERS = {
    "documented": write_documented,
    "broken": write_broken,
    "nested": write_nested,
    "kv_cache": write_kv_cache,
    "contract": write_contract,
    "plugins": write_plugins,
    "operators": write_operators,
}


def write_samples(folder: Path) -> None:
    """Write every model into a folder for its task."""
    for name, write in _WRITERS.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        write(target)


if __name__ == "__main__":
    write_samples(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
