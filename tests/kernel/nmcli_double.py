"""A double of `nmcli` and of the NetworkManager behind it, which is not on this machine.

Like the real one it takes an interface's address away some time after it was told to leave it alone, and
connects again when it gets it back. Its state is in the file $NMCLI_DOUBLE.
"""

import os
import subprocess
import sys
from pathlib import Path

ADDRESS = "192.168.7.1/24"


def main() -> int:
    state = Path(os.environ["NMCLI_DOUBLE"])
    match sys.argv[1:]:
        case ["-t", "-f", "GENERAL.STATE", "device", "show", _]:
            managed = state.read_text() == "yes"
            print("GENERAL.STATE:100 (connected)" if managed else "GENERAL.STATE:10 (unmanaged)")
        case ["device", "set", interface, "managed", word]:
            state.write_text(word)
            if word == "no":
                later = ["sh", "-c", f"sleep 0.3; ip address del {ADDRESS} dev {interface}"]
                subprocess.Popen(later, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            else:
                subprocess.run(["ip", "address", "add", ADDRESS, "dev", interface], check=True)
        case _:
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
