"""From files to planned runs: ``load`` reads, ``sweep`` expands, ``semantics.plan_run`` plans one run.

``planned.PlannedRun`` is made once for each run and handed to everything that works on it. ``application``
is the protocol of applications: this room knows them by it only.
"""
