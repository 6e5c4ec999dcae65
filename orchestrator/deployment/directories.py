"""Where deployment stores its files on this machine, following the XDG base directories."""

import os
from pathlib import Path


def cache() -> Path:
    """Returns the folder of packed layers, which may be deleted at any time."""
    return _base("XDG_CACHE_HOME", ".cache") / "rove"


def wheel_house() -> Path:
    """Returns the folder of wheels for nodes that are not like this machine."""
    return _base("XDG_DATA_HOME", ".local/share") / "rove" / "wheels"


def _base(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable)
    return Path(chosen) if chosen else Path.home() / default
