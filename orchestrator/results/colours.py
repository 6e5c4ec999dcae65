"""Colours of figures; each stands for a CSS variable of the page."""

# Okabe and Ito's palette for all kinds of colour vision, without its black and yellow.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
INK, GRID, FAINT, PAPER = "#101112", "#202122", "#303132", "#404142"
GOOD, BAD = "#505152", "#606162"
