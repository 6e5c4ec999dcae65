"""Path-loss models, one file each: its section of the topology file, and the function that computes losses.

Import ``build.path_loss_of``; models are listed in ``orchestrator.spec.pathloss.PATH_LOSS_MODELS``.
"""
