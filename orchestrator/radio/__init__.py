"""Models the radio: path loss, noise, interference and 802.11b's DCF, and the true links that follow.

Import ``from_spec.air_settings`` for a topology's radio, ``survey`` for its links, ``truth`` to record them.
Path losses (``path_loss/``) are found through ``orchestrator.spec.pathloss.PATH_LOSS_MODELS``.
"""
