"""Runs nodes: one folder for each backend, all behind the contract ``orchestrator.runs.backend.Backend``.

Import ``create.create_backend`` for a run's backend, ``choice`` for ``backend: auto``, ``leftovers`` to find
and remove what a run left. Backends are listed in ``orchestrator.spec.backends.BACKENDS``.
"""
