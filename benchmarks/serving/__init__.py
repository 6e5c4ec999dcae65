"""Requests that no browser sends, and a client that sends them to a live `rove serve`."""
