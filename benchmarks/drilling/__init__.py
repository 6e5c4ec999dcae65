"""Fault drills: what is done to a run (a module for each kind of trouble), and what is checked afterwards.

``kinds`` is the table of all of them; ``campaign`` plays them.
"""
