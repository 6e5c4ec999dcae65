"""Costs measured by own packets, for networks whose routing tells nothing."""
