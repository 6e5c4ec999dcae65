"""Routing protocols: one file each, with its section of the experiment file, its daemon, its virtual version.

Import ``registry.routing_service`` for the service of a section, ``base`` to define another one. Protocols
are found through ``orchestrator.spec.routing.ROUTING_SERVICES``.
"""
