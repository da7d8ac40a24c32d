"""Hardware files: errors name the file and the entry."""

from __future__ import annotations

import pytest

from speclab.theory import hardware
from speclib.errors import SpeclibError

DEVICE = "bandwidth = 1e9\njoin = 1e-5\n"
ENTRY = "draft = 1\ntarget = 2\nweights = 5e8\nlayers = 10\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "DATA", tmp_path)
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "device.toml").write_text(DEVICE)
    return tmp_path / "hardware"


def write_paper(folder, entry: str, device: str = "device") -> None:
    (folder / "paper.toml").write_text(f'device = "{device}"\n[pair]\n{entry}')


def test_an_entry_gives_the_devices_and_the_time_to_read_the_weights(folder):
    write_paper(folder, ENTRY)
    known = hardware.load_hardware("paper/pair")
    # Half a billion weights of two bytes each, at a billion bytes per second.
    assert known.reading == pytest.approx(1.0)
    assert (known.devices(drafts=True), known.devices(drafts=False)) == (3, 2)
    assert known.plain_pass(1.5).seconds(2) == pytest.approx(0.5 + 0.5 + 10 * 1e-5)
    assert hardware.load_hardware("paper/another") is None


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY.replace("layers = 10\n", ""),
        ENTRY.replace("target = 2", "target = 0"),
        ENTRY.replace("5e8", "-5e8"),
        ENTRY + "colour = 1\n",
    ],
)
def test_a_wrong_entry_is_named_with_its_file(folder, entry):
    write_paper(folder, entry)
    with pytest.raises(SpeclibError, match=r"paper\.toml, \[pair\]: give draft"):
        hardware.load_hardware("paper/pair")


def test_the_error_for_an_unknown_device_lists_the_known_files(folder):
    write_paper(folder, ENTRY, device="abacus")
    with pytest.raises(SpeclibError, match="abacus"):
        hardware.load_hardware("paper/pair")


def test_a_pass_reads_every_weight_once_and_computes_for_each_token():
    """6.74e9 weights on an A100: 2.039e12 bytes and 312e12 operations per second."""
    passes = {n: hardware.forward_pass(n, 6.74e9, "a100") for n in (1, 5, 50)}
    for each in passes.values():
        assert each.bytes_read == 13.48e9
        assert each.reading == pytest.approx(6.61e-3, rel=1e-3)
    assert passes[5].operations == pytest.approx(67.4e9)
    assert passes[50].computing == pytest.approx(2.16e-3, rel=1e-3)
    # Up to about 150 tokens, reading takes longer, as in lesson 00.
    assert 150 < passes[1].reading / passes[1].computing < 160
