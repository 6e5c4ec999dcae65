"""Parts of Python distributions that are deployed to a node."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Part:
    """One part. ``module`` is imported on the node to check that it works there. ``only``: patterns of the
    files that are used, if not all. A part that is not ``required`` is left out if it is not available."""

    distribution: str
    module: str = ""
    only: tuple[str, ...] = ()
    required: bool = True
