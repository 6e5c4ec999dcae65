"""Runs nodes on other machines: a supervisor on each, reached over SSH. The backends ssh and core share it.

They import ``backend.RemoteBackend`` and implement ``infrastructure.Infrastructure``. Other rooms import
``ledger`` for what the journal knows of nodes, ``recollection`` and ``collection`` to fetch records.
"""
