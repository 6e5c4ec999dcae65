"""Event detection over links that come and go (Comet): the orchestrator's side of the application ``detect``.

``section`` is its part of the file, ``planning`` decides what is sent where and when, ``analytics`` says what
came of it. Other rooms import nothing from here.
"""
