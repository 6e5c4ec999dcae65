"""Applications on the orchestrator's side: each folder owns one, from its section in the file to its report.

The protocol is ``orchestrator.planning.application``, the registry ``orchestrator.spec.application``. No
other room imports an application by name.
"""
