"""Situations around moving objects (MCEP): the orchestrator's side of the application ``interest``.

``section`` is its part of the file, ``planned`` decides who does what, ``analytics`` says what came of it.
Other rooms import nothing from here.
"""
