"""The audit: what papers print and what published code does, checked item by item.

``item_schema`` says what an item is, ``load_items`` reads those under ``data/audit``,
and ``judge_items`` produces their evidence and gives each a verdict. Evidence is of
three sorts: ``printed`` recomputes printed numbers from other ones, and ``runs`` lets
methods run, also with the mistakes of ``speclab.mutants``, which the exact enumerator
measures. ``verdicts_of_tables`` looks up verdicts that the papers' tables have already.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "clones",
    "item_schema",
    "judge_items",
    "load_items",
    "printed",
    "quantity",
)
