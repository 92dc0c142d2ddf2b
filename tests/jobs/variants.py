"""Many model files out of a few: each has another name, so that none has the bytes of another."""

import re
import sys
from collections.abc import Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from shutil import copy

import onnx

SAMPLES = Path(__file__).parents[2] / "samples"
FOLDERS = ("operators", "nested", "kv_cache", "plugins", "broken")


def sources() -> list[Path]:
    """Return small models of the samples."""
    found = (path for name in FOLDERS for path in sorted((SAMPLES / name).iterdir()))
    return [path for path in found if path.suffix in {".xml", ".onnx"}]


def make(folder: Path, count: int, first: Sequence[Path] = ()) -> None:
    """Write so many files, with their weights: each of the first ones once, then those of the samples in turn."""
    for number, source in enumerate(islice(chain(first, cycle(sources())), count)):
        name = f"v{number:05}"
        target = folder / f"{number // 100:03}" / f"{name}{source.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".xml":
            text = source.read_text(encoding="utf-8")
            target.write_text(
                re.sub(r'<net name="[^"]*"', f'<net name="{name}"', text, count=1), encoding="utf-8"
            )
            if source.with_suffix(".bin").exists():
                copy(source.with_suffix(".bin"), target.with_suffix(".bin"))
        else:
            model = onnx.load(source, load_external_data=False)
            model.doc_string = name
            target.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), [Path(one) for one in sys.argv[3:]])
