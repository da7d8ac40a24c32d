"""A fitted pair has the draft that was chosen on this machine, and the same tokens."""

from __future__ import annotations

import warnings

import pytest

import speclib
from speclib import machine, paths
from speclib.data.pairs import Pair, load_pair
from speclib.data.toml_files import names_under
from speclib.errors import BadValue
from speclib.models import fingerprint
from speclib.models.open_pair import OpenPair, open_pair
from speclib.paths import DATA
from speclib.worlds import kept_draft_sizes
from speclib.worlds.cost_ratio import CostRatio
from speclib.worlds.draft_size import DraftSize, Shape
from speclib.worlds.processes import Processes

PAIR = load_pair("embedded/codellama-7b-34b")
FILE = Shape(6, 640, 10, 1728)
CHOSEN = Shape(5, 640, 10, 1984)


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch, own_cache) -> None:
    """A machine that nobody else uses, on which nothing was chosen yet."""
    monkeypatch.delenv("SPECLIB_FITTED", raising=False)
    monkeypatch.setattr(machine, "load", lambda: 0.5)
    forget(monkeypatch)


def forget(monkeypatch) -> None:
    """As a new process: it has decided nothing."""
    monkeypatch.setattr(kept_draft_sizes, "_decided", {})


class Search:
    """Finds a shape at once, and notes from which one it was to begin."""

    def __init__(self, found: Shape = CHOSEN, c: float = 2.66) -> None:
        self.found, self.c = found, c
        self.began_with: list[Shape] = []

    def __call__(self, opened: OpenPair, dtype: str, start: Shape) -> DraftSize | None:
        self.began_with.append(start)
        ratio = CostRatio(self.c, self.c - 0.02, self.c + 0.02, 64, 0.05)
        return DraftSize(self.found, 2.656, ratio, tries=2)


def size_of_draft(search, pair: Pair = PAIR, dtype: str = "auto") -> DraftSize | None:
    opened = kept_draft_sizes.reference_of(open_pair(pair))
    return kept_draft_sizes.load_or_find(opened, dtype, search)


# -- what is kept ----------------------------------------------------------------------
def test_what_one_process_found_the_next_one_goes_by(monkeypatch):
    search = Search()
    first = size_of_draft(search)
    forget(monkeypatch)
    assert size_of_draft(search) == kept_draft_sizes.kept(PAIR, "auto") == first
    assert search.began_with == [FILE]
    assert first.shape == CHOSEN


def test_float32_is_what_auto_means_and_another_dtype_is_searched_anew():
    search = Search()
    size_of_draft(search)
    size_of_draft(search, dtype="float32")
    size_of_draft(search, dtype="float64")
    assert len(search.began_with) == 2


def test_another_wanted_c_place_or_machine_has_another_key(monkeypatch):
    place = PAIR.place.model_copy(update={"threads": 2})
    latency = "pearl/codellama-7-70"
    pairs = [
        PAIR,
        PAIR.model_copy(update={"place": place}),
        PAIR.model_copy(update={"latency": latency}),
        PAIR.model_copy(update={"target": PAIR.draft}),
    ]
    keys = [kept_draft_sizes.key_of(open_pair(pair), "auto") for pair in pairs]
    another = (("cpu", "another"),)
    keys.append(kept_draft_sizes.key_of(open_pair(PAIR), "auto", another))
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_after_a_change_of_code_the_search_begins_with_what_was_chosen(monkeypatch):
    search = Search()
    size_of_draft(search)
    forget(monkeypatch)
    monkeypatch.setattr(fingerprint, "of_code", lambda: "another")
    for _ in range(2):
        assert size_of_draft(search).shape == CHOSEN
        forget(monkeypatch)
    assert search.began_with == [FILE, CHOSEN]


def test_a_busy_machine_searches_nothing_and_has_the_file_s_shape(monkeypatch):
    monkeypatch.setattr(machine, "load", lambda: 3.0)
    search = Search()
    assert size_of_draft(search) is None
    assert not search.began_with


def test_a_busy_machine_has_what_was_chosen_before_the_code_changed(monkeypatch):
    size_of_draft(Search())
    forget(monkeypatch)
    monkeypatch.setattr(fingerprint, "of_code", lambda: "another")
    monkeypatch.setattr(machine, "load", lambda: 3.0)
    assert size_of_draft(Search()).shape == CHOSEN


def test_what_was_found_while_others_began_to_work_is_not_kept(monkeypatch):
    loads = iter([0.5, 3.0])
    monkeypatch.setattr(machine, "load", lambda: next(loads))
    assert size_of_draft(Search()) is None
    assert not (paths.CACHE / "draft_sizes").exists()


def test_where_nothing_can_be_found_a_process_tries_it_once():
    tries = []
    for _ in range(2):
        assert size_of_draft(lambda *asked: tries.append(asked)) is None
    assert len(tries) == 1


def test_a_damaged_file_is_searched_anew(monkeypatch):
    search = Search()
    size_of_draft(search)
    forget(monkeypatch)
    (file,) = (paths.CACHE / "draft_sizes").iterdir()
    file.write_text(file.read_text().replace("1984", "1248"))
    assert size_of_draft(search).shape == CHOSEN
    assert len(search.began_with) == 2


def test_what_a_node_chose_is_known_where_its_cells_are_taken_in(monkeypatch, tmp_path):
    size = size_of_draft(Search())
    of_node = kept_draft_sizes.texts()
    forget(monkeypatch)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "elsewhere")
    assert kept_draft_sizes.kept(PAIR, "auto") is None
    kept_draft_sizes.take_in(of_node)
    assert kept_draft_sizes.kept(PAIR, "auto", machine.environment()) == size


def test_a_c_that_is_not_reached_is_said_with_the_next_step():
    with pytest.warns(UserWarning, match=r"codellama-7b-34b.*2\.66.*pair\.unfitted"):
        size = size_of_draft(Search(c=2.2))
    assert size.shape == CHOSEN


def test_a_c_that_is_reached_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        size_of_draft(Search())


# -- who asks for it -------------------------------------------------------------------
def test_a_pair_is_fitted_only_if_it_says_so(monkeypatch):
    assert kept_draft_sizes.reference_of(open_pair(PAIR.unfitted)) is None
    assert kept_draft_sizes.reference_of(open_pair(load_pair("toy"))) is None
    monkeypatch.setenv("SPECLIB_FITTED", "0")
    assert kept_draft_sizes.reference_of(open_pair(PAIR)) is None


def fitted_pairs() -> list[Pair]:
    pairs = [load_pair(name) for name in names_under(DATA / "pairs")]
    return [pair for pair in pairs if pair.fitted]


def test_stand_ins_of_pearl_s_pairs_are_fitted_and_no_pair_of_the_hub_is():
    fitted = [pair.name for pair in fitted_pairs() if pair.fitted is True]
    assert sorted(fitted) == [
        "embedded/codellama-7b-34b",
        "embedded/codellama-7b-70b",
        "embedded/deepseek-1.3b-33b",
        "embedded/deepseek-6.7b-33b",
        "embedded/llama-7b-70b",
        "embedded/llama3.1-8b-70b",
    ]


@pytest.mark.parametrize("pair", fitted_pairs(), ids=str)
def test_a_pair_that_follows_another_has_its_shapes_and_its_c(pair):
    reference = kept_draft_sizes.reference_of(open_pair(pair)).pair
    assert reference.fitted is True
    c = kept_draft_sizes.wanted_c(reference)
    assert kept_draft_sizes.wanted_c(pair) == pytest.approx(c)


def test_a_pair_that_follows_another_has_its_draft():
    size = size_of_draft(Search(), load_pair("embedded/llama-7b-70b"))
    for name in ("ladder/good", "one-core/shared", "embedded/llama-7b-70b-shared"):
        assert kept_draft_sizes.kept(load_pair(name), "auto") == size


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"fitted": "toy"}, "not fitted itself"),
        ({"fitted": "embedded/llama-7b-70b"}, "other shapes"),
    ],
)
def test_a_pair_cannot_follow_one_that_is_not_fitted_or_has_other_shapes(changes, says):
    with pytest.raises(BadValue, match=says):
        kept_draft_sizes.reference_of(open_pair(PAIR.model_copy(update=changes)))


@pytest.mark.parametrize(
    "draft, settings, says",
    [
        ({"model": "zoo/draft-fair"}, {"latency": PAIR.latency}, "give it a shape"),
        ({"model": "zoo/draft-fair", "shape": FILE}, {}, "give latency"),
        (
            {"model": "zoo/draft-deep", "shape": FILE, "spread": "layers"},
            {"latency": PAIR.latency},
            "nor layers that are spread",
        ),
    ],
)
def test_what_cannot_be_fitted_says_so(draft, settings, says):
    with pytest.raises(BadValue, match=says):
        speclib.pair("zoo/target", draft, fitted=True, **settings)


# -- real models -----------------------------------------------------------------------
@pytest.fixture
def passes_of_another_machine(monkeypatch) -> list[Shape]:
    """A machine where c follows from the draft's weights, and is 2.1 with the file's.

    Returns the shapes whose c is asked for.
    """
    measured: list[Shape] = []

    def measure(world, *limits: float) -> CostRatio:
        shape = Shape(*world.pair.draft.shape)
        measured.append(shape)
        c = 2.1 * FILE.cost / shape.cost
        return CostRatio(c, c - 0.01, c + 0.01, trials=64)

    monkeypatch.setattr(Processes, "_measure_cost_ratio", measure)
    return measured


@pytest.mark.slow
def test_real_models_are_fitted_once_and_write_and_draft_the_same_tokens(
    passes_of_another_machine,
):
    pytest.importorskip("torch")
    results = {}
    for name, pair in {"fitted": PAIR, "again": PAIR, "file": PAIR.unfitted}.items():
        with Processes(pair) as world:
            for method, settings in (("autoregressive", {}), ("pearl", {"gamma": 3})):
                results[name, method] = speclib.decode(
                    "def fib(n):",
                    world=world,
                    method=method,
                    max_new_tokens=32,
                    **settings,
                )
            shape = world.opened.pair.draft.shape
            if name == "file":
                assert shape == FILE
                assert world.draft_size is None
            else:
                assert shape == world.draft_size.shape != FILE
                assert world.ratio == pytest.approx(2.656, rel=0.03)

    assert passes_of_another_machine.count(FILE) == 1  # in the one search
    assert len({result.tokens for result in results.values()}) == 1
    fitted, file = results["again", "pearl"], results["file", "pearl"]
    assert drafts_of(fitted) == drafts_of(file)
    assert fitted.trace.meta["draft_size"].endswith("for c 2.66")
    assert "draft_size" not in file.trace.meta


def drafts_of(result: speclib.Result) -> list[tuple[int, ...]]:
    """The tokens of all drafts, in the order in which they were written."""
    operations = [op for op in result.trace.operations if op.device == "draft"]
    return [op.tokens for op in sorted(operations, key=lambda op: op.id)]
