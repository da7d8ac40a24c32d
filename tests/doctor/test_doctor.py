"""What `python -m speclab doctor` reports is true."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import speclib  # noqa: E402
from speclab.doctor import report  # noqa: E402
from speclib.data.toml_files import names_under  # noqa: E402
from speclib.errors import BadValue  # noqa: E402
from speclib.paths import DATA  # noqa: E402

ROOT = Path(speclib.__file__).parents[1]
GB = 1e9


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "speclab", "doctor", *options],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=300,
    )


@pytest.fixture(scope="module")
def findings() -> dict:
    """The JSON report about this machine."""
    return json.loads(report.as_json(report.examine_machine()))


SHOWN_PAIRS = ("llama-68m-7b", "phi3-4b-14b")


@pytest.fixture
def home_of_two_pairs(tmp_path) -> Path:
    """A home with this checkout's data, but only two of the papers' pairs."""
    all_pairs = ROOT / "data" / "pairs"
    pairs = tmp_path / "data" / "pairs"
    (pairs / "hub").mkdir(parents=True)
    link_all(ROOT / "data", tmp_path / "data", but="pairs")
    link_all(all_pairs, pairs, but="hub")

    for name in SHOWN_PAIRS:
        file = f"hub/{name}.toml"
        (pairs / file).symlink_to(all_pairs / file)
    return tmp_path


def link_all(folder: Path, into: Path, *, but: str) -> None:
    """Links everything in a folder except one entry into another folder."""
    for path in folder.iterdir():
        if path.name != but:
            (into / path.name).symlink_to(path)


def check_of(findings: dict, name: str) -> dict:
    (check,) = (check for check in findings["checks"] if check["name"] == name)
    return check


@pytest.mark.slow
def test_installed_versions_are_reported_and_compared_with_the_pins(findings):
    lock = (ROOT / "requirements.lock").read_text()
    pins = dict(re.findall(r"^(\S+)==(\S+)$", lock, re.M))

    for package in ("torch", "transformers", "accelerate", "numpy"):
        check = check_of(findings, package)
        installed = importlib.metadata.version(package)
        assert check["found"] == installed
        same = installed.split("+")[0] == pins[package]
        assert check["state"] == ("yes" if same else "differs")


@pytest.mark.slow
def test_the_machine_is_this_one(findings):
    cores = check_of(findings, "cores")["found"]
    assert cores.startswith(f"{len(os.sched_getaffinity(0))} of ")

    memory = check_of(findings, "memory")["found"]
    total = float(re.search(r"of ([\d.]+) GB", memory)[1])
    assert total == pytest.approx(psutil.virtual_memory().total / GB, abs=0.1)

    if shutil.which("nvidia-smi") is None:
        assert check_of(findings, "GPUs")["found"] == "none"


@pytest.mark.slow
def test_every_pair_of_the_papers_is_listed_with_its_sizes(findings):
    pairs = {pair["name"]: pair for pair in findings["pairs"]}
    assert set(pairs) == {f"hub/{name}" for name in names_under(DATA / "pairs" / "hub")}
    papers = {pair["paper"] for pair in pairs.values()}
    assert papers == {"pearl", "easyspec", "duodecoding", "dsi"}

    llama = pairs["hub/llama-7b-70b"]
    weights = {}
    for part in llama["parts"]:
        weights[part["device"]] = weights.get(part["device"], 0) + part["weights"]
    assert weights == {"draft": 2 * 6_738_415_616, "target": 2 * 68_976_648_192}
    assert llama["gpus"] == 4  # PEARL, Appendix C.3: one plus three
    assert llama["without_weights"] == "shape/llama-7b-70b"
    assert pairs["hub/phi3-4b-14b"]["without_weights"] == ""


@pytest.mark.slow
def test_missing_parts_are_named(findings):
    pairs = {pair["name"]: pair for pair in findings["pairs"]}
    missing = "; ".join(pairs["hub/llama3-8b-70b"]["missing"])
    if torch.cuda.device_count() == 0:
        assert "8 GPUs, but only 0 are here" in missing
    assert "weights of meta-llama/Meta-Llama-3-70B-Instruct, which is gated" in missing
    assert "access to the hub" in missing  # tests run offline
    assert "HF_HUB_OFFLINE is set" in check_of(findings, "hub of models")["found"]


def weights_of_the_zoo(folder, names):
    return [name for name in names if name.endswith(".safetensors")]


@pytest.mark.slow
def test_without_the_embedded_models_it_fails_with_the_reason_and_lists_each_pair(
    home_of_two_pairs,
):
    models = home_of_two_pairs / "data" / "models"
    models.unlink()
    shutil.copytree(ROOT / "data" / "models", models, ignore=weights_of_the_zoo)

    done = doctor(COLUMNS="200", SPECLIB_HOME=str(home_of_two_pairs))

    assert done.returncode == 1
    assert done.stderr == ""
    assert "zoo/target' is missing" in done.stdout
    assert "The embedded models cannot run here" in done.stdout
    for name in SHOWN_PAIRS:
        assert f"hub/{name} " in done.stdout
    assert "assumed" in done.stdout


def test_without_torch_it_says_so_and_checks_the_rest():
    code = """
        import sys
        sys.modules["torch"] = None
        sys.argv = ["speclab", "doctor", "--json"]
        from speclab.__main__ import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)
    assert findings["pairs"] == []
    assert "torch is not installed" in findings["pairs_reason"]
    assert check_of(findings, "measured numbers")["state"] == "no"


@pytest.mark.parametrize(
    "settings, says",
    [({"dtype": "int3"}, "unknown dtype 'int3'"), ({"length": 0}, "length is 0")],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(BadValue, match=says):
        report.examine_machine(**settings)
