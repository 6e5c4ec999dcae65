"""Watches real runs for benchmarks: the page's server, browsers, scrapes, and what they cost."""
