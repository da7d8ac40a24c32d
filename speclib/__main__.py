"""`python -m speclib`, or `speclib`: the embedded models fetched.

All other commands are in the workbench's package. Knows nothing that is heavy.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

import speclib
from speclib.errors import SpeclibError
from speclib.public_names import COMMANDS, unknown_command
from speclib.version import VERSION

ELSEWHERE = "more commands are in speclab: `python -m speclab`"
INTERRUPTED = "\ninterrupted: run the same again, and it goes on from there"


def main(words: Sequence[str] | None = None) -> None:
    """Runs the command in ``words``; None: the command line."""
    words = sys.argv[1:] if words is None else words
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        _end_with(str(unknown_command("speclib", words[0], speclib.__all__)))

    parser = _parser()
    command = parser.parse_args(words)
    if command.name is None:
        parser.print_help()
        return
    try:
        _fetch(command.source)
    except SpeclibError as error:
        _end_with(str(error))
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


def _end_with(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
