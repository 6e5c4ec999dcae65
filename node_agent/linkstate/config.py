"""Where an agent reads network costs from, as its configuration says it."""

from msgspec import Struct

from node_agent.linkstate.probe.core import ProbeConfig


class LinkStateConfig(Struct, frozen=True):
    """``kind`` names a link-state reader, or a user's file (``my_reader.py:Reader``).

    ``host`` and ``port`` default to where such a source listens, ``metric`` to its own. ``keep``: seconds for
    which the last good graph is given out while reads fail.
    """

    kind: str = "pushed"
    host: str | None = None
    port: int | None = None
    metric: str | None = None
    keep: float = 10.0
    probe: ProbeConfig = ProbeConfig()
