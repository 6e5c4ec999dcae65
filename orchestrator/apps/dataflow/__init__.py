"""Replicated stream queries: section, checks, plan, files, package needs, examination of records, decisions.

``application`` is what Rove knows of it; ``faces`` are operators and galleries of this application alone.
"""
