"""Fault drills: what is done to a run (one module a kind of trouble), what is checked afterwards, and the table of all."""
