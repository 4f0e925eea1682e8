"""Measures the emulator: removes every barrier, fence, mask and atomic of the kernels in turn and counts how many removals the
tests notice.

    mutate.py [--jobs N] [--only TEXT] [--json FILE]

Each mutant is the kernel sources with one change, in a temporary folder, compiled with probe.cc (a few instances that reach every
synchronisation) and run. Killed: the probe fails, or ends by a signal, or runs past the limit. Exit: 0 score at least 95 %, 1 below.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILES = ["kernels/common/combine.h", "kernels/reduction/kernels.h", "kernels/loss/pointwise_kernel.h", "kernels/loss/class_kernel.h"]

# What to look for, and what to put there. A removed barrier removes the statement; a removed mask narrows a shuffle to half a warp; a
# removed atomic becomes a plain load and store.
PATTERNS = [
    ("block barrier", r"\bblock_barrier\(\);", "(void)0;"),
    ("cluster barrier", r"\bcluster_barrier\(\);", "(void)0;"),
    ("fence", r"\bfence\(\);", "(void)0;"),
    ("mask", r"\bkFullMask\b", "0xffffU"),
    ("atomic", r"\batomic_increment\(ticket\)", "[&] { const unsigned v = load_global(ticket); store_global(ticket, v + 1); return v; }()"),
    # Not synchronisation, but what it protects: the reset of the ticket, the last block's choice, the order of arrival.
    ("ticket reset", r"if \(last\) store_global\(ticket, 0U\);", ""),
    ("last block", r"atomic_increment\(ticket\) == count - 1", "(atomic_increment(ticket), block_in_grid() % count == count - 1)"),
    ("lane zero", r"if \(lane_in_warp\(\) == 0\) scratch\[warp_in_block\(\)\] = state;", "scratch[warp_in_block()] = state;"),
    ("remote block", r"block_state\.in_block\(other\)\[0\]", "block_state.in_block(0)[0]"),
]


def mutants():
    for file in FILES:
        text = (ROOT / file).read_text()
        for kind, pattern, replacement in PATTERNS:
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                yield {"kind": kind, "file": file, "line": line, "text": text[:match.start()] + replacement + text[match.end():]}


def build_and_run(mutant, emulator, folder):
    """'' when the probe passes, else why not."""
    tree = pathlib.Path(folder)
    shutil.copytree(ROOT / "kernels", tree / "kernels", ignore=shutil.ignore_patterns("*.md"))
    (tree / "tests").mkdir()
    shutil.copytree(ROOT / "tests/kernels", tree / "tests/kernels")
    if mutant is not None:
        (tree / mutant["file"]).write_text(mutant["text"])
    binary = tree / "probe"
    sources = ["tests/kernels/mutation/probe.cc", "kernels/reduction/plan.cc", "kernels/loss/plan.cc"]
    built = subprocess.run(["g++", "-std=c++20", "-O0", "-I.", *sources, str(emulator), "-o", str(binary)], cwd=tree, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile: " + built.stderr.splitlines()[0] if mutant is None else None
    try:
        ran = subprocess.run([str(binary)], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "runs past the limit"
    return "" if ran.returncode == 0 else (ran.stdout.strip().splitlines() or [f"signal {-ran.returncode}"])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants whose kind or file contains this")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    wanted = [m for m in mutants() if options.only in m["kind"] or options.only in m["file"]]
    with tempfile.TemporaryDirectory() as scratch:
        emulator = pathlib.Path(scratch) / "simt.o"
        subprocess.run(["g++", "-std=c++20", "-O2", "-I.", "-c", "kernels/emulator/simt.cc", "-o", str(emulator)], cwd=ROOT, check=True)

        def one(mutant):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                return build_and_run(mutant, emulator, folder)

        if complaint := one(None):
            print(f"the unchanged kernels fail: {complaint}")
            return 1
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(one, wanted))
    results = []
    for mutant, verdict in zip(wanted, verdicts):
        where = f"{mutant['file']}:{mutant['line']}"
        if verdict is None:
            print(f"invalid   {mutant['kind']:16} {where}: does not compile")
            continue
        results.append({"kind": mutant["kind"], "where": where, "killed": bool(verdict), "by": verdict})
        print(f"{'killed' if verdict else 'SURVIVED':9} {mutant['kind']:16} {where}{': ' + verdict[:150] if verdict else ''}")
    killed = sum(1 for r in results if r["killed"])
    score = killed / len(results) if results else 0.0
    print(f"mutation score {killed} of {len(results)}: {100 * score:.1f} %")
    if options.json:
        options.json.write_text(json.dumps({"score": score, "mutants": results}, indent=1) + "\n")
    return 0 if score >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
