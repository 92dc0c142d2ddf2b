"""Which instructions the processor of this machine has: some kernels of runtimes are chosen by them."""

import os
from pathlib import Path

UNKNOWN = "unknown"

_LIMIT = "ONEDNN_MAX_CPU_ISA"
"""The variable by which oneDNN, and so OpenVINO's CPU plugin, is told to use fewer of them."""
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
"""The flags by which Linux names a set, the largest first, and what its makers call it."""
_HALVES = (
    ("bf16", frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})),
    ("f16", frozenset({"avx512_fp16", "amx_fp16", "asimdhp"})),
)
"""The types of 16 bits, and the flags that say that the processor computes in them."""


def instruction_set(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the largest instruction set, and which types of 16 bits it computes in: "AVX-512 with bf16".

    `UNKNOWN` where the operating system does not say it in the way of Linux.
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
