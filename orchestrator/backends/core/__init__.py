"""The backend ``core``: an experiment's nodes in a session of the CORE emulator, on CORE's host.

``driver.py``, ``motion.py`` and ``leftovers.py`` are uploaded to that host and run there. Other rooms import
``backend.core_backend`` and ``session_leftovers``.
"""
