"""What this machine's processor can do."""

import contextlib

BFLOAT16 = {"amx_bf16", "avx512_bf16"}  # flags of processors on which TensorFlow's products are twice as fast


def multiplies_bfloat16_fast() -> bool:
    """Return whether the processor multiplies bfloat16 in hardware; only Linux tells."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        return any(BFLOAT16 & set(line.split()) for line in file if line.startswith("flags"))
    return False
