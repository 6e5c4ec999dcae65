"""Video operators: take pictures, find and recognise faces in them, and show the result.

``operators`` defines the kinds, ``queries`` the ready-made queries, ``events`` what they record. The
orchestrator also imports ``params``, ``gallery``, ``models`` and what enrols people (``enrolment``,
``pixels``).
"""

import os

from node_agent.apps.dataflow.faces.frames import MAX_PIXELS

# OpenCV reads this when it is loaded. It then refuses pictures, of any format, with more pixels.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(MAX_PIXELS))
