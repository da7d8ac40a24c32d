"""`python -m speclib` says where the commands are: in the workbench's package."""

import sys

if __name__ == "__main__":
    print("error: the commands are in speclab: `python -m speclab`", file=sys.stderr)
    sys.exit(2)
