"""Delivery between replicas: retention, acknowledgement, rewind, duplicates. See docs/delivery.md."""
