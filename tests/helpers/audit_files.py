"""A file of the audit with one item, to be read, changed or damaged."""

from __future__ import annotations

COMMIT = "0123456789012345678901234567890123456789"  # at which code was read

PUBLICATION = f"""
key = "pearl"
name = "PEARL"
paper = "pearl"
about = "About."

[documents.paper]
title = "PEARL"
version = "2025"
link = "https://arxiv.org/abs/2408.11850"

[code.theirs]
repository = "github.com/a/b"
commit = "{COMMIT}"
"""
ITEM = """
[[items]]
id = "one"
title = "So"
reach = "number"
about = "theory"
claimed = "C."
where = [{at = "Section 1"}]
found = "F."
changes = "N."
answer = "A."
evidence = [{sort = "words", says = "it", one = ["a", "b"], other = ["c", "b"]}]
"""
EVIDENCE = ITEM.splitlines()[-1]


def code_read(**fields: str) -> dict[str, str]:
    """Evidence of lines of code that were read."""
    return {
        "sort": "code",
        "says": "each draft is tested",
        "code": "theirs",
        "file": "engine.py",
        "lines": "3-5",
        "digest": "0123456789ab",
        "reads": "The first is not.",
        "bears_out": "no",
        **fields,
    }


def item_of_code(**fields: str) -> str:
    """The item with such evidence, as a file has it."""
    pairs = [f'{name} = "{value}"' for name, value in code_read(**fields).items()]
    piece = ", ".join(pairs)
    return ITEM.replace(EVIDENCE, f"evidence = [{{{piece}}}]")
