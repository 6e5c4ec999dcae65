"""Selections of vehicles' queries, and what reuse makes of them."""
