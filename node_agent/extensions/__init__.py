"""Extension points: what can be added to Rove without touching its code, and how it is found.

Each kind of thing has one ``Registry``. Import ``Registry``, ``ExtensionError``, ``API_VERSION`` from here.
"""

from node_agent.extensions.errors import API_VERSION, ExtensionError
from node_agent.extensions.registry import Registry

__all__ = ["API_VERSION", "ExtensionError", "Registry"]
