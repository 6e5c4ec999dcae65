"""The configuration of an agent's source of network costs."""

from msgspec import Struct

from node_agent.linkstate.probe.core import ProbeConfig


class LinkStateConfig(Struct, frozen=True):
    """``kind`` names a link-state reader, or a user's file (``my_reader.py:Reader``).

    ``host``, ``port`` and ``metric`` default to those of the kind. ``keep``: seconds for which the last good
    graph is used while reads fail.
    """

    kind: str = "pushed"
    host: str | None = None
    port: int | None = None
    metric: str | None = None
    keep: float = 10.0
    probe: ProbeConfig = ProbeConfig()
