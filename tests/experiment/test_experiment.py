"""Cells: cached by what they depend on, resumed when interrupted, not trusted when corrupt."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from speclib import paths
from speclib.data.latency import Latency, load_latency
from speclib.data.pairs import load_pair
from speclib.decoding.decode import open_world
from speclib.errors import SpeclibError
from speclib.experiment import cache, cache_keys, machine
from speclib.experiment.atomic_files import write_atomically
from speclib.experiment.cells import measured as measured_cells
from speclib.experiment.cells import virtual as virtual_cells
from speclib.experiment.cells.outputs import (
    Departure,
    find_agreements,
    find_departure,
    first_difference,
)
from speclib.experiment.engines import measured as measuring
from speclib.experiment.engines import measured_cell, virtual_cell
from speclib.experiment.run_cells import CellsFailed, example_trace, run_all
from speclib.experiment.spec import FULL, QUICK, Spec
from speclib.methods import METHODS
from speclib.models import factory, zoo
from speclib.models.toy import Toy
from speclib.progress import Progress
from speclib.trace.metrics import total
from speclib.worlds.virtual import Virtual

LATENCY = "pearl/codellama-7-34"  # c = 2.66


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return tmp_path / "cache" / "rows"


@pytest.fixture
def computed(monkeypatch):
    """The settings of every virtual cell that is really computed."""
    calls, real = [], virtual_cells.run_requests

    def counted(cell, requests):
        calls.append((cell.method.__name__, cell.settings.get("gamma")))
        return real(cell, requests)

    monkeypatch.setattr(virtual_cells, "run_requests", counted)
    return calls


def virtual(method="pearl", gamma=3, **changes) -> Spec:
    return Spec(
        **{
            "kind": "virtual",
            "method": method,
            "gamma": gamma,
            "latency": LATENCY,
            "alpha": 0.9,
            "requests": 3,
            "tokens": 120,
        }
        | changes
    )


def measured(method="pearl", gamma=2, **changes) -> Spec:
    return Spec(
        **{
            "kind": "measured",
            "method": method,
            "gamma": gamma,
            "pair": "toy",
            "task": "toy",
            "requests": 3,
            "tokens": 12,
            "sweep": 1,
        }
        | changes
    )


# -- specs -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"alpha": None}, "needs alpha"),
        ({"method": "warp"}, "unknown method 'warp'; known: auto"),
        ({"gamma": None}, "gamma is None for method 'pearl'"),
        ({"speed": 3}, "speed"),
        ({"kind": "dreamt"}, "virtual"),
        ({"gamma": "fast"}, "gamma"),
    ],
)
def test_a_spec_that_cannot_run_says_why(wrong, says):
    with pytest.raises(ValidationError, match=says):
        virtual(**wrong)


def test_a_spec_names_itself_for_people():
    spec = virtual(settings=(("without", "pre-verify"),))
    assert spec.name == (
        "virtual pearl(gamma=3, without=pre-verify) on pearl/codellama-7-34, alpha=0.9"
    )


# -- cache -----------------------------------------------------------------------------
def test_a_second_run_computes_nothing(computed):
    specs = [virtual(), virtual("speculative", 5), virtual("autoregressive", None)]
    first = run_all(specs)
    assert len(computed) == 4  # two methods, plain decoding at alpha 0.9 and 1
    again = run_all(specs)
    assert len(computed) == 4
    assert all(again[s].cached and again[s].stats == first[s].stats for s in specs)
    assert all(again[s].baseline == first[s].baseline for s in specs)


def test_cells_asked_for_twice_or_under_another_name_run_once(computed):
    runs = run_all([virtual(gamma="auto"), virtual(), virtual(gamma="auto")])
    assert [call for call in computed if call[0] == "pearl"] == [("pearl", 3)]
    assert {run.gamma for run in runs.values()} == {3}
    assert all(run.c == pytest.approx(49.34 / 18.58) for run in runs.values())


def test_the_best_window_is_the_best_of_all_windows():
    every = {
        g: total(run_all([s])[s].stats).decode_speed
        for g in range(1, 15)
        for s in [virtual("speculative", g, requests=6)]
    }
    run = run_all([s := virtual("speculative", "best", requests=6)])[s]
    assert run.gamma == max(every, key=every.get)
    assert run.facts["searched"][str(run.gamma)] == every[run.gamma]


def test_methods_meet_the_same_agreements():
    """Common random numbers: whatever the method, the same positions are rejected."""

    def rejected(method, gamma):
        cell = virtual_cells.ToyCell(
            METHODS[method],
            SimpleNamespace(c=2.0, seconds=lambda *_: 1.0),
            0.8,
            tokens=200,
            settings={"gamma": gamma},
        )
        trace = virtual_cells.trace_request(cell)
        tested = [o for e in trace.operations for o in e.outcome if o != "wasted"]
        return {position for position, o in enumerate(tested, 1) if o == "rejected"}

    by_pearl = rejected("pearl", 4)  # no bonus: tested drafts count the positions
    assert by_pearl == rejected("pearl", 7)
    assert len(by_pearl) == pytest.approx(40, abs=25)  # 6 sigma around 200 * 0.2


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to edit."""
    return shutil.copytree(
        cache_keys.PACKAGE,
        tmp_path / "speclib",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


ROOTS = ("speclib.methods.pearl", "speclib.experiment.cells.virtual")


def key(package) -> str:
    cache_keys.hash_of_code.cache_clear()
    cache_keys._meaning.cache_clear()
    return cache_keys.hash_of_code(ROOTS, package)


def edit(package, file, old="", new="\nEDITED = 1\n"):
    path = package / file
    path.write_text(
        path.read_text().replace(old, new, 1) if old else path.read_text() + new
    )


@pytest.mark.parametrize(
    "file",
    [
        "methods/pearl.py",
        "experiment/cells/virtual.py",
        "worlds/virtual.py",
        "core/sampling.py",
        "core/verification.py",
        "models/toy.py",
        "trace/events.py",
        "data/latency.py",
    ],
)
def test_code_that_a_cell_runs_enters_its_key(package, file):
    before = key(package)
    edit(package, file)
    assert key(package) != before


@pytest.mark.parametrize(
    "file",
    [
        "methods/speculative.py",
        "methods/__init__.py",
        "papers/__init__.py",
        "worlds/processes.py",
        "models/hf.py",
        "views/timeline/widget.py",
        "experiment/__init__.py",
        "__init__.py",
    ],
)
def test_code_that_a_cell_does_not_run_keeps_it(package, file):
    before = key(package)
    edit(package, file)
    assert key(package) == before


def test_prose_keeps_a_cell_and_an_import_inside_a_function_counts(package):
    before = key(package)
    edit(package, "methods/pearl.py", new="# a comment\n")
    edit(package, "methods/pearl.py", '"""PEARL', '"""Pearls: PEARL')
    assert key(package) == before
    (package / "extra.py").write_text("X = 1\n")
    edit(package, "methods/pearl.py", new="\ndef late():\n    from ..extra import X\n")
    with_import = key(package)
    edit(package, "extra.py", "1", "2")
    assert with_import not in (before, key(package))


def test_a_measured_cell_depends_on_models_machine_and_prompts(monkeypatch):
    names = cache_keys.imported_modules(("speclib.methods.pearl", *measured_cell.CODE))
    assert {
        "speclib.models.hf",
        "speclib.models.dilate",
        "speclib.worlds.worker",
    } <= set(names)
    assert not {"speclib.methods.speculative", "speclib.experiment"} & set(names)
    before = measured_cell.key_of(measured())
    monkeypatch.setattr(machine, "environment", lambda: (("cpu", "another"),))
    assert measured_cell.key_of(measured()) != before


def test_a_latency_file_enters_the_key(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "latency" / "pearl"
    folder.mkdir(parents=True)
    shutil.copy(paths.DATA / "latency" / f"{LATENCY}.toml", folder)
    monkeypatch.setattr(virtual_cell, "DATA", tmp_path / "data")
    before = virtual_cell.key_of(virtual())
    edit(folder, "codellama-7-34.toml", new="# another\n")
    assert virtual_cell.key_of(virtual()) != before


def test_a_method_of_a_notebook_counts_with_its_own_source(monkeypatch):
    def mine(world, gamma):
        METHODS["speculative"](world, gamma)

    mine.__module__ = "__main__"
    assert cache_keys.is_foreign(mine) and not cache_keys.is_foreign(METHODS["pearl"])
    monkeypatch.setitem(METHODS, "mine", mine)
    spec = virtual("mine", 4)
    other = virtual("speculative", 4)
    runs = run_all([spec, other])
    assert runs[spec].stats == runs[other].stats
    assert virtual_cell.key_of(spec) != virtual_cell.key_of(other)


# -- files -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace("3", "4", 1),
        lambda text: "\n".join(text.splitlines()[:-1]) + "\n",
        lambda text: "[1, 2]\n" + text,
    ],
)
def test_a_corrupt_cell_is_computed_again_not_trusted(own_cache, computed, damage):
    spec = virtual()
    truth = run_all([spec])[spec].stats
    path = own_cache / f"{virtual_cell.key_of(spec)}.jsonl"
    good = path.read_text()
    path.write_text(damage(good))
    before = len(computed)
    assert run_all([spec])[spec].stats == truth
    assert len(computed) == before + 1
    assert cache.read(virtual_cell.key_of(spec)) is not None


def test_a_file_of_another_key_is_not_taken_for_this_one(own_cache):
    run_all([virtual()])
    ours, other = virtual_cell.key_of(virtual()), virtual_cell.key_of(virtual(gamma=4))
    shutil.copy(own_cache / f"{ours}.jsonl", own_cache / f"{other}.jsonl")
    assert cache.read(ours) and cache.read(other) is None


def test_a_write_is_whole_or_not_there(tmp_path):
    path = tmp_path / "deep" / "file.csv"
    write_atomically(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new \ud800\n")
    assert path.read_text() == "old\n" and [p.name for p in path.parent.iterdir()] == [
        "file.csv"
    ]


# -- interruptions and failures --------------------------------------------------------
def test_an_interrupted_run_keeps_finished_cells_and_resumes(computed, monkeypatch):
    specs = [virtual(gamma=g) for g in (2, 3, 4, 5)]
    real = virtual_cells.run_requests

    def interrupted(cell, requests):
        if cell.settings.get("gamma") == 4:
            raise KeyboardInterrupt
        return real(cell, requests)

    with monkeypatch.context() as patch:
        patch.setattr(virtual_cells, "run_requests", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_all(specs)
    computed.clear()
    run_all(specs)
    assert [call for call in computed if call[0] == "pearl"] == [
        ("pearl", 4),
        ("pearl", 5),
    ]


def test_a_failing_cell_leaves_the_others_and_is_named(monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = virtual(), virtual("broken", 2)
    says = r"(?s)1 of 2 cells.*broken\(gamma=2\).*no draft"
    with pytest.raises(CellsFailed, match=says) as failed:
        run_all([bad, good])
    assert set(failed.value.results) == {good} and set(failed.value.errors) == {bad}
    assert isinstance(failed.value, SpeclibError)


def test_many_cells_run_on_every_core_and_agree_with_one(monkeypatch, own_cache):
    specs = [virtual(gamma=g, tokens=60) for g in range(1, 11)]
    parallel = run_all(specs)
    assert (
        len(list(own_cache.glob("*.jsonl"))) == 11
    )  # in this cache, plain decoding once
    monkeypatch.setattr(machine, "cores", lambda: 1)
    shutil.rmtree(own_cache)
    assert {s: r.stats for s, r in run_all(specs).items()} == {
        s: r.stats for s, r in parallel.items()
    }


# -- measured, on toys -----------------------------------------------------------------
def test_measured_cells_share_prompts_workers_and_baseline(own_cache, monkeypatch):
    plain, pearl, sd = (
        measured("autoregressive", None),
        measured(),
        measured("speculative", "best"),
    )
    runs = run_all([plain, pearl, sd])
    assert all(
        len(run.stats) == 3 and run.machine == machine.name() for run in runs.values()
    )
    assert (
        runs[plain].stats
        == runs[plain].baseline
        == runs[pearl].baseline
        == runs[sd].baseline
    )
    assert (
        runs[pearl].facts["differs"] == [None] * 3
    )  # token for token plain decoding's
    assert set(runs[pearl].facts["contention"]) == {"draft", "target"}
    assert str(runs[sd].gamma) in runs[sd].facts["searched"]
    assert example_trace(runs[pearl]).meta["gamma"] == 2 and runs[pearl].pieces

    def never(*_, **__):
        raise AssertionError("workers started for cells that are done")

    monkeypatch.setattr(measuring, "Processes", never)
    again = run_all([plain, pearl, sd])
    assert all(again[s].stats == runs[s].stats and again[s].cached for s in runs)


def test_cells_of_one_method_and_window_share_its_run(monkeypatch):
    real, asked = measured_cells.decode_prompt, []

    def counted(world, prompt, setting, conditions, request):
        if conditions.tokens == 12:
            asked.append((setting.method, request))
        return real(world, prompt, setting, conditions, request)

    monkeypatch.setattr(measured_cells, "decode_prompt", counted)
    long, short = measured(requests=3), measured(requests=2)
    runs = run_all([short, long])
    assert sorted(asked) == [
        (m, i) for m in ("autoregressive", "pearl") for i in range(3)
    ]
    assert runs[short].stats == runs[long].stats[:2]


def test_an_interrupted_measurement_goes_on_at_its_next_prompt(monkeypatch):
    real, asked = measured_cells.decode_prompt, []

    def interrupted(world, prompt, setting, conditions, request):
        if conditions.tokens == 12 and setting.method != "autoregressive":
            asked.append(request)
            if len(asked) == 4:  # the second method of the second prompt
                raise KeyboardInterrupt
        return real(world, prompt, setting, conditions, request)

    monkeypatch.setattr(measured_cells, "decode_prompt", interrupted)
    specs = [measured(gamma=2), measured("speculative", 2)]
    with pytest.raises(KeyboardInterrupt):
        run_all(specs)
    assert asked == [0, 0, 1, 1]
    run_all(specs)
    assert asked == [0, 0, 1, 1] + [1, 1, 2, 2]


def test_a_measured_method_that_fails_leaves_the_others(monkeypatch):
    def broken(world, gamma):
        raise ZeroDivisionError("no draft")

    broken.__module__ = "speclib.methods.pearl"
    monkeypatch.setitem(METHODS, "broken", broken)
    good, bad = measured(), measured("broken", 2)
    with pytest.raises(CellsFailed, match="measured broken") as failed:
        run_all([good, bad])
    assert len(failed.value.results[good].stats) == 3


def test_cells_that_are_done_survive_a_pair_that_cannot_start(monkeypatch):
    done, new = measured(), measured(gamma=3)
    run_all([done])

    def broken(*_, **__):
        raise SpeclibError("no such device")

    monkeypatch.setattr(measuring, "Processes", broken)
    with pytest.raises(CellsFailed, match="1 of 2 cells") as failed:
        run_all([done, new])
    assert set(failed.value.results) == {done}


def test_an_unknown_pair_or_task_is_named():
    with pytest.raises(CellsFailed, match="no pair 'nowhere'"):
        run_all([measured(pair="nowhere")])
    with pytest.raises(CellsFailed, match="unknown task 'sudoku'"):
        run_all([measured(task="sudoku")])


def test_without_torch_a_measured_cell_says_what_to_install(monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(measuring, "Processes", missing)
    with pytest.raises(
        CellsFailed, match=r"No module named 'torch'.*speclib\[models\]"
    ):
        run_all([measured()])


def test_the_first_difference_between_outputs():
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2, 3), (1, 9, 3)) == 1
    assert first_difference((1, 2), (1, 2, 3)) == 2


class Margin(Toy):
    """After n tokens the best logit leads by n eighths."""

    def rows(self, text, last, sampler):
        self._feed(text, last)
        ends = range(len(text) - last, len(text) + 1)
        return sampler(np.array([[-1.0, 3.0, 3.0 + n / 8] for n in ends]))


def test_a_departure_has_the_gap_between_the_targets_two_best_logits():
    world = Virtual(
        {"draft": Margin(vocab=3), "target": Margin(vocab=3)}, Latency.ratio(3)
    )
    departure = find_departure(world, (0,), (2, 2, 1, 2), (2, 2, 2, 2))
    assert departure == Departure(position=2, gap=pytest.approx(3 / 8))
    no_departure = find_departure(world, (0,), (2, 2), (2, 2))
    assert no_departure == Departure(position=None, gap=None)


def test_agreements_are_what_verification_finds():
    """PEARL tests a draft at every position that it commits."""
    cell = virtual_cells.ToyCell(
        METHODS["pearl"], load_latency(LATENCY), 0.8, tokens=80, settings={"gamma": 3}
    )
    world = virtual_cells.open_world(cell)
    trace = virtual_cells.decode_request(cell, 0, world)
    output = world.text[1:]
    tested = [
        o == "accepted" for e in trace.operations for o in e.outcome if o != "wasted"
    ]
    assert 5 < tested.count(False) < 40
    assert find_agreements(world, (0,), output) == tested


@pytest.mark.slow
def test_a_gap_of_the_embedded_target_is_that_of_its_logits():
    import torch
    from transformers import AutoModelForCausalLM

    pair = load_pair("embedded/llama-7b-70b")
    network = AutoModelForCausalLM.from_pretrained(zoo.ZOO / "target", dtype="float32")
    world = open_world("virtual", pair)
    text = factory.tokenizer(pair).encode("def add(a, b):\n    return")
    logits = network(torch.tensor([text])).logits[0, -1, : factory.vocab(pair)].topk(2)
    departure = find_departure(world, tuple(text), (1,), (logits.indices[0].item(),))
    assert departure.gap == pytest.approx(
        (logits.values[0] - logits.values[1]).item(), abs=1e-4
    )


@pytest.mark.slow
def test_agreements_of_embedded_models_are_what_verification_finds():
    spec = measured(
        pair="embedded/llama-7b-70b", task="humaneval", requests=1, tokens=48
    )
    run = run_all([spec])[spec]
    tested = [
        o == "accepted"
        for e in example_trace(run).operations
        for o in e.outcome
        if o != "wasted"
    ]
    assert run.facts["agree"] == tested and False in tested


@pytest.mark.slow
def test_bfloat16_cells_run_beside_plain_decoding_of_the_same_dtype():
    if not machine.computes("bfloat16", ("cpu",)):
        pytest.skip("no bfloat16 instructions")
    spec = measured(
        pair="embedded/llama-7b-70b",
        task="humaneval",
        dtype="bfloat16",
        requests=1,
        tokens=8,
    )
    run = run_all([spec])[spec]
    assert len(run.facts["agree"]) == run.stats[0].tokens == 8
    assert [g is None for g in run.facts["gap"]] == [
        d is None for d in run.facts["differs"]
    ]


@pytest.mark.parametrize(
    "flags, places, able",
    [
        ("fpu avx512_bf16", ("core:0",), True),
        ("fpu avx2", ("core:0", "cpu"), False),
        ("fpu avx2", ("cuda:0", "cuda:1"), True),
        ("fpu avx2", ("cpu", "cuda:0"), False),
    ],
)
def test_bfloat16_wants_instructions_of_every_place(monkeypatch, flags, places, able):
    monkeypatch.setattr(machine, "_cpuinfo", {"flags": flags}.get)
    assert machine.computes("bfloat16", places) is able
    assert machine.computes("auto", places)


# -- what is shown ---------------------------------------------------------------------
def test_progress_is_silent_for_two_seconds_then_plain_lines(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("speclib.progress.time.monotonic", lambda: now[0])
    with Progress("cells", 3) as bar:
        bar.step("one")
        assert capsys.readouterr().out == ""
        now[0] = 3.0
        bar.step("two")
        bar.grow(1)
        bar.step("three")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["cells: 2 of 3, 3 s  two", "cells: 3 of 4, 3 s  done"]


def test_the_machine_has_a_short_stable_name():
    assert machine.name() == machine.name() and " " not in machine.name()
    assert f"-{machine.cores()}c" in machine.name()
    assert json.dumps(machine.environment())


def test_profiles_differ_in_size_only():
    assert QUICK.virtual_tokens < FULL.virtual_tokens
    assert QUICK.prompts * QUICK.tokens < FULL.prompts * 64
