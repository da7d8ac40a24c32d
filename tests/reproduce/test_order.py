"""The order of work: rounds, what a paper begins with, kinds, pairs in turns."""

from __future__ import annotations

from math import inf

from helpers.open_claims import claim_on
from helpers.specs import emulated_spec, measured_spec, virtual_spec

from speclab.experiment.spec import Spec
from speclab.reproduce.batches import Batch
from speclab.reproduce.open_cells import OpenClaims
from speclab.reproduce.order import ReplayPiece, pieces_in_order


def batch(name: str, spec: Spec, paper: str = "pearl", is_main: bool = False) -> Batch:
    """A batch of one cell."""
    pool = spec.worker_pool if spec.kind == "measured" else None
    return Batch(name, spec.kind, paper, is_main, [spec], pool=pool)


def names(*batches: Batch, in_rounds: bool = True) -> list[str]:
    """The pieces in their order, each by its batch's name and its requests."""
    pieces = pieces_in_order(batches, in_rounds)
    return [f"{piece.batch.name} {piece.requests}" for piece in pieces]


def test_workers_of_a_pair_are_started_once_whatever_needs_them_between():
    one = measured_spec(requests=2)
    other = measured_spec(requests=2, cancel="immediate")
    batches = [
        batch("a", one),
        batch("b", other),
        batch("virtual", virtual_spec()),
        batch("c", one),
    ]
    first, second = ["a 1", "c 1", "b 1"], ["a 2", "c 2", "b 2"]
    assert names(*batches) == ["virtual 1", *first, "virtual 2", *second]


def test_a_round_takes_every_cell_to_twice_as_many_requests():
    few = batch("few", measured_spec(requests=2))
    many = batch("many", measured_spec(gamma=3, requests=4))
    emulated = batch("emulated", emulated_spec(requests=3))
    assert names(few, many, emulated) == [
        "few 1",
        "many 1",
        "emulated 1",
        "few 2",
        "many 2",
        "emulated 2",
        "many 4",
        "emulated 3",
    ]
    assert names(few, many, emulated, in_rounds=False) == [
        "few 2",
        "many 4",
        "emulated 3",
    ]


def test_papers_open_with_their_main_tables_then_comes_the_rest():
    batches = []
    for paper in ("pearl", "dsi"):
        for is_main in (False, True):
            table = f"{paper} main" if is_main else paper
            of = {"paper": paper, "is_main": is_main}
            pair = measured_spec(requests=2)
            other_pair = measured_spec(requests=2, dtype="float32")
            batches += [
                batch(f"{table}: pair", pair, **of),
                batch(f"{table}: other pair", other_pair, **of),
                batch(f"{table}: emulated", emulated_spec(requests=2), **of),
                batch(f"{table}: virtual", virtual_spec(), **of),
            ]
    assert names(*batches) == [
        "pearl main: virtual 1",
        "dsi main: virtual 1",
        "pearl main: pair 2",
        "pearl main: other pair 2",
        "dsi main: pair 2",
        "dsi main: other pair 2",
        "pearl: virtual 1",
        "dsi: virtual 1",
        "pearl: pair 1",
        "dsi: pair 1",
        "pearl: other pair 1",
        "dsi: other pair 1",
        "pearl: emulated 1",
        "pearl main: emulated 2",
        "dsi: emulated 1",
        "dsi main: emulated 2",
        "pearl main: virtual 2",
        "dsi main: virtual 2",
        "pearl: virtual 2",
        "dsi: virtual 2",
        "pearl: pair 2",
        "dsi: pair 2",
        "pearl: other pair 2",
        "dsi: other pair 2",
        "pearl: emulated 2",
        "dsi: emulated 2",
    ]


# -- what serves most claims -----------------------------------------------------------
def served_first(
    *batches: Batch, claims: list[set[Spec]], seconds: dict[str, float]
) -> list[str]:
    """The names of the first round's batches, which take so many ``seconds``."""
    pieces = pieces_in_order(
        batches,
        True,
        lambda: OpenClaims([claim_on(specs) for specs in claims]),
        lambda batch, requests: seconds[batch.name],
    )
    return [piece.batch.name for piece in pieces][: len(batches)]


def measured_batches(*gammas: int, requests: int = 2) -> list[Batch]:
    specs = [measured_spec(gamma=gamma, requests=requests) for gamma in gammas]
    return [batch(f"{spec.gamma}", spec) for spec in specs]


def test_what_serves_most_claims_in_a_second_comes_first():
    one, two, three = measured_batches(1, 2, 3)
    claims = [{*one.specs}] + [{*two.specs}] * 5 + [{*three.specs}] * 2
    seconds = {"1": 10.0, "2": 10.0, "3": 2.0}
    assert served_first(one, two, three, claims=claims, seconds=seconds) == [
        "3",  # 2 claims in 2 s
        "2",  # 5 claims in 10 s
        "1",  # 1 claim in 10 s
    ]


def test_a_claim_about_several_batches_is_served_by_all_their_seconds():
    """A batch of a second is worth little where its claims lack a long one."""
    short, long, alone = measured_batches(1, 2, 3)
    claims = [{*short.specs, *long.specs}] * 3 + [{*alone.specs}] * 2
    seconds = {"1": 1.0, "2": 49.0, "3": 10.0}
    assert served_first(short, long, alone, claims=claims, seconds=seconds) == [
        "3",  # 2 claims in 10 s
        "1",  # 3 claims in 50 s
        "2",
    ]


def test_what_has_nothing_to_do_takes_no_part_of_a_claim():
    done, two, three = measured_batches(1, 2, 3)
    claims = [{*done.specs, *two.specs}, {*three.specs}]
    seconds = {"1": 0.0, "2": 10.0, "3": 25.0}
    assert served_first(done, three, two, claims=claims, seconds=seconds) == [
        "2",  # 1 claim in 10 s
        "3",  # 1 claim in 25 s
        "1",
    ]


def test_what_serves_about_as_many_stands_by_pair():
    """Workers of a pair that comes again are started again."""
    one = batch("one", measured_spec(gamma=1, requests=2))
    other = batch("other", measured_spec(gamma=2, requests=2, dtype="float32"))
    again = batch("again", measured_spec(gamma=3, requests=2))
    claims = [{*one.specs}, {*other.specs}, {*again.specs}]
    seconds = {"one": 10.0, "other": 11.0, "again": 12.0}
    assert served_first(one, other, again, claims=claims, seconds=seconds) == [
        "one",
        "again",
        "other",
    ]


def test_a_main_table_comes_before_what_serves_more_claims():
    main = batch("main", measured_spec(gamma=1, requests=2), is_main=True)
    more = batch("more", measured_spec(gamma=2, requests=2))
    claims = [{*more.specs}]
    seconds = {"main": 10.0, "more": 1.0}
    assert served_first(more, main, claims=claims, seconds=seconds) == ["main", "more"]


def test_in_later_rounds_a_main_table_has_to_serve_as_much_as_others():
    main = batch("main", measured_spec(gamma=2, requests=4), is_main=True)
    more = batch("more", measured_spec(gamma=3, requests=4))
    claims = [{*main.specs}, {*more.specs}]
    seconds = {"main": 10.0, "more": 1.0}
    pieces = pieces_in_order(
        [main, more],
        True,
        lambda: OpenClaims([claim_on(specs) for specs in claims]),
        lambda batch, requests: seconds[batch.name],
    )
    assert [f"{piece.batch.name} {piece.requests}" for piece in pieces] == [
        "main 2",
        "more 1",
        "more 2",
        "more 4",
        "main 4",
        "more 4",  # what needs more than there can be, once more
        "main 4",
    ]


# -- what is open ----------------------------------------------------------------------
def test_only_what_is_open_gets_more_than_the_first_requests():
    """It is asked before each round, and what is virtual is run whatever it says."""
    settled = batch("settled", measured_spec(requests=8))
    is_open = batch("open", measured_spec(gamma=3, requests=8))
    asked = []

    def ask_what_is_open():
        asked.append(len(asked))
        return OpenClaims([claim_on(is_open.specs)] if len(asked) <= 2 else [])

    pieces = pieces_in_order([settled, is_open], True, ask_what_is_open)
    wanted = []
    for piece in pieces:
        specs = piece.batch.specs_to(piece.requests)
        wanted.append((piece.batch.name, piece.requests, len(specs)))
    assert wanted == [
        ("open", 1, 1),
        ("settled", 1, 1),
        ("open", 2, 1),
        ("settled", 2, 0),
        ("settled", 4, 0),
        ("open", 4, 0),
        ("settled", 8, 0),
        ("open", 8, 0),
        ("settled", 8, 0),
        ("open", 8, 0),
    ]
    assert len(asked) == 6  # and whether replays are short, at the end


def test_a_claim_that_needs_far_more_than_a_round_brings_waits_for_a_later_one():
    """Up to four requests all cells are taken. 33 are more than four times eight, but
    what needs more than can be counted comes at the very end."""
    near, far, endless = measured_batches(1, 2, 3, requests=8)
    asked = []
    for one, requests in ((near, 8), (far, 32), (endless, inf)):
        asked.append(claim_on(one.specs, replayed=one.specs, requests=requests))

    wanted: list[str] = []
    all_batches = [near, far, endless]
    for piece in pieces_in_order(all_batches, True, lambda: OpenClaims(asked)):
        if isinstance(piece, ReplayPiece):
            wanted.append(f"{len(piece.specs)} replayed")
        elif piece.batch.specs_to(piece.requests):
            wanted.append(f"{piece.batch.name} to {piece.requests}")
    assert wanted == [
        *("1 to 1", "2 to 1", "3 to 1"),
        *("1 to 2", "2 to 2", "3 to 2"),  # as all do
        *("3 replayed", "1 to 4", "2 to 4", "3 to 4"),
        *("2 replayed", "1 to 8", "2 to 8"),
        *("1 replayed", "1 to 8", "2 to 8", "3 to 8"),
        "3 replayed",
    ]


def test_a_round_begins_with_the_replays_that_claims_are_short_of():
    """As many as the round's requests would bring; what they settle is then not
    measured further."""
    short = batch("short", measured_spec(requests=8))
    other = batch("other", measured_spec(gamma=3, requests=8))
    emulated = batch("emulated", emulated_spec(requests=8))
    specs = {*short.specs, *other.specs, *emulated.specs}
    asked = []

    def ask_what_is_open():
        asked.append(len(asked))
        if len(asked) == 1:
            return OpenClaims([])
        still_open = set(other.specs) if len(asked) > 3 else specs
        lacking = [*short.specs, *emulated.specs]
        return OpenClaims([claim_on(still_open, replayed=lacking)])

    wanted = []
    for piece in pieces_in_order([short, other, emulated], True, ask_what_is_open):
        if isinstance(piece, ReplayPiece):
            wanted.append(("replays", piece.requests, len(piece.specs)))
        else:
            count = len(piece.batch.specs_to(piece.requests))
            wanted.append((piece.batch.name, piece.requests, count))
    assert [count for _, _, count in wanted[3:6]] == [1, 1, 1]
    assert wanted[6:] == [
        ("replays", 4, 1),
        ("other", 4, 1),
        ("short", 4, 0),
        ("emulated", 4, 0),
        ("replays", 8, 1),
        ("other", 8, 1),
        ("short", 8, 0),
        ("emulated", 8, 0),
        ("other", 8, 1),
        ("short", 8, 0),
        ("emulated", 8, 0),
        ("replays", 8, 1),
    ]


def test_what_several_batches_are_short_of_is_replayed_in_one_piece():
    """Cells of equal prompts share what their models write, whatever their batch."""
    batches = [batch(f"{n}", measured_spec(gamma=n, requests=4)) for n in (1, 2, 3)]
    short = {*batches[0].specs, *batches[2].specs}
    claims = OpenClaims([claim_on(short, replayed=short)])
    pieces = pieces_in_order(batches, True, lambda: claims)
    replays = [piece.specs for piece in pieces if isinstance(piece, ReplayPiece)]
    assert set(replays) == {(*batches[0].specs, *batches[2].specs)}


def test_replays_have_the_rest_of_the_time_when_nothing_is_left_to_be_timed():
    short = batch("short", measured_spec(requests=8))
    open_claims = OpenClaims([claim_on(short.specs, replayed=short.specs)])
    pieces = list(pieces_in_order([short], True, lambda: open_claims))
    are_last = [piece.is_last for piece in pieces if isinstance(piece, ReplayPiece)]
    assert are_last == [False, False, True]
    assert isinstance(pieces[-1], ReplayPiece)


def test_pairs_of_different_papers_take_turns():
    pearl = [
        batch(f"pearl {cancel}", measured_spec(requests=2, cancel=cancel))
        for cancel in ("after-op", "immediate")
    ]
    dsi = [
        batch(f"dsi {dtype}", measured_spec(requests=2, dtype=dtype), "dsi")
        for dtype in ("float32", "float64")
    ]
    in_turns = ["pearl after-op", "dsi float32", "pearl immediate", "dsi float64"]
    assert names(*pearl, *dsi) == [f"{n} 1" for n in in_turns] + [
        f"{n} 2" for n in in_turns
    ]
