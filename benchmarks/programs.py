"""Whole programs on the emulator: ``python benchmarks/programs.py [--json FILE]``

Runs benchmarks/programs/sort.cu in check mode and in fast mode and prints the time of CUB's and Thrust's radix sort of 2^20
keys beside that of std::sort on this machine, in the same process.  Times say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(mode: str) -> dict[str, float]:
    """Seconds by name."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
    command = [sys.executable, "-m", "warpsmith", "run", str(HERE / "programs" / "sort.cu"), "-std=c++17", "-O2"]
    done = subprocess.run([*command, "--mode", mode], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return {name: float(t) for name, t in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    print("compiling and running (the first time takes a minute) ...", file=sys.stderr)
    for mode in ("check", "fast"):
        run(mode)  # compile
    check, fast = run("check"), run("fast")
    print(f"{'2^20 keys':24}{'fast':>9}{'check':>9}{'check/fast':>12}{'check/std::sort':>17}")
    for name in ("cub::DeviceRadixSort", "thrust::sort"):
        ratio, host = check[name] / fast[name], check[name] / check["std::sort"]
        print(f"{name:24}{fast[name]:>8.3f}s{check[name]:>8.3f}s{ratio:>12.2f}{host:>17.1f}")
    if args.json:
        args.json.write_text(json.dumps({"check": check, "fast": fast}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
