"""Shares results between queries that ask for almost the same (RECEP, thesis chapter 5). Pure.

``SelectionManager`` from ``manager`` decides which selections are processed and who gets their results;
``Sorter`` from ``results`` puts these in order at the receiver. ``Neighbourhood`` from ``neighbours`` and
``Groups`` from ``groups`` say which operators may share and by which manager. No module here imports a
broker, a client or the application.
"""
