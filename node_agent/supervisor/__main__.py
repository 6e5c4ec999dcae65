"""``python -m node_agent.supervisor start|run|attach|end|status``."""

import os
import sys

if sys.argv[1:2] == ["attach"] and len(sys.argv) == 3:
    from node_agent.supervisor.bridge import attach

    status = attach(sys.argv[2])
    sys.stderr.flush()
    os._exit(status)  # a thread of it still waits to read

from node_agent.supervisor.cli import main

sys.exit(main())
