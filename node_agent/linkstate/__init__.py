"""Link state: where network costs come from, read from routing daemons, the kernel, probes or the owner.

Import ``Reading``, ``Edge``, ``LinkStateError``, ``Source`` and ``LinkStateReader`` from here to write a
reader of your own; ``registry`` lists the readers that there are.
"""

from node_agent.linkstate.reader import Edge, LinkStateError, Reading
from node_agent.linkstate.source import LinkStateReader, Source

__all__ = ["Edge", "LinkStateError", "LinkStateReader", "Reading", "Source"]
