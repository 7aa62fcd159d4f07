"""The chips: what can be known of each holds, and every way to name one finds it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpsmith import chips
from warpsmith.errors import InputError, UnknownChipError

GOLDEN = json.loads((Path(__file__).parent / "golden" / "h200.json").read_text())


def test_the_default_is_a_chip() -> None:
    assert chips.load(chips.DEFAULT).id == "h200"


@pytest.mark.parametrize("chip", chips.every(), ids=lambda chip: chip.id)
def test_every_name_finds_its_chip(chip: chips.Chip) -> None:
    for name in (chip.id, chip.id.upper(), chip.name, *chip.aliases):
        assert chips.load(name) == chip


@pytest.mark.parametrize("chip", chips.every(), ids=lambda chip: chip.id)
def test_numbers_agree_with_each_other(chip: chips.Chip) -> None:
    assert chip.target.rstrip("a") == f"sm_{chip.compute[0]}{chip.compute[1]}"
    assert chip.shared_per_block_optin + chip.shared_reserved == chip.shared_per_sm
    assert chip.shared_per_sm == chip.shared_carveouts[-1] * 1024
    assert chip.threads_per_sm in (1024, 1536, 2048)
    assert chip.clusters == (chip.compute >= (9, 0))
    assert (chip.tensor_memory_columns > 0) == (chip.compute[0] == 10)


def test_aliases_are_unique() -> None:
    names = [chips._plain(name) for chip in chips.every() for name in {chip.id, chip.name, *chip.aliases}]
    assert len(names) == len(set(names))


def test_h200_is_what_the_hardware_says() -> None:
    chip, said, attributes = chips.load("h200"), GOLDEN["properties"], GOLDEN["attributes"]
    assert chip.name == GOLDEN["name"]
    assert list(chip.compute) == [said["major"], said["minor"]]
    for ours, theirs in {
        "sm_count": "multiProcessorCount",
        "threads_per_sm": "maxThreadsPerMultiProcessor",
        "blocks_per_sm": "maxBlocksPerMultiProcessor",
        "threads_per_block": "maxThreadsPerBlock",
        "registers_per_sm": "regsPerMultiprocessor",
        "registers_per_block": "regsPerBlock",
        "shared_per_sm": "sharedMemPerMultiprocessor",
        "shared_per_block": "sharedMemPerBlock",
        "shared_per_block_optin": "sharedMemPerBlockOptin",
        "shared_reserved": "reservedSharedMemPerBlock",
        "global_memory": "totalGlobalMem",
        "constant_memory": "totalConstMem",
        "l2_cache": "l2CacheSize",
        "l2_persisting": "persistingL2CacheMaxSize",
        "memory_bus_bits": "memoryBusWidth",
        "copy_engines": "asyncEngineCount",
        "clusters": "clusterLaunch",
        "warp_size": "warpSize",
        "ecc": "ECCEnabled",
    }.items():
        assert getattr(chip, ours) == said[theirs], ours
    assert list(chip.max_block) == said["maxThreadsDim"]
    assert list(chip.max_grid) == said["maxGridSize"]
    assert (chip.clock_khz, chip.memory_clock_khz) == (attributes["13"], attributes["36"])


@pytest.mark.parametrize(
    ("chip", "gigabytes", "teraflops"),
    [("h200", 4814, 66.9), ("a100", 2039, 19.5), ("rtx3090", 936, 35.6), ("rtx4090", 1008, 82.6), ("t4", 320, 8.1)],
)
def test_ceilings_are_those_of_the_data_sheets(chip: str, gigabytes: float, teraflops: float) -> None:
    loaded = chips.load(chip)
    assert round(loaded.bandwidth / 1e9) == gigabytes
    assert round(loaded.fp32_flops / 1e12, 1) == teraflops


def test_an_unknown_chip_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownChipError) as error:
        chips.load("h20")
    assert "no chip 'h20' (did you mean h200?)" in str(error.value)
    assert "a100" in str(error.value)


def test_a_chip_of_ones_own(tmp_path: Path) -> None:
    base = (Path(chips.__file__).parent / "t4.toml").read_text()
    mine = tmp_path / "mine.toml"
    mine.write_text(base.replace("sm_count = 40", "sm_count = 2"))
    assert chips.load(str(mine)).sm_count == 2
    mine.write_text(base + "\nsm_kount = 3\n")
    with pytest.raises(InputError, match="does not know sm_kount"):
        chips.load(str(mine))
    mine.write_text(base.replace("sm_count = 40", ""))
    with pytest.raises(InputError, match="needs sm_count"):
        chips.load(str(mine))
    mine.write_text("sm_count = = 2")
    with pytest.raises(InputError, match="is not TOML"):
        chips.load(str(mine))
    with pytest.raises(InputError, match="cannot be read"):
        chips.load(str(tmp_path / "none.toml"))
