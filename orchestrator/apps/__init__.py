"""Applications as the orchestrator sees them: each folder owns one, from its section to its answers.

The protocol is ``orchestrator.planning.application``, the registry ``orchestrator.spec.application``. Nothing
else of Rove imports an application by name.
"""
