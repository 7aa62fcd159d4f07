"""Theoretical occupancy: against an H200's own answers, and against NVIDIA's header for every chip."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from warpsmith import chips
from warpsmith.chips.occupancy import by_block_size, occupancy
from warpsmith.toolchains.toolkit import host_compiler, toolkit

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden" / "h200.json").read_text())


def test_every_answer_of_an_h200() -> None:
    chip = chips.load("h200")
    for registers, by_threads in GOLDEN["occupancy"].items():
        for threads, expected in by_threads.items():
            ours = [occupancy(chip, int(threads), int(registers), shared).blocks for shared in GOLDEN["shared"]]
            assert ours == expected, (registers, threads)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("oracle") / "oracle"
    command = [host_compiler(), f"-I{toolkit().root / 'include'}", "-o", program, HERE / "occupancy_oracle.cpp"]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize("chip", chips.every(), ids=lambda chip: chip.id)
def test_nvidias_header_agrees(chip: chips.Chip, oracle: Path) -> None:
    rng = random.Random(chip.id)
    corners = [0, 1, 1024, chip.shared_per_block, chip.shared_per_block_optin, chip.shared_per_block_optin + 1]
    questions = [
        (
            rng.choice([rng.randint(1, 1024), 32 * rng.randint(1, 32)]),
            rng.randint(16, 255),
            rng.choice([0, rng.choice(corners), rng.randint(0, chip.shared_per_block_optin)]),
        )
        for _ in range(3000)
    ]
    of_chip = (*chip.compute, chip.warps_per_sm, chip.blocks_per_sm, chip.shared_per_sm, chip.shared_per_block_optin)
    text = "\n".join(" ".join(map(str, (*of_chip, chip.shared_reserved, *question))) for question in questions)
    answers = subprocess.run([oracle], input=text, capture_output=True, text=True, check=True).stdout.split()
    for question, answer in zip(questions, map(int, answers), strict=True):
        assert occupancy(chip, *question).blocks == max(answer, 0), question


def test_the_limiter_is_named() -> None:
    chip = chips.load("h200")
    assert occupancy(chip, 256, 40, 16384).limiters == ("registers",)
    assert occupancy(chip, 32, 16).limiters == ("blocks per SM",)
    assert occupancy(chip, 1024, 32).limiters == ("warps per SM", "registers")
    assert occupancy(chip, 64, 16, 100_000).limiters == ("shared memory",)
    assert occupancy(chip, 64, 16, 300_000).blocks == 0
    assert occupancy(chip, 1024, 65).limiters == ("registers",)
    assert occupancy(chip, 1025).blocks == 0
    assert occupancy(chip, 256, 256).blocks == 0


def test_fraction_and_sweep() -> None:
    chip = chips.load("rtx4090")
    assert occupancy(chip, 1024, 32).fraction == pytest.approx(32 / 48)
    assert occupancy(chip, 768, 32).fraction == 1.0
    steps = list(by_block_size(chip, registers=64))
    assert [step.threads for step in steps] == list(range(32, 1025, 32))
    assert steps[3].result == occupancy(chip, 128, 64)
