import sys

from node_agent.host.setup.process import main

sys.exit(main())
