"""Reliable delivery between replicas: retention, acknowledgement, rewind, duplicates. See docs/delivery.md.

``core.DeliveryCore`` decides without I/O and ``runtime.DeliveryRuntime`` carries it out. Other rooms import
``limits``, ``spill``, and what both runtimes share: ``tuple_recorder``, ``handover`` and ``intake``.
"""
