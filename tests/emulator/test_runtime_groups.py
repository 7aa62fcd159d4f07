"""Lanes that wander apart through random control flow: each goes its own way, in the order that the analyses expect."""

from __future__ import annotations

import random

import numpy as np
import pytest
from runtime_host import buffers, pack, run, setup, zeros

MASK = (1 << 64) - 1


def maze(seed, ranks, barriers):
    """Random next nodes; polling nodes form a run of ranks, as the blocks of a loop do."""
    rng = random.Random(seed)
    nodes = np.zeros((ranks, 4), np.uint32)
    start, end = sorted(rng.sample(range(ranks + 1), 2))
    for r in range(ranks):
        near = lambda r=r: max(0, min(ranks - 1, r + rng.randint(-4, 5)))  # noqa: E731
        anywhere = lambda: rng.randrange(ranks)  # noqa: E731
        nodes[r, :2] = [rng.choice((near, near, anywhere))(), rng.choice((near, near, anywhere))()]
        nodes[r, 2] = 1 if start <= r < end else 2 if barriers and rng.random() < 0.1 else 0
    return nodes


def ways(nodes, threads, steps, seed):
    """Each thread alone: the oracle."""
    out = []
    for t in range(threads):
        x, way, rank = ((t + 1) * 0x9E3779B97F4A7C15 & MASK) ^ seed, 0, 0
        for _ in range(steps):
            way = (way ^ rank) * 0x100000001B3 & MASK
            x = (x * 6364136223846793005 + 1442695040888963407) & MASK
            rank = int(nodes[rank, 0 if x >> 60 > 7 else 1])
        out.append(way)
    return np.array(out, np.uint64)


@pytest.mark.parametrize("barriers", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_lane_goes_its_own_way(seed, barriers):
    setup(threads=1 + seed % 2, order=seed % 3)
    ranks, steps, grid, block = 2 + seed * 5, 300, 2, 64 + 13 * (seed % 4)
    nodes = maze(seed, ranks, barriers)
    with buffers(nodes, zeros((grid * block, 2), np.uint64)) as (n, out):
        run("maze", grid, block, pack("QQIII", n.address, out.address, ranks, steps, seed))
        got = out.numpy()
    assert np.array_equal(got[:, 0], ways(nodes, grid * block, steps, seed))
    assert not got[:, 1].any()
