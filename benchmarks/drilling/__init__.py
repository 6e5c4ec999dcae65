"""Fault drills: what each does to a run (a module for each kind of trouble), and what is checked afterwards.

``kinds`` is the table of all of them; ``campaign`` runs them.
"""
