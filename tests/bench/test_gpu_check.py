"""`make gpu-check` without a GPU: the same checks on a CPU, with small shapes.

Reports are tested with fake checks, which advance a fake clock, so nothing waits. No
test here shows how a GPU behaves.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from packaging.requirements import Requirement  # noqa: E402

import speclib  # noqa: E402
from speclab import machine_facts  # noqa: E402
from speclab.bench.bench_rows import BenchRow  # noqa: E402
from speclab.bench.gpu import (  # noqa: E402
    __main__,
    bits,
    setup,
    speed,
)
from speclab.bench.gpu.report import page_of  # noqa: E402
from speclib import SpeclibError, paths  # noqa: E402
from speclib.methods import METHODS  # noqa: E402
from speclib.models import gpus

ON_A_CPU = setup.setup_for_cpu()
FAKE_GPU = setup.Setup(draft="cuda:0", target="cuda:0")


# -- the real checks, on a CPU ---------------------------------------------------------
@pytest.mark.thorough
def test_on_a_cpu_every_method_is_exact_and_the_report_is_written(
    tmp_path, monkeypatch, own_cache
):

    found = __main__.gpu_check(ON_A_CPU, __main__.CHECKS, tmp_path, minutes=60)

    assert found.holds, (found.stopped, found.rows)
    names = [row.name for row in found.rows]
    every_name = "\n".join(names)
    for method in METHODS:
        if method != "autoregressive":
            assert f", {method}, bfloat16 in passes of 16" in every_name
            assert f", {method}, float32" in every_name
    for race in ("", ", draft on the CPU"):
        assert f"\nPEARL over plain decoding{race}\n" in every_name
    assert "\nc, Llama 68M & Llama 2 7B, launched one by one" in every_name
    for arithmetic in ("float32", "bfloat16 in passes of 16 tokens"):
        assert f", pearl, {arithmetic}, requests at a time: 4\n" in every_name
    for layout in ("tensors", "stages"):
        assert f"plain decoding, target by {layout}" in every_name

    report = report_in(tmp_path)
    assert [row["name"] for row in report["rows"]] == names
    assert report["under way"] == ""
    page = (tmp_path / f"{machine_facts.name()}.md").read_text()
    assert "| target on | core:1 |" in page


@pytest.fixture
def image(tmp_path):
    """The environment of an image with only torch, transformers and their dependencies.

    All other packages are hidden, also from workers.
    """
    names = sorted(_other_packages())
    assert {"accelerate", "psutil", "pandas", "plotly"} <= set(names)
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in names)]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    ours = os.path.dirname(os.path.dirname(speclib.__file__))
    return os.environ | {"PYTHONPATH": f"{tmp_path}:{ours}"}


@pytest.mark.slow
def test_an_image_with_only_torch_and_transformers_has_all_that_is_imported(image):
    """This covers what the checks import at once, and what workers import later."""
    modules = [
        "speclab.bench.gpu.__main__",
        "speclib.models.fixed_rows",
        "speclib.models.preflight",
        "speclib.models.eagle_head",
        "speclib.models.parallel.layer_parallel",
        "speclib.models.parallel.pipeline",
        "speclib.models.parallel.replicas",
        "speclib.models.parallel.tensor_parallel",
        "speclib.worlds.processes",
    ]
    code = "; ".join(f"import {module}" for module in modules)
    subprocess.run([sys.executable, "-c", code], check=True, env=image)


@pytest.mark.thorough
def test_an_image_with_only_torch_and_transformers_can_run_the_checks(image, tmp_path):
    command = [sys.executable, "-m", "speclab.bench.gpu", "--device", "cpu"]
    options = ["--only", "growth", "ranks", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, env=image
    )
    report = report_in(tmp_path / "out")
    assert not report["stopped"], done.stdout + done.stderr
    assert len(report["rows"]) == 8


def _other_packages() -> set[str]:
    """Returns installed packages that neither torch nor transformers depends on."""
    wanted = ["torch", "transformers"]
    known: set[str] = set()
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name in known:
            continue
        known.add(name)
        try:
            requirements = map(Requirement, requires(name) or [])
        except PackageNotFoundError:
            continue
        for requirement in requirements:
            is_wanted = requirement.marker is None or requirement.marker.evaluate()
            if is_wanted:
                wanted.append(requirement.name)

    others = set()
    for package, distributions in packages_distributions().items():
        owners = {owner.lower().replace("_", "-") for owner in distributions}
        if not owners & (known | {"speclib", "pip"}) and package.isidentifier():
            others.add(package)
    return others


# -- the report ------------------------------------------------------------------------
class Clock:
    """A clock that shows the time it was set to, in seconds."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def stand_in(*rows, clock=None, seconds=0.0, error=None):
    """Returns a fake check with these rows, each of which takes ``seconds``."""

    def take(own_setup):
        for row in rows:
            if clock is not None:
                clock.time += seconds
            yield BenchRow(row, 1.0, "ratio")
        if error is not None:
            raise error

    return take


def report_in(folder):
    (path,) = folder.glob("*.json")
    return json.loads(path.read_text())


def checked(checks, folder, clock=time.monotonic):
    """Runs these checks with a limit of nine and a half minutes; returns the report."""
    return __main__.gpu_check(ON_A_CPU, checks, folder, 9.5, clock)


def test_rows_from_before_a_failure_are_reported(tmp_path):
    error = RuntimeError("CUDA out of memory")
    failing = stand_in("what came first", error=error)
    report = checked({"failing": failing}, tmp_path)
    assert not report.holds
    assert report.stopped == {"failing": "RuntimeError: CUDA out of memory"}
    page = next(tmp_path.glob("*.md")).read_text()
    assert "what came first" in page
    assert "CUDA out of memory" in page


@pytest.mark.parametrize("rows_before", [0, 3])
def test_killed_after_any_row_it_leaves_a_report_of_the_rows(tmp_path, rows_before):
    """SIGKILL ends it while the checks run on a simulated GPU."""
    asked = 0

    def rows_until_killed(names):
        def take(own_setup):
            nonlocal asked
            for name in names:
                if asked == rows_before:
                    os.kill(os.getpid(), signal.SIGKILL)
                asked += 1
                yield BenchRow(name, 1.0, "share", aim=1.0)

        return take

    checks = {
        "first": rows_until_killed(["a", "b"]),
        "second": rows_until_killed(["c", "d", "e"]),
    }
    process = multiprocessing.get_context("fork").Process(
        target=__main__.gpu_check, args=(FAKE_GPU, checks, tmp_path, 9.5)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL

    report = report_in(tmp_path)
    assert [row["name"] for row in report["rows"]] == list("abcde")[:rows_before]
    assert report["under way"] == ("first" if rows_before < 2 else "second")
    assert report["machine"]["target on"] == "cuda:0"
    page = next(tmp_path.glob("*.md")).read_text()
    assert f"**{report['under way']}** was under way" in page
    assert page.count("at least 1") == rows_before


def test_no_check_begins_after_the_time_limit(tmp_path):
    clock = Clock()
    checks = {
        "quick": stand_in("a", "b", clock=clock, seconds=60.0),
        "slow": stand_in("c", "d", clock=clock, seconds=400.0),
        "late": stand_in("e", clock=clock),
    }
    report = checked(checks, tmp_path, clock)
    assert [row.name for row in report.rows] == ["a", "b", "c", "d"]
    assert report.stopped == {
        "slow": "TimeoutError: 9.5 minutes were over",
        "late": "not begun: 9.5 minutes were over",
    }
    assert not report.holds
    assert report_in(tmp_path)["stopped"] == report.stopped


def test_a_check_that_hangs_is_killed(tmp_path, monkeypatch):
    """It is killed a hundredth of a second after its time limit."""

    def hang(own_setup):
        yield BenchRow("a", 1.0, "ratio")
        signal.pause()

    monkeypatch.setattr(__main__, "CHECKS", {"hanging": hang})
    monkeypatch.setattr(__main__, "GRACE", 0.01)
    options = ["--device", "cpu", "--minutes", "0.01", "--out", str(tmp_path)]
    process = multiprocessing.get_context("fork").Process(
        target=__main__.main, args=(options,)
    )
    process.start()
    process.join()
    assert process.exitcode == 1
    assert report_in(tmp_path)["under way"] == "hanging"


# -- aims ------------------------------------------------------------------------------
@pytest.mark.parametrize("is_recorded", [True, False])
def test_only_recorded_passes_have_an_aim_for_bandwidth(is_recorded, monkeypatch):
    model = SimpleNamespace(is_recorded=is_recorded, network=None)
    monkeypatch.setattr(speed, "bytes_read_per_pass", lambda _: 1 << 30)
    row = speed.share_of_bandwidth(FAKE_GPU, model, [0.01], 150 * 2.0**30)
    assert row.value == pytest.approx(100 / 150)
    assert row.aim == (0.6 if is_recorded else None)


# -- bits ------------------------------------------------------------------------------
def test_a_single_different_bit_is_found():
    import numpy as np

    some = np.ones((4, 3), np.float32)
    others = some.copy()
    others[2, 1] = np.nextafter(np.float32(1), np.float32(2))
    row = bits.same_bits("so", some, others)
    assert row.value == 0.75
    assert row.holds == "no"


# -- bytes read per pass ---------------------------------------------------------------
def test_the_weights_read_by_a_pass_exclude_the_embeddings():
    """The layers have 3 x 4 and 4 x 5 float32 numbers, the embedding 7 x 3."""
    import torch

    network = torch.nn.Sequential(
        torch.nn.Embedding(7, 3),
        torch.nn.Linear(3, 4, bias=False),
        torch.nn.Linear(4, 5, bias=False),
    )
    assert speed.bytes_read_per_pass(network) == 4 * (12 + 20)


# -- machines without a GPU ------------------------------------------------------------
def test_without_a_gpu_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(gpus, "count", lambda: 0)
    with pytest.raises(SpeclibError, match="no GPU here.*--device cpu"):
        setup.setup_for_gpus()


# -- committed reports -----------------------------------------------------------------
REPORTS = sorted((paths.PUBLISHED / "gpu").glob("*.json"))


def measured_on(gpu: str) -> dict[str, float]:
    """Returns the values in a GPU's committed report, by row name."""
    for path in REPORTS:
        report = json.loads(path.read_text())
        if gpu in report["machine"]["gpus"]:
            return {row["name"]: float(row["value"]) for row in report["rows"]}
    raise AssertionError(f"no report of {gpu}")


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_a_committed_page_matches_its_report(report):
    page = page_of(json.loads(report.read_text("utf-8")), report.stem)
    assert report.with_suffix(".md").read_text("utf-8") == page


def test_a_committed_latency_file_has_its_reports_measurements():
    for name in setup.SHAPE_PAIRS:
        pair = speclib.load_pair(name)
        latency = speclib.load_latency(name.replace("shape/", "h200/"))
        measured = measured_on("H200")[f"c, {pair.stands_for}, recorded"]
        assert latency.c == pytest.approx(measured, rel=2e-3)
        assert latency.target(16) == latency.target(1)
        assert latency.target(17) == pytest.approx(2 * latency.target(1))
