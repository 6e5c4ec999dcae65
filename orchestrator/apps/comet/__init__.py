"""Event detection over links that come and go (Comet), on the orchestrator's side.

``planning`` decides what is sent where and when. Other rooms import nothing from here.
"""
