"""Extension points: how code is added to Rove without changing Rove, and how it is found and guarded.

Each kind of extension has one ``Registry``. Import ``Registry``, ``ExtensionError``, ``API_VERSION`` from
here; ``guard`` calls foreign code, and ``failures`` counts its errors.
"""

from node_agent.extensions.errors import API_VERSION, ExtensionError
from node_agent.extensions.registry import Registry

__all__ = ["API_VERSION", "ExtensionError", "Registry"]
