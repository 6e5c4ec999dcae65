"""Measures link costs with its own packets, for networks whose routing daemon reports none.

``linkstate.registry`` lists ``prober.READER``; the configuration uses ``core.ProbeConfig``.
"""
