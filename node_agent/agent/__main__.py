"""``python -m node_agent.agent --config FILE``."""

import argparse
import os
import sys

from node_agent.agent import process

parser = argparse.ArgumentParser(
    prog="python -m node_agent.agent",
    description="Run one node's agent; its owner controls it over standard input and output.",
)
parser.add_argument(
    "--config", required=True, metavar="FILE", help="JSON, as node_agent.agent.process reads it"
)
status = process.run(parser.parse_args().config)
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # do not join threads: one may wait for a device that never answers
