"""The rates of 802.11b, for whoever needs no more than their names."""

RATES = (1.0, 2.0, 5.5, 11.0)
"""In Mb/s."""
