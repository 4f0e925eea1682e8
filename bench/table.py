"""Measures what tensorlint promises of speed and memory and prints it as a table in Markdown.

  table.py FOLDER [--pairs N] [--tool FILE] [--floor FILE]      needs onnx; FOLDER as generate_models.py fills it

Goals are absolute figures for the machine that the table names, and ratios to onnx.checker and to floor.cc, which took their
turns in the same run: ratios are medians over pairs.  Where the machine is shared, the least of all runs says most of an
absolute figure, since nothing makes a run faster than it is.
"""
import argparse
import os
import re
import subprocess
import sys
import time

import check_vs_onnx
from check_vs_onnx import ROOT, spread

SINGLE = ("siblings_1k", "siblings_2k", "siblings_4k", "siblings_8k", "doubling_16", "doubling_64", "calls_10k", "fanout_100k", "nested_8", "nested_16")
GOALS = {"fanout_100k": 200}  # milliseconds; 100 for the others


def row(what, goal, measured, holds):
    print(f"| {what} | {goal} | {measured} | {'yes' if holds else '**no**'} |", flush=True)


def ratio(figures):
    return "{median:.1f} ({least:.1f}-{most:.1f})".format(**figures)


def anonymous_kib(tool, path):
    """Peak of RssAnon, looked at every millisecond: mapped pages of the file are the system's to take back."""
    process = subprocess.Popen([tool, "check", path], stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                found = re.search(r"RssAnon:\s+(\d+)", status.read())
        except OSError:
            break
        peak = max(peak, int(found[1]) if found else 0)
        time.sleep(0.001)
    process.wait()
    return peak


def decoders(tool, floor, folder, pairs):
    per_node = {}
    for size, count in ((1_000, pairs), (10_000, pairs), (100_000, max(3, pairs // 2)), (1_000_000, max(2, pairs // 5))):
        path = os.path.join(folder, f"decoder_{size // 1000}k.onnx" if size < 1_000_000 else "decoder_1m.onnx")
        figures = check_vs_onnx.measure(tool, floor, path, count, 300)
        ours, theirs = figures["tensorlint"]["call"], figures["onnx"]["call"]
        per_node[size] = 1e6 * ours["least"] / size
        what = f"{os.path.basename(path)}: {1e3 * ours['least']:.2f} ms, onnx.checker {1e3 * theirs['least']:.1f} ms, {count} pairs"
        row(what + "; times faster", ">= 7", ratio(figures["ratio"]["call"]), figures["ratio"]["call"]["median"] >= 7)
        row(what.split(",")[0] + f", floor {1e3 * figures['floor']['call']['least']:.2f} ms; tensorlint / floor", "<= 5", ratio(figures["floor_ratio"]),
            figures["floor_ratio"]["median"] <= 5)
        if size == 1_000:
            process = figures["tensorlint"]["process"]["least"]
            row(f"decoder_1k.onnx, whole process (onnx.checker {1e3 * figures['onnx']['process']['least']:.0f} ms)", "<= 8 ms", f"{1e3 * process:.1f} ms", process <= 0.008)
    row(f"microseconds a node at 1M ({per_node[1_000_000]:.2f}) to those at 10k ({per_node[10_000]:.2f})", "<= 2", f"{per_node[1_000_000] / per_node[10_000]:.2f}",
        per_node[1_000_000] <= 2 * per_node[10_000])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "tensorlint"))
    parser.add_argument("--floor", default=os.path.join(ROOT, "build", "bin", "bench_floor"))
    arguments = parser.parse_args()
    tool, folder = os.path.abspath(arguments.tool), arguments.folder

    print("| what | goal | measured | holds |\n|---|---:|---:|---|")
    decoders(tool, os.path.abspath(arguments.floor), folder, arguments.pairs)
    anonymous = anonymous_kib(tool, os.path.join(folder, "decoder_1m.onnx")) * 1024 / 1_000_000_000
    row("decoder_1m.onnx, peak anonymous memory a node", "<= 0.5 KB", f"{anonymous:.2f} KB", anonymous <= 0.5)
    runs = [check_vs_onnx.tensorlint(tool, os.path.join(folder, "weights.onnx"), 60) for _ in range(arguments.pairs)]
    call = spread([run["call"] for run in runs])["least"]
    peak = spread([run["peak_kib"] / 1024 for run in runs])["median"]
    row("weights.onnx, 1.5 GB inside the file", "<= 30 ms", f"{1e3 * call:.1f} ms", call <= 0.030)
    row("weights.onnx, peak memory of the process", "<= 40 MiB", f"{peak:.1f} MiB", peak <= 40)
    rounds = [[check_vs_onnx.tensorlint(tool, os.path.join(folder, name + ".onnx"), 60)["call"] for name in SINGLE] for _ in range(arguments.pairs)]
    calls = {name: min(times) for name, times in zip(SINGLE, zip(*rounds))}
    for name in SINGLE:
        goal = GOALS.get(name, 100)
        row(f"{name}.onnx", f"<= {goal} ms", f"{1e3 * calls[name]:.2f} ms", calls[name] <= goal / 1e3)
    growth = calls["siblings_8k"] / calls["siblings_1k"]
    row("siblings_8k to siblings_1k: linear is 8", "<= 12", f"{growth:.1f}", growth <= 12)
    return 0


if __name__ == "__main__":
    sys.exit(main())
