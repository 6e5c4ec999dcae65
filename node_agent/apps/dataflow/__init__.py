"""Replicated stream queries: operators, windows, delivery, switching between replicas, faces."""
