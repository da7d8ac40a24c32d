"""`python -m speclib <command>`; `--help` lists the commands. Knows none of them."""

import sys


def main() -> None:
    """Runs the command.

    A mistake that the caller can mend is one line, not a traceback. So is an interrupt,
    from the first import on.
    """
    try:
        from speclib.cli import app
        from speclib.errors import SpeclibError
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)

    try:
        app()
    except SpeclibError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
