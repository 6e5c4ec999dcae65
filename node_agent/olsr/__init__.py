"""OLSR (RFC 3626) with link quality, as olsrd speaks it."""
