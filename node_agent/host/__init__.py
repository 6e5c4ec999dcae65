"""Access to the machine: interfaces, kernel routes, processes of a run, load, radio set-up.

Routing daemons, the supervisor and the orchestrator import its modules; ``setup`` and ``load_probe`` also run
as programs of their own. It knows no routing protocol and no application.
"""
