"""The durable log of what happened on a node: how it is written, read back and checked.

Applications describe their records by ``kinds``. Import ``SegmentLog`` from ``segment_log``, ``read_records``
and ``inspect`` from ``segments``; ``records`` and ``belief`` say which lines count.
"""
