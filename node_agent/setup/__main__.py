import sys

from node_agent.setup.process import main

sys.exit(main())
