"""Time of the kernels on an H100, predicted without one: from their SASS, their launches and the emulator's sectors.

    predict.py OBJECTS [--counts FILE] [--page FILE] [--nvdisasm PATH] [--cuobjdump PATH]

OBJECTS: the folder of CUDA objects that `./dev gates` compiles. --counts: what kernels_shapes printed, else shapes.jsonl beside this file.
Prints the table; --page writes it. The limits of a kernel, of which its time is a soft maximum:
  memory   the sectors that it moves, at what a stream moves
  issue    warp instructions, four an SM and clock; exponentials and their like, 16 lanes an SM and clock
  latency  how long one block takes, alone with its loads (Little's law: what is under way over how long it takes), by the blocks that
           fit an SM and the rounds of blocks
Exit: 0, or 2 without a disassembler or objects.
"""

import argparse
import concurrent.futures
import heapq
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gates"))
import gates

# name -> value, unit, source. None of them was measured here.
CONSTANTS = {
    "sms": (132, "SMs", "H100 SXM5 datasheet"),
    "clock": (1.755e9, "Hz", "between the base and the boost clock of the datasheet; what third parties report under load"),
    "read": (3.136e12, "B/s, a read stream", "torch.sum of 2^30 float32 on an H100 SXM, pytorch/pytorch#132964"),
    "copy": (3.02e12, "B/s, a copy", "event-timed device copy on an H100 SXM by a third party; QuACK reports 3.01 for softmax"),
    "latency": (900, "clocks of a load from DRAM under load", "assumed: about 600 idle in microbenchmarks of Hopper, more where DRAM is busy"),
    "issue": (4, "warp instructions an SM and clock", "CUDA programming guide, 4 schedulers an SM"),
    "mufu": (16, "lanes an SM and clock", "CUDA programming guide, arithmetic throughput of capability 9.0"),
    "cpi": (2, "clocks between instructions of one warp in a loop", "assumed: independent instructions of an unrolled loop"),
    "cpi_serial": (5, "the same between loops", "assumed: dependent instructions, 4 to 6 clocks each"),
    "shuffle": (25, "clocks of a shuffle", "microbenchmarks of earlier architectures"),
    "barrier": (60, "clocks of a block barrier", "assumed"),
    "cluster_barrier": (1000, "clocks of a cluster barrier", "assumed: its release waits for the stores before it"),
    "start": (700, "clocks to start a block and read its parameters", "assumed"),
    "registers": (65536, "registers an SM", "CUDA programming guide"),
    "shared": (227 * 1024, "bytes of shared memory an SM", "CUDA programming guide; 1 KiB a block is the system's"),
    "norm": (2.3, "exponent that joins the limits", "fitted: cross entropy 8192 x 131072 at 1.07 to 1.09 times the floor in a queueing simulation of an SM"),
    "blocks": (8, "blocks of 256 threads an SM", "CUDA programming guide, 2048 threads"),
}
K = {name: value for name, (value, _, _) in CONSTANTS.items()}
THREADS = 256


class Graph:
    """The control flow of a function: blocks of instructions, and what may follow each."""

    def __init__(self, body):
        self.blocks, start_of = [[]], {}
        for label, text in body:
            if label:
                if self.blocks[-1]:
                    self.blocks.append([])
                start_of[label] = len(self.blocks) - 1
            else:
                self.blocks[-1].append(text)
                if re.search(r"\b(BRA|EXIT|RET|BRX)\b", text):
                    self.blocks.append([])
        self.next = []
        for i, block in enumerate(self.blocks):
            last = block[-1] if block else ""
            follows = []
            match = gates.BRANCH.search(last)
            if match and match[1] in start_of:
                follows.append(start_of[match[1]])
            unconditional = re.match(r"(BRA|EXIT|RET)\b", last) and "DIV" not in last
            if not unconditional and i + 1 < len(self.blocks):
                follows.append(i + 1)
            self.next.append(follows)

    def cost(self, block, trips):
        """Issued instructions of a block, and the clocks that one warp waits in it."""
        texts = [t for t in self.blocks[block] if not t.startswith("NOP")]
        waits = sum(K["shuffle"] for t in texts if re.search(r"\bSHFL\b", t)) + sum(K["barrier"] for t in texts if re.search(r"\bBAR\b", t))
        n = trips.get(block, 1)
        return n * len(texts), n * waits

    def shortest(self, sources, targets, trips, inside=None):
        """The cheapest way (instructions, waits) from after `sources` to before `targets`; None if there is none."""
        best, heap = {}, []
        for source in sources:
            for follow in self.next[source]:
                if inside is None or follow in inside or follow in targets:
                    heapq.heappush(heap, (0, 0, follow))
        while heap:
            instructions, waits, block = heapq.heappop(heap)
            if block in targets:
                return instructions, waits
            if block in best:
                continue
            best[block] = True
            more, waiting = self.cost(block, trips)
            for follow in self.next[block]:
                if (inside is None or follow in inside or follow in targets) and follow not in best:
                    heapq.heappush(heap, (instructions + more, waits + waiting, follow))
        return None

    def round(self, head, ends, blocks):
        """Instructions of one round of a loop: the cheapest way that passes the block with the most exponentials, or else the last that stores."""
        must = max(sorted(blocks), key=lambda b: sum("MUFU" in t for t in self.blocks[b]))
        if not any("MUFU" in t for t in self.blocks[must]):
            must = max((b for b in blocks if any(re.search(r"\bSTG\b", t) for t in self.blocks[b])), default=head)
        total, at = len(self.blocks[head]), head
        for target in ({must}, set(ends)):
            if at in target:
                continue
            way = self.shortest([at], target, {}, blocks)
            if way is None:
                return sum(len(self.blocks[b]) for b in blocks)
            at = must if target == {must} else min(target)
            total += way[0] + len(self.blocks[at])
        return total

    def loops(self):
        """Innermost loops: (head, blocks, instructions of all of them)."""
        ranges = [(follow, i) for i, follows in enumerate(self.next) for follow in follows if follow <= i and self.blocks[i]]
        inner = [r for r in ranges if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in ranges)]
        return [(a, set(range(a, b + 1)), [t for block in self.blocks[a:b + 1] for t in block]) for a, b in sorted(set(inner))]


def describe(graph, loop):
    """What a loop does in one round, along its shortest way."""
    head, blocks, texts = loop
    ends = [b for b in blocks if head in graph.next[b]]
    wide, cached = gates.vector_loads(texts)
    spliced, spliced_wide = gates.spliced_loads(texts)
    instructions = graph.round(head, ends, blocks)
    return {"head": head, "ends": ends, "blocks": blocks, "loads": wide, "cached": cached, "spliced": spliced, "vectors": wide - spliced_wide, "instructions": instructions,
            "stores": sum(1 for t in texts if re.search(r"\bSTG\.E", t)), "mufu": sum(1 for t in texts if "MUFU" in t),
            "shuffles": any("SHFL" in t for t in texts), "shared": any(re.search(r"\bLDS\b|\bLD\.E\b", t) for t in texts) and wide == 0}


def chosen(shape, loops):
    """The loop that reads, the loop that writes (None: the same, or none), and how many vectors a round of each takes."""
    writing, kind = shape["read_bytes"] < shape["floor_bytes"] * 0.9, shape["loop"]
    if shape["kernel"].startswith("pointwise"):
        loop = min((l for l in loops if l["stores"] and l["loads"] >= 4), key=lambda l: l["instructions"])
        return loop, None, 4  # two vectors of input and target each
    spliced = kind == "shifted"
    reads = [l for l in loops if l["vectors"] >= 4 and not l["stores"] and (l["spliced"] >= 4) == spliced]
    pick = max if kind == "pitched" else min  # its addresses cost more than those of a line
    write = None
    if writing:
        write = min((l for l in loops if l["stores"] and l["cached"] and (l["spliced"] > 0) == spliced), key=lambda l: l["instructions"])
    read = pick(reads, key=lambda l: l["instructions"] / l["vectors"])
    return read, write, read["vectors"] if shape["kernel"].startswith("reduce_") and not spliced else 4


def predict(shape, function):
    """Seconds by limit, and the figures on the way."""
    graph = Graph(function["body"])
    loops = [describe(graph, loop) for loop in graph.loops()]
    read, write, batch = chosen(shape, loops)
    warps_of_row = max(shape["lanes"] // 32, 1)
    trips = {b: (5 if l["shuffles"] else max(warps_of_row, shape["cluster"])) for l in loops if (l["shuffles"] or l["shared"]) and l is not read
             for b in l["blocks"]}
    # From the start to the loop that reads, from there to the one that writes or to the end, and back for the next row.
    exits = [b for b, texts in enumerate(graph.blocks) if any("EXIT" in t for t in texts)]
    stores = [b for b, texts in enumerate(graph.blocks) if any(re.search(r"\bSTG\b", t) for t in texts)]
    to_read = graph.shortest([0], {read["head"]}, trips) or (0, 0)
    first = graph.cost(0, {})
    after = graph.shortest(read["ends"], {write["head"]} if write else set(stores) or set(exits), trips) or (0, 0)
    if write:
        back = graph.shortest(write["ends"], {read["head"]}, trips) or (0, 0)
        row = (after[0] + back[0], after[1] + back[1])
    else:
        row = after

    blocks, rows = shape["blocks"], shape["rows"]
    vectors = shape["read_bytes"] / 16 / (blocks * THREADS) / rows  # a thread and row
    per_vector = read["instructions"] / batch
    warps = blocks * THREADS / 32
    instructions = warps * (first[0] + to_read[0] + rows * (vectors * per_vector + row[0]))
    mufu = warps * rows * vectors * read["mufu"] / batch
    if write:
        instructions += warps * rows * vectors * write["instructions"]
        mufu += warps * rows * vectors * write["mufu"]

    rounds, singles = divmod(shape["vectors"] or vectors, batch)  # a block is done when its slowest thread is
    block = K["start"] + first[0] * K["cpi_serial"] + to_read[0] * K["cpi_serial"] + to_read[1]
    one = rounds * (K["latency"] + read["instructions"] * K["cpi"]) + math.ceil(singles - 1e-9) * (K["latency"] + per_vector * K["cpi"])
    one += row[0] * K["cpi_serial"] + row[1] + (2 * K["cluster_barrier"] if shape["cluster"] > 1 else 0)
    if write:
        one += vectors * write["instructions"] * K["cpi"] + K["latency"]  # and the label before the row
    block += rows * one
    registers = (function["registers"] + 7) // 8 * 8
    resident = min(K["blocks"], K["registers"] // (registers * THREADS), int(K["shared"] // (function["shared"] + shape["dynamic_shared"] + 1024)))
    slots = resident * K["sms"] // shape["cluster"] * shape["cluster"]
    # Blocks that end make room one by one: whole rounds only where there are few.
    waves = max(1.0, blocks / slots) if blocks > 4 * slots else math.ceil(blocks / slots)
    bandwidth = K["read"] if shape["read_bytes"] > 0.9 * shape["floor_bytes"] else K["copy"]
    moved = (shape["l2_load_sectors"] + shape["store_sectors"] + shape["atomic_sectors"]) * 32
    limits = {"memory": moved / bandwidth, "issue": max(instructions / K["issue"], mufu * 32 / K["mufu"]) / K["sms"] / K["clock"],
              "latency": waves * block / K["clock"]}
    time = sum(limit ** K["norm"] for limit in limits.values()) ** (1 / K["norm"])
    return {"limits": limits, "time": time, "floor": shape["floor_bytes"] / bandwidth, "share": shape["floor_bytes"] / bandwidth / time,
            "resident": resident, "per_vector": per_vector, "row": row[0], "moved": moved / shape["floor_bytes"],
            "under_way": resident * THREADS * batch * 16,
            "bound": max(limits, key=limits.get)}


def page(results):
    """Markdown."""
    lines = ["# Predicted time of the kernels", "",
             "**Predicted, not measured on a GPU.** Written by `./dev gates --update` (`kernels/model/predict.py`) from the SASS of sm_90, the launches at full",
             "size and the sectors that the emulator counts ([traffic](kernels-traffic.md)), for an H100 SXM. Three limits: memory (sectors moved, at the bandwidth",
             f"of a stream), issue (instructions and exponentials), latency (one block alone, by the blocks that fit an SM); time is their {K['norm']:g}-norm, since",
             "each takes from the others. The share is that of a read stream for reductions, of a copy for what writes as much as it reads.", "",
             "Checked: the exponent is fitted to one row, cross entropy of 8192 x 131072, which a queueing simulation of an SM (in-order warps, four schedulers,",
             "a shared queue of memory) had at 1.07 to 1.09 times the floor. Of the same simulation, not fitted: squared loss 1.05 to 1.1 (here 1.02), binary loss",
             "of logits 1.5 to 2 (1.6), sum of 2^28 float32 at 0.96 to 0.99. Columns of 3, when each element was a load of its own, had 0.34 of a stream there and",
             "0.29 here. Not in the model: DRAM pages and refresh, L2 slices, the order of stores and loads, bank conflicts, launch, the last blocks of a launch,",
             "clocks that change. Expect errors of 10 % and more where no limit is far below the others. Not in the table: attention, whose loops lie within",
             "each other and whose limit is arithmetic.", "",
             "Goals: 0.93 for reductions, 0.85 for argmax. Below: log sum exp of bf16 (issue: 42 instructions for 8 elements, 8 of them exponentials), and columns",
             "of 513, whose vectors are two loads each and whose rows begin in sectors of the rows beside them.", "",
             ("| shape | predicted share of a stream, not measured | predicted over the floor, not measured | largest limit | memory, us | issue, us | "
              "latency, us | moved over floor (emulated) | blocks an SM | KiB under way an SM | instructions a vector read | and a row |"),
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for shape, r in results:
        limits = r["limits"]
        lines.append(f"| {shape['name']} | {r['share']:.2f} | {1 / r['share']:.2f} | {r['bound']} | {limits['memory'] * 1e6:.1f} | {limits['issue'] * 1e6:.1f} | "
                     f"{limits['latency'] * 1e6:.1f} | {r['moved']:.3f} | {r['resident']} | {r['under_way'] / 1024:.0f} | {r['per_vector']:.0f} | {r['row']} |")
    lines += ["", "Constants, none of them measured here:", "", "| constant | value | source |", "| --- | --- | --- |"]
    lines += [f"| {name} ({unit}) | {value:g} | {source} |" for name, (value, unit, source) in CONSTANTS.items()]
    return "\n".join(lines) + "\n"


def compiled(job):
    """Kernel name -> its SASS, registers and static shared memory, of one object file."""
    path, arch, nvdisasm, cuobjdump = job
    found = {}
    gates.read_ptxas(pathlib.Path(str(path) + ".log"), arch, found)
    bodies, names = gates.disassembled(path, arch, nvdisasm, cuobjdump), gates.demangle(sorted(found))
    return {names[mangled]: {"body": bodies[mangled], "registers": numbers["registers"], "shared": numbers["shared"]}
            for mangled, numbers in found.items() if mangled in bodies}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", type=pathlib.Path)
    parser.add_argument("--counts", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "shapes.jsonl")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--nvdisasm")
    parser.add_argument("--cuobjdump")
    options = parser.parse_args()
    nvdisasm, cuobjdump = gates.tool("nvdisasm", options.nvdisasm), gates.tool("cuobjdump", options.cuobjdump)
    if nvdisasm is None or cuobjdump is None or not list(options.objects.glob("*instances*.o")):
        print("predict: no objects, or nvdisasm and cuobjdump not found; nothing predicted", file=sys.stderr)
        return 2
    shapes = [shape for shape in map(json.loads, options.counts.read_text().splitlines()) if shape["loop"] != "none"]
    jobs = [(path, "90", nvdisasm, cuobjdump) for path in sorted(options.objects.glob("*instances*.o"))
            if re.search(r"(bfloat16|float32|float8_e4m3)", path.name) and "product" not in path.name]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        functions = {name: kernel for kernels in pool.map(compiled, jobs) for name, kernel in kernels.items()}
    results = [(shape, predict(shape, functions[shape["kernel"]])) for shape in shapes]
    text = page(results)
    if options.page:
        options.page.write_text(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
