"""Mobility models: one file each, with its section of the topology file, its checks and its trace.

Import ``generate.generate_trace`` for the trace of a topology, ``statistics`` for what it means, ``formats``
for trace files. Models are found through ``orchestrator.spec.mobility.MOBILITY_MODELS``.
"""
