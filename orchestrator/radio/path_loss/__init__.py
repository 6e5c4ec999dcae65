"""Path-loss models, one file each: a section of the topology file, and the function that it stands for."""
