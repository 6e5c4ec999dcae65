"""Faces: where pictures come from, who is in them, and how to see it."""

import os

from node_agent.apps.dataflow.faces.frames import MAX_PIXELS

# OpenCV reads it when it is loaded, and refuses picture files of any format that unpack to more.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(MAX_PIXELS))
