"""`python -m speclib`, or `speclib`: the embedded models fetched.

All other commands are in the workbench's package. Knows nothing that is heavy.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from speclib.errors import SpeclibError
from speclib.version import VERSION

ELSEWHERE = "more commands are in speclab: `python -m speclab`"
INTERRUPTED = "\ninterrupted: run the same again, and it goes on from there"


def main(words: Sequence[str] | None = None) -> None:
    """Runs the command in ``words``; None: the command line."""
    parser = _parser()
    command = parser.parse_args(words)
    if command.name is None:
        parser.print_help()
        return
    try:
        _fetch(command.source)
    except SpeclibError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(130)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="speclib", description="Parallel speculative decoding.", epilog=ELSEWHERE
    )
    parser.add_argument("--version", action="version", version=f"speclib {VERSION}")
    commands = parser.add_subparsers(dest="name", title="commands")
    fetch = commands.add_parser(
        "fetch",
        help="bring the embedded models, which a wheel does not have",
        description="Brings the embedded models, and checks them by their checksums.",
    )
    fetch.add_argument(
        "--from",
        dest="source",
        metavar="ARCHIVE",
        help="the path or address of the models' archive; else the release's own",
    )
    return parser


def _fetch(source: str | None) -> None:
    from speclib.models.fetch import fetch

    fetch(source)


if __name__ == "__main__":
    main()
