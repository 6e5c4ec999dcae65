"""Everything that runs on a node of a Rove testbed. It never imports ``orchestrator``.

Files of users import ``query``, ``switching``, ``testing``, ``linkstate`` and ``extensions``.
"""

__version__ = "0.1.0.dev0"
