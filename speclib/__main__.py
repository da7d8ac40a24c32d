"""`python -m speclib`, or `speclib`: a rule checked, the embedded models fetched.

All other commands are in the workbench's package. Knows nothing that is heavy.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
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
        if command.name == "fetch":
            _fetch(command.source)
        else:
            _check(command)
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
    check = commands.add_parser(
        "check",
        help="is an acceptance rule, or a method, lossless?",
        description="Walks every outcome of a rule. Ends with 0 where no error is "
        "found, with 1 where one is, and with 2 where the rule cannot be judged.",
    )
    check.add_argument(
        "rule", help="path/to/file.py:function, or the name of a method or a pair"
    )
    check.add_argument("--shape", help="line, tree, candidates or method")
    check.add_argument(
        "--array", default="numpy", help="numpy, list, torch, or module:function"
    )
    check.add_argument("--gamma", type=int, help="drafts of a line")
    check.add_argument("--vocab", type=int, help="tokens of a line")
    check.add_argument("--put-back", action="store_true", help="candidates are")
    check.add_argument("--drawn", default="q", help="how drafts are: q, argmax, top-k")
    check.add_argument("--servers", type=int, default=1, help="of a method")
    return parser


def _check(command: Namespace) -> None:
    from speclib.checking.check import check
    from speclib.checking.from_file import array_called, load_rule

    is_file = ":" in command.rule
    if not is_file and command.rule.endswith(".py"):
        _end_with(f"the rule is {command.rule!r}: write path/to/file.py:function")
    answer = check(
        load_rule(command.rule) if is_file else command.rule,
        command.shape,
        array=array_called(command.array),
        gamma=command.gamma,
        vocab=command.vocab,
        put_back=command.put_back,
        drawn=command.drawn,
        servers=command.servers,
    )
    try:
        print(answer, flush=True)
    except OSError as error:
        sys.stdout = None  # or Python would say it again at its end
        _end_with(f"the answer cannot be printed: {error.strerror}")
    if answer.is_lossless is False:
        sys.exit(1)
    if answer.problem:
        sys.exit(2)


def _fetch(source: str | None) -> None:
    from speclib.models.fetch import fetch

    fetch(source)


def _end_with(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
