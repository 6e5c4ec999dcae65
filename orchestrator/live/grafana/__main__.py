"""``python -m orchestrator.live.grafana --write`` makes the folder ``dashboards`` anew."""

import argparse
import sys

from orchestrator.live.grafana.files import FOLDER, outdated, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.live.grafana", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing them")
    wanted = parser.parse_args()
    differ = outdated()
    if differ and wanted.write:
        write()
    elif differ:
        print(f"out of date in {FOLDER.name}: {', '.join(differ)}; run with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
