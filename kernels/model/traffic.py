"""Sectors that the kernels move over what they must, from kernels_shapes (the emulator): a gate, and a page.

    traffic.py KERNELS_SHAPES [--page FILE] [--counts FILE] [--update]

--counts: what the program printed, for predict.py. Exit: 0 the gate holds and both files are what the program says, 1 not. --update, or
TENSORLINT_UPDATE=1, writes them.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

SECTOR = 32
# Of the byte floor: what full-width, whole-sector access may add. Partial results of splits and the sectors that two
# rows share are in it.
MOST = 1.05
# Shapes that are known to move more, and the most they may: why is on the page.
KNOWN = {"sum, bf16, columns of 65536 x 513": 1.15, "attention, bf16, 2048 queries, 2048 keys of 64, 16 heads": 16.5,
         "layer normalization, bf16, 8192 x 4096": 1.65}


def run(program):
    """What kernels_shapes prints: a line of JSON a shape."""
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def moved(shape):
    """Sectors between L1 and L2."""
    return shape["l2_load_sectors"] + shape["store_sectors"] + shape["atomic_sectors"]


def over_floor(shape, sectors):
    return sectors * SECTOR / shape["floor_bytes"]


def failures(shapes):
    """What the gate says."""
    said = []
    for shape in shapes:
        ratio, most = over_floor(shape, moved(shape)), KNOWN.get(shape["name"], MOST)
        if ratio > most:
            said.append(f"{shape['name']}: {ratio:.3f} times the byte floor moved, {most} allowed")
        if shape["name"] in KNOWN and ratio <= MOST:
            said.append(f"{shape['name']}: {ratio:.3f} times the byte floor moved, so it needs no exception")
    names = {shape["name"] for shape in shapes}
    return said + [f"{name}: an exception for a shape that is not there" for name in KNOWN if name not in names]


def page(shapes):
    """Markdown."""
    lines = ["# Traffic of the kernels, counted on the emulator", "",
             "Written by `./dev update kernels.traffic`. Counts of the emulator, not measured on a GPU: 32-byte sectors over the byte floor, which is",
             "every operand read once and every result written once. Shapes are full size; some 50 blocks of a launch run, spread over it, and their sectors",
             "are scaled to all blocks. *Requested*: the distinct sectors of each load and store instruction of a warp. *Moved*: between L1 and L2, where",
             "loads hit in L1 if their sector is among the last 512 distinct ones (16 KiB) that the block loaded, the warps of a block go in step, and stores",
             f"write through. The gate: moved at most {MOST} times the floor.", "",
             "| shape | floor | loads requested | stores requested | requested | moved | requests |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for shape in shapes:
        requested = shape["load_sectors"] + shape["store_sectors"]
        lines.append(f"| {shape['name']} | {shape['floor_bytes'] / 2 ** 20:.1f} MiB | {over_floor(shape, shape['load_sectors']):.3f} | "
                     f"{over_floor(shape, shape['store_sectors']):.3f} | {over_floor(shape, requested):.3f} | {over_floor(shape, moved(shape)):.3f} | "
                     f"{(shape['load_requests'] + shape['store_requests']) / 1e6:.2f} M |")
    lines += ["",
              "Rows that do not begin at a 16-byte boundary are read through pairs of aligned loads: the second of a pair is the next lane's first, which",
              "L1 has. Hence up to twice the floor requested, and once moved. Rows of 1026 bytes, walked down, begin and end in",
              "sectors that belong to the rows beside them, and L1 does not always have them still: a known exception. Another one is attention of many queries:",
              "each block of 64 queries walks all keys and values, from L2, so 2048 queries read them 32 times. One query reads each once. The third is layer",
              "normalization: scale and bias are as long as a row, and each row takes them from L2."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--counts", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    printed = run(options.program)
    shapes = [json.loads(line) for line in printed.splitlines()]
    said = failures(shapes)
    for path, text in ((options.page, page(shapes)), (options.counts, printed)):
        if path is None:
            continue
        if options.update or os.environ.get("TENSORLINT_UPDATE"):
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            said.append(f"{path} is out of date: run `./dev update kernels.traffic`")
    for line in said:
        print(f"traffic: {line}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
