"""The backend ``netns``: nodes as network namespaces on this machine, built from values, removed by mark.

Other rooms import ``backend``, ``checks``, ``network``, ``enter``, ``rootless`` and ``marks``.
"""
