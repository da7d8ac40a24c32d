"""`python -m speclab <command>`; `--help` lists the commands."""

import sys


def main() -> None:
    """Runs the command.

    An error that the caller can fix is printed as one line, without a traceback. So are
    a missing library and an interrupt, even during the first import.
    """
    try:
        from speclib.errors import SpeclibError, explained
    except KeyboardInterrupt:
        _end_interrupted()

    try:
        from speclab.cli import app

        app()
    except KeyboardInterrupt:
        _end_interrupted()
    except SpeclibError as error:
        _end_with(error)
    except ModuleNotFoundError as error:
        explanation = explained("speclab", error)
        if explanation is None:
            raise
        _end_with(explanation)


def _end_interrupted() -> None:
    print("\ninterrupted", file=sys.stderr)
    sys.exit(130)


def _end_with(error: Exception) -> None:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
