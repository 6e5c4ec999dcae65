"""Why a frame is refused. Each error names the word under which ``Refusals`` counts it."""


class FrameError(Exception):
    """The peer sent, or this node was asked to send, something that is not a frame of the protocol.

    ``reason``: the word that it is counted by.
    """

    reason = "frame"


class TooLarge(FrameError):
    """The first item does not fit into a frame, even alone."""

    reason = "too_large"


class Stranger(FrameError):
    """The peer names a key that this node does not have."""

    reason = "stranger"


class Forged(FrameError):
    """The tag does not match the frame."""

    reason = "forged"


class Impossible(FrameError):
    """A node of the run says something that it cannot know, or that cannot be true."""

    reason = "impossible"
