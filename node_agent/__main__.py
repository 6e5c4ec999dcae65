"""``python -m node_agent --config FILE``."""

import argparse
import sys

from node_agent import process

parser = argparse.ArgumentParser(
    prog="python -m node_agent",
    description="Run one node's agent; its owner controls it over standard input and output.",
)
parser.add_argument("--config", required=True, metavar="FILE", help="JSON, as node_agent.process reads it")
sys.exit(process.run(parser.parse_args().config))
