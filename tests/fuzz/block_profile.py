"""Which functions run for an input, and how that fits the steps that it was charged: block_profile.py [--top N] PROGRAM ARGUMENT...

PROGRAM is built with -DTENSORLINT_COUNT_BLOCKS=ON (clang). Basic blocks are counted, as the same program runs them with `--version`
subtracted, so that small inputs show what large ones would cost. Steps are known of `check --format json --timings`. Ordinary is up to
ten blocks for each step; what a loop charges too little for has more, and ever more as the input grows. What the standard library compares,
copies and hashes in one call is one block: for long texts compare times, too.
"""
import argparse
import array
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROWS = 3  # of each block: address, whether a function begins there, count


def blocks_of(words):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "blocks"
        start = time.monotonic()
        ran = subprocess.run(words, env={**os.environ, "TENSORLINT_BLOCKS": str(path)}, stdin=subprocess.DEVNULL, capture_output=True)
        seconds = time.monotonic() - start
        if not path.exists():
            sys.exit(f"{words[0]} counts no blocks: build it with -DTENSORLINT_COUNT_BLOCKS=ON\n{ran.stderr.decode(errors='replace')[-500:]}")
        rows = array.array("Q", path.read_bytes())
    return rows, ran, seconds


def steps_of(output):
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return sum(one["work"]["steps"] for one in json.loads(output)["inputs"])
    return None


def by_function(rows, base):
    """Blocks that ran beyond `base`, and the address, of each function."""
    found: list[list[int]] = []
    for at in range(0, len(rows), ROWS):
        if rows[at + 1] or not found:
            found.append([0, rows[at]])
        found[-1][0] += max(0, rows[at + 2] - base[at + 2])
    return found


def names_of(program, addresses):
    """A function and its first line, of each address."""
    said = subprocess.run(["addr2line", "-f", "-C", "-e", program, *map(hex, addresses)], capture_output=True, text=True, check=True).stdout.splitlines()
    return list(zip(said[::2], said[1::2], strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=15)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    base, _, _ = blocks_of([program, "--version"])
    rows, ran, seconds = blocks_of([program, *options.arguments])
    functions = sorted(by_function(rows, base), reverse=True)
    total, steps = sum(count for count, _ in functions), steps_of(ran.stdout)
    charged = f", {steps:,} steps, {total / max(steps, 1):.1f} blocks each" if steps is not None else ""
    print(f"exit code {ran.returncode}: {total:,} blocks{charged}, {seconds:.2f} s")
    top = functions[: options.top]
    for (count, _), (name, place) in zip(top, names_of(program, [address for _, address in top])):
        print(f"{count:>16,}  {name[:100]}  {place}")


if __name__ == "__main__":
    main()
