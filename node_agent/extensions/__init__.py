"""Extension points: what can be added to Rove without touching its code, and how it is found and guarded.

Each kind of thing has one ``Registry``. Import ``Registry``, ``ExtensionError``, ``API_VERSION`` from here;
``guard`` runs foreign code, and ``failures`` counts what goes wrong in it.
"""

from node_agent.extensions.errors import API_VERSION, ExtensionError
from node_agent.extensions.registry import Registry

__all__ = ["API_VERSION", "ExtensionError", "Registry"]
