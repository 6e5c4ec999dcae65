"""Operators of a query that move between brokers: what moves, who streams to them, and who says where to."""
