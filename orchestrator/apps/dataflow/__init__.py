"""The application ``query``: replicated stream queries, from their section and plan to their analysis.

Rove imports ``application`` only, through the registry. ``faces`` belongs to this application alone.
"""
