"""The instruction set of this machine's processor: runtimes choose their kernels by it."""

import os
from pathlib import Path

UNKNOWN = "unknown"

_LIMIT = "ONEDNN_MAX_CPU_ISA"
"""Environment variable that limits the instruction set of oneDNN, and so of OpenVINO's CPU plugin."""
_UNLIMITED = frozenset({"", "ALL", "DEFAULT"})

_SETS = (
    ("amx_tile", "AMX"),
    ("avx512f", "AVX-512"),
    ("avx2", "AVX2"),
    ("avx", "AVX"),
    ("sse4_1", "SSE4"),
    ("sve", "SVE"),
    ("asimd", "NEON"),
)
"""(flag in /proc/cpuinfo, vendor's name) of each instruction set, the largest first."""
_HALVES = (
    ("bf16", frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})),
    ("f16", frozenset({"avx512_fp16", "amx_fp16", "asimdhp"})),
)
"""The 16-bit float types, each with the processor flags that mean native arithmetic in the type."""


def instruction_set(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the largest instruction set and its 16-bit types, "AVX-512 with bf16".

    Return `UNKNOWN` if the system has no /proc/cpuinfo with such flags.
    """
    try:
        lines = cpuinfo.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return UNKNOWN
    named = (line.partition(":") for line in lines)
    flags = next((text.split() for name, _, text in named if name.strip() in {"flags", "Features"}), [])
    largest = next((word for flag, word in _SETS if flag in flags), UNKNOWN)
    if largest == UNKNOWN:
        return UNKNOWN
    halves = [type for type, words in _HALVES if not words.isdisjoint(flags)]
    limit = os.environ.get(_LIMIT, "").upper()
    limited = "" if limit in _UNLIMITED else f", limited to {limit}"
    return f"{largest}{' with ' if halves else ''}{' and '.join(halves)}{limited}"
