"""Parts of Python distributions: what is deployed to a node, and no more."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Part:
    """``module`` is imported on the node to see that it works there. ``only``: patterns of the files that are
    used, if not all are. What is not ``required`` is left out where it is not to be had."""

    distribution: str
    module: str = ""
    only: tuple[str, ...] = ()
    required: bool = True
