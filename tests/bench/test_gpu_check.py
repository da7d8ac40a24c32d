"""`make gpu-check`, on a CPU: the same checks with small shapes."""

import json

import pytest

pytest.importorskip("torch")

from speclib import SpeclibError, machine, paths  # noqa: E402
from speclib.bench.gpu import check, setup  # noqa: E402
from speclib.bench.rows import BenchRow  # noqa: E402
from speclib.methods import METHODS  # noqa: E402
from speclib.models import device_speed, gpus  # noqa: E402


@pytest.mark.slow
def test_on_a_cpu_every_method_is_exact_and_the_report_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    outcome = check.gpu_check(setup.setup_for("cpu"))
    assert outcome.holds, outcome
    names = [row.name for row in outcome.rows]
    for method in METHODS:
        if method != "autoregressive":
            assert any(
                f", {method}, bfloat16 in passes of 16" in name for name in names
            )
            assert any(f", {method}, float32" in name for name in names)
    assert any(name.startswith("PEARL over plain decoding") for name in names)

    folder = tmp_path / "gpu"
    report = json.loads((folder / f"{machine.name()}.json").read_text())
    assert [row["name"] for row in report["rows"]] == names
    page = (folder / f"{machine.name()}.md").read_text()
    assert "| target on | core:1 |" in page


def test_what_a_check_gave_before_it_failed_is_reported(tmp_path, monkeypatch):
    def failing(own_setup):
        yield BenchRow("what came first", 1.0, "ratio")
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(check, "CHECKS", (failing,))
    outcome = check.gpu_check(setup.setup_for("cpu"))
    assert not outcome.holds
    assert outcome.stopped == {"failing": "RuntimeError: CUDA out of memory"}
    page = next((tmp_path / "gpu").glob("*.md")).read_text()
    assert "what came first" in page and "CUDA out of memory" in page


def test_weights_that_a_pass_reads_are_counted_without_the_embeddings():
    """Two layers of 3 x 4 and 4 x 5 float32 numbers, and an embedding of 7 x 3."""
    import torch

    network = torch.nn.Sequential(
        torch.nn.Embedding(7, 3),
        torch.nn.Linear(3, 4, bias=False),
        torch.nn.Linear(4, 5, bias=False),
    )
    assert device_speed.bytes_read_per_pass(network) == 4 * (12 + 20)


def test_two_gpus_get_a_model_each_and_one_gets_both(monkeypatch):
    monkeypatch.setattr(gpus, "count", lambda: 2)
    two = setup.setup_for("cuda")
    assert (two.draft, two.target) == ("cuda:0", "cuda:1")
    assert not two.shares_a_device
    monkeypatch.setattr(gpus, "count", lambda: 1)
    assert setup.setup_for("cuda").shares_a_device


def test_without_a_gpu_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(gpus, "count", lambda: 0)
    with pytest.raises(SpeclibError, match="no GPU here.*--device cpu"):
        setup.setup_for("cuda")
    with pytest.raises(SpeclibError, match="unknown device 'tpu'.*cuda"):
        setup.setup_for("tpu")
