"""Says in words which kind of machine runs a cell."""

import os
import re
from pathlib import Path


def machine_in_words() -> str:
    """``2 cores, Intel(R) Xeon(R) Processor``: what kind of machine, not which one."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return f"{os.cpu_count()} cores, {found[1].strip() if found else 'processor not known'}"
