"""The modelled network of virtual time: event loop, hosts, and TCP-like streams over a radio medium.

The simulation backend, routing services and tests import ``loop``, ``host``, ``port`` and ``interface``.
"""
