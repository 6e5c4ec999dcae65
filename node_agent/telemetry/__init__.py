"""The durable log of what happened on a node: writes it, reads it back and checks it.

Applications describe their records with ``kinds``. Import ``SegmentLog`` from ``segment_log``,
``read_records`` and ``inspect`` from ``segments``; ``records`` and ``belief`` say which lines count.
"""
