"""Measures and judges whether machines kept up with a run in real time.

Backends start a probe (``local.HostWatch``, ``remote.RemoteHostWatch``, or in a node's supervisor) and ask
``run_load.RunLoad`` at the end; ``judgement`` is pure.
"""
