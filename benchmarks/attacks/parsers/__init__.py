"""A target for each parser of foreign bytes."""
