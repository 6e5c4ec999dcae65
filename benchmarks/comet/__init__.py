"""Comet's networks (the paper's Figures 4 to 10, and random ones), and a simulation of plans."""
