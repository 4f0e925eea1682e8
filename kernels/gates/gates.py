"""Static gates over the compiled kernels: spills and registers from the ptxas logs, loads and instruction counts from the SASS.

    gates.py BUILD/cuda --arch 90 [--nvdisasm PATH] [--cuobjdump PATH] [--table FILE]

A loop's instructions per element are its SASS instructions, from the target of a backward branch to that branch, over the elements
its 16-byte loads bring (for a loss that reads several tensors, elements of one of them). A batch loop is one without loops inside that has
at least four 16-byte loads. In each, four loads are under way before the first of them is used, and what it stores it stores by 16 bytes.
Loops over vectors at odd addresses, two loads for each, are apart: two under way at least, and budgets of their own.
Figures are those of the batch loops, the shortest to the longest of each pass, since a kernel has one for each kind of operand (plain and
soft targets, one segment and several); the budgets bound the shortest sum of the passes, and for reductions the longest. Exit: 0 all gates
hold, 1 one does not, 2 nothing to measure with.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Loads adjacent in flight that a contiguous kernel's main loop must have, and instructions per element, by kernel and element type.
# Budgets, of sm_90: at 4.3 TB/s a read-only bf16 pass has about 14 issue slots an element and an 8-bit one 7; see docs/kernels.md.
# The longest loop of reductions is that over segments, whose addresses step by additions and a comparison.
BUDGETS = [
    # kernel, type, most instructions per element
    (r"reduce_rows<Sum<BFloat16, Term::kValue>>", 3.75),
    (r"reduce_rows<LogSumExp<BFloat16>>", 7.5),
    (r"reduce_rows<Sum<Float8E4M3, Term::kValue>>", 3.75),
    (r"class_rows<ClassTask::kIndices, BFloat16>", 16.0),
    (r"class_columns<ClassTask::kIndices, BFloat16>", 48.0),
    (r"pointwise_loss<SquaredOp, BFloat16>", 44.0),
]

# The same at addresses that are no multiple of 16: what lets a stream of 3.1 TB/s through on an H100 is 19 an element of bf16, 9 of 8 bits.
# These loops have the code for both ends of a row in them, which is counted and runs once a row.
SPLICED_BUDGETS = {
    "reduce_rows<Sum<BFloat16, Term::kValue>>": 10.0,
    "reduce_rows<LogSumExp<BFloat16>>": 14.0,
    "reduce_rows<Sum<Float8E4M3, Term::kValue>>": 7.5,
}

# Loads under way before the first use, where that is known to be fewer than 4: ptxas orders these loops by registers, not by latency. A
# larger number than found is a gate that fails; so is a smaller one, that the list stays true.
FEWER_IN_FLIGHT = {
    # The second pass with soft targets, from global memory: at 80 registers.
    r"class_rows<ClassTask::kIndices, (BFloat16|Half|float)>": 1,
    r"class_rows<ClassTask::kIndices, double>": 2,
    # Probabilities lie at an address of their own, with a test each whether a vector of them is spliced.
    r"class_rows<ClassTask::kProbabilities, (BFloat16|Half|float)>": 2,
    r"class_rows<ClassTask::kProbabilities, double>": 1,
    r"class_columns<ClassTask::kProbabilities, (BFloat16|Half|float)>": 2,
    # 16 elements a load, each with its sign.
    r"reduce_columns<(Product<signed char, true>|Sum<signed char, Term::kAbsolute>)>": 3,
}

# Kernels that multiply tiles in shared memory, and the most SASS instructions for each multiply-add of their loop over k. What is not one
# loads both factors, from shared memory by 16 bytes, and brings the next step from global memory; there are three ways for that, one of
# which runs, and all of them count.
TILES = {
    r"multiply_matrices<double, 1>": 4.0,
    r"multiply_matrices<\w+, 1>": 2.5,
    r"multiply_matrices<\w+, 2>": 1.75,
    r"convolve_tiles<double, 1>": 4.0,
    r"convolve_tiles<\w+, 1>": 2.75,
    r"convolve_tiles<\w+, 2>": 1.9,
    # Both of its products, and none of them brings anything from global memory.
    r"attend_tiles<\w+, [124]>": 1.4,
}

# Kernels whose reads are not contiguous, so that they have no 128-bit loads: one log-probability a row, wherever its label says; windows,
# one element of the result a thread; words of less than 16 bytes, where what moves together has no more; and tuples of indices.
GATHERING = ("negative_log_likelihood", "convolve_few_filters", "pool_windows", "find_last_updates", "move_words<unsigned ", "transpose_tiles")

ELEMENT_BYTES = {"double": 8, "float": 4, "Half": 2, "BFloat16": 2, "Float8E4M3": 1, "Float8E5M2": 1, "signed char": 1, "unsigned char": 1,
                 "short": 2, "unsigned short": 2, "int": 4, "unsigned int": 4, "long": 8, "unsigned long": 8}


def demangle(names):
    if not names:
        return {}
    out = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(zip(names, map(shorten, out)))


def shorten(name):
    name = re.sub(r"tensorlint::kernels::", "", name)
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"\((\w+Parameters|\w+<[^()]*>)\)$", "", name)
    name = re.sub(r"\(Term\)0", "Term::kValue", name)
    name = re.sub(r"\(Term\)1", "Term::kAbsolute", name)
    name = re.sub(r"\(Term\)2", "Term::kSquare", name)
    name = re.sub(r"\(ClassTask\)0", "ClassTask::kIndices", name)
    name = re.sub(r"\(ClassTask\)1", "ClassTask::kProbabilities", name)
    name = re.sub(r"\(ClassTask\)2", "ClassTask::kSoftmax", name)
    name = re.sub(r"\(MovementKind\)(\d)", lambda kind: "MovementKind::k" + ("Copy", "Pad", "Gather", "Scatter")[int(kind[1])], name)
    name = re.sub(r"std::int(\d+)_t", r"int\1", name)
    return name.replace(" >", ">")


def element_bytes(name):
    types = [t for t in re.findall(r"double|float|Half|BFloat16|Float8E4M3|Float8E5M2|unsigned char|signed char|unsigned short|short|unsigned int|unsigned long|int|long", name)]
    return ELEMENT_BYTES[types[-1]] if types else 4


def read_ptxas(log, arch, found):
    entry = None
    for line in log.read_text(errors="replace").splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", line):
            entry = match.group(1) if match.group(2) == arch else None
        elif entry and (match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            found.setdefault(entry, {}).update(stack=int(match[1]), spills=int(match[2]) + int(match[3]))
        elif entry and (match := re.search(r"Used (\d+) registers", line)):
            found.setdefault(entry, {})["registers"] = int(match[1])
            shared = re.search(r"(\d+) bytes smem", line)
            found[entry]["shared"] = int(shared[1]) if shared else 0


# Of a million lines.
FUNCTION, LABEL = re.compile(r"\s*\.text\.(\w+):"), re.compile(r"\s*(\.L_x_\d+):")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(.*?);")
BRANCH = re.compile(r"\bBRA(?:\.\w+)*\s.*?`\((\.L_x_\d+)\)")
GENERIC, LOCAL = re.compile(r"(@!?U?P\d+ )?(LD|ST)\.E"), re.compile(r"(@!?U?P\d+ )?(LDL|STL)\b")
FLOAT_ATOMIC = re.compile(r"\b(ATOM|ATOMG|RED|ATOMS)\S*\.(F16|F32|F64|BF16)")


def functions_of(sass):
    """Name -> [(label or None, instruction text)]."""
    functions, name, body = {}, None, []
    for line in sass.splitlines():
        if match := FUNCTION.match(line):
            name, body = match.group(1), []
            functions[name] = body
        elif name is not None:
            if match := LABEL.match(line):
                body.append((match.group(1), None))
            elif match := INSTRUCTION.match(line):
                body.append((None, match.group(1).strip()))
    return functions


def loops_of(body):
    """Innermost loops as lists of instructions."""
    at = {label: i for i, (label, _) in enumerate(body) if label}
    ranges = []
    for i, (_, text) in enumerate(body):
        if text and (match := BRANCH.search(text)):
            start = at.get(match.group(1))
            if start is not None and start <= i:
                ranges.append((start, i))
    inner = [r for r in ranges if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in ranges)]
    return [[text for _, text in body[a:b + 1] if text and not text.startswith("NOP")] for a, b in inner]


def vector_loads(loop):
    return sum(1 for text in loop if re.search(r"\bLDG\.E(\.\w+)*\.128", text)), sum(1 for text in loop if re.search(r"\bLDS(\.\w+)*\.128", text))


def spliced_loads(loop):
    """Loads that only complete a vector at an odd address, where the 16 bytes before them are loaded from the same register: all of them, and
    those of 16 bytes (of elements of 8 bytes no more than 8 are needed)."""
    places = [(match[1], match[2], match[3], int(match[4] or "0", 16)) for text in loop
              if (match := re.search(r"\b(LDG|LDS)(?:\.[A-Z]\w*)*\.(128|64)\b.*\[(U?R\d+)(?:\.\w+)?(?:\+(0x[0-9a-f]+))?\]", text))]
    widths = [width for kind, width, register, offset in places if (kind, "128", register, offset - 16) in places]
    return len(widths), widths.count("128")


WIDE_LOAD = re.compile(r"\bLDG\.E(?:\.\w+)*\.128(?:\.\w+)*\s+R(\d+)")
BATCH = 4


def in_flight(loop):
    """16-byte global loads from the head of the loop to the first instruction that touches what one of them brings."""
    loaded, count = set(), 0
    for text in loop:
        match = WIDE_LOAD.search(text)
        touched = {int(r) for r in re.findall(r"\bR(\d+)\b", text[match.end():] if match else text)}
        touched |= {r + 1 for r in touched if ".64" in text}
        if touched & loaded:
            break
        if match:
            loaded |= set(range(int(match[1]), int(match[1]) + 4))
            count += 1
    return count


def streams_of(name):
    """Tensors that a loop loads side by side: elements are those of one. Pointwise losses have code for the upstream of each element."""
    if name.startswith("pointwise_loss"):
        return 3
    return 2 if name.startswith(("softmax_gradient", "cosine")) or "kProbabilities" in name else 1


def measure(name, body):
    size = element_bytes(name)
    loops = []
    for loop in loops_of(body):
        wide, cached = vector_loads(loop)
        loads = wide + cached
        if loads:
            spliced, spliced_wide = spliced_loads(loop)
            stores = [match[0] for text in loop if (match := re.search(r"\bSTG\.E\S*", text))]
            streams = streams_of(name)
            # A batch of spliced vectors has loads for those next to an end of the row, too.
            vectors = BATCH if spliced >= BATCH else loads - spliced_wide
            elements = vectors * 16 / size / (streams if loads >= streams else 1)
            multiply_adds = sum(1 for text in loop if re.search(r"\b[FD]FMA\b", text))
            narrow_shared = sum(1 for text in loop if re.search(r"\bLDS\b", text) and ".128" not in text)
            loops.append({"loads": wide, "cached": cached, "spliced": spliced, "multiply_adds": multiply_adds, "narrow_shared": narrow_shared,
                          "length": len(loop), "stores": sum(1 for store in stores if ".128" in store),
                          "narrow_stores": sum(1 for store in stores if ".128" not in store), "in_flight": in_flight(loop),
                          "per_element": len(loop) / elements})
    text = [t for _, t in body if t]
    return {"loops": loops, "instructions": len(text), "wide_loads": vector_loads(text)[0],
            "generic": sum(1 for t in text if GENERIC.match(t)),
            "local": sum(1 for t in text if LOCAL.match(t)),
            "float_atomics": sum(1 for t in text if FLOAT_ATOMIC.search(t))}


def batch_loops(m):
    return [loop for loop in m["loops"] if loop["loads"] >= BATCH and loop["spliced"] < BATCH]


def spliced_loops(m):
    """Those over vectors at odd addresses: two loads and the shifts beside."""
    return [loop for loop in m["loops"] if loop["spliced"] >= BATCH]


def tile_budget(name):
    """Of a kernel that multiplies tiles; None for others."""
    return next((budget for pattern, budget in TILES.items() if re.fullmatch(pattern, name)), None)


def tile_loops(name, m):
    """The loop over k; of attention that over the elements of keys and that over the keys."""
    if name.startswith("attend"):
        return [loop for loop in m["loops"] if loop["multiply_adds"] >= 64]
    return sorted((loop for loop in m["loops"] if loop["multiply_adds"] > 0), key=lambda loop: loop["multiply_adds"])[-1:]


def main_passes(name, m):
    """(shortest, longest) instructions per element of all passes, or per multiply-add of a tile; None where a kernel has no such figure."""
    if tile_budget(name) is not None:
        figures = [loop["length"] / loop["multiply_adds"] for loop in tile_loops(name, m)]
        return (min(figures), max(figures)) if figures else None
    if name.startswith(("scan_labels", "scan_indices", "elementwise", "move_words")):
        return None  # elements of labels and indices have either width, and others any
    writes = name.startswith(("class_", "softmax_gradient", "cosine", "pointwise_loss"))
    batches = batch_loops(m)
    passes = [[loop for loop in batches if loop["stores"] == 0]]
    if writes:
        # A row that is kept in shared memory is written from there.
        passes.append([loop for loop in m["loops"] if loop["stores"] > 0 and (loop["loads"] >= BATCH or loop["cached"])])
    if name.startswith("pointwise_loss"):
        passes = [batches]  # one pass does both
    if not all(passes):
        return None
    figures = [[loop["per_element"] for loop in loops] for loops in passes]
    return sum(map(min, figures)), sum(map(max, figures))


def tile_gates(name, m):
    """What does not hold of a loop over k."""
    figure, loops = main_passes(name, m), tile_loops(name, m)
    if figure is None:
        return [f"{name}: no loop with multiply-adds and 128-bit loads"]
    failures = []
    if figure[1] > tile_budget(name):
        failures.append(f"{name}: {figure[1]:.2f} instructions per multiply-add, budget {tile_budget(name)}")
    if name.startswith("attend"):
        if len(loops) != 2:
            failures.append(f"{name}: {len(loops)} loops with multiply-adds, those of two products expected")
        if m["wide_loads"] < 6:  # two under way of queries, keys and values each
            failures.append(f"{name}: {m['wide_loads']} 128-bit loads from global memory, 6 wanted")
    wanted = 0 if name.startswith("attend") else 1 if name.startswith("convolve") else 2  # patches are not contiguous
    for loop in loops:
        if loop["narrow_shared"] > 0:
            failures.append(f"{name}: {loop['narrow_shared']} loads of less than 16 bytes from shared memory in the loop over k")
        if loop["loads"] < wanted:
            failures.append(f"{name}: {loop['loads']} 128-bit loads from global memory in the loop over k, {wanted} wanted")
    return failures


def loop_gates(name, m):
    """What does not hold of a kernel's batch loops."""
    if tile_budget(name) is not None:
        return tile_gates(name, m)
    batches = batch_loops(m)
    failures = [f"{name}: {loop['narrow_stores']} stores of less than 16 bytes in a loop with {loop['loads']} 128-bit loads"
                for loop in batches if loop["narrow_stores"] > 0]
    for loop in spliced_loops(m):
        if loop["narrow_stores"] > 0 or loop["in_flight"] < BATCH // 2:
            failures.append(f"{name}: {loop['in_flight']} loads under way, {loop['narrow_stores']} stores of less than 16 bytes in a loop over vectors at odd addresses")
        if name in SPLICED_BUDGETS and loop["per_element"] > SPLICED_BUDGETS[name]:
            failures.append(f"{name}: {loop['per_element']:.2f} instructions per element at odd addresses, budget {SPLICED_BUDGETS[name]}")
    wanted = next((n for pattern, n in FEWER_IN_FLIGHT.items() if re.fullmatch(pattern, name)), BATCH)
    fewest = min((loop["in_flight"] for loop in batches), default=BATCH)
    if min(fewest, BATCH) != wanted:
        failures.append(f"{name}: {fewest} loads under way before the first use, {wanted} expected")
    return failures


def table(rows, arch):
    """Markdown; threads an SM by registers alone: 65536 of them, in steps of 8 a thread, blocks of 256, at most 8."""
    lines = [f"# Kernels of sm_{arch}", "",
             f"Written by `./dev gates --arch {arch} --update`: {len(rows)} kernels, {sum(1 for r in rows if r[2])} with spills. Loads: 128-bit loads in",
             "the loop that has most of them, in the whole kernel, and under way before the first use (the fewest of its batch loops). Instructions per",
             "element: SASS instructions of the batch loops of all passes over their elements, shortest to longest; `-` where there is no such figure. Per-row",
             "work is not in it. Of kernels that multiply tiles these are instructions per multiply-add of the loop over k. Shared memory is the static",
             "part; class rows add up to 64 KiB. Blocks: how many of 256 threads the registers let onto an SM.", "",
             "| kernel | registers | blocks | spilled bytes | loads in a loop | in all | under way | instructions per element | shared memory | instructions |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, registers, spills, most, wide, flying, passes, count, shared in rows:
        shown = "-" if passes is None else f"{passes[0]:.1f}" if f"{passes[0]:.1f}" == f"{passes[1]:.1f}" else f"{passes[0]:.1f} to {passes[1]:.1f}"
        blocks = min(8, 65536 // (256 * ((registers + 7) // 8 * 8)))
        lines.append(f"| `{name}` | {registers} | {blocks} | {spills} | {most} | {wide} | {flying} | {shown} | {shared} | {count} |")
    return "\n".join(lines) + "\n"


def tool(name, given):
    path = given or shutil.which(name)
    if path is None:
        venv = pathlib.Path(sys.prefix).glob(f"lib/python*/site-packages/nvidia/cu*/bin/{name}")
        path = next((str(p) for p in venv), None)
    return path


def disassembled(path, arch, nvdisasm, cuobjdump):
    """As functions_of, of an object file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cuobjdump, "-xelf", f"sm_{arch}", str(path.resolve())], cwd=folder, check=True, capture_output=True)
        cubins = sorted(pathlib.Path(folder).glob("*.cubin"))
        return functions_of("".join(subprocess.run([nvdisasm, "-c", str(cubin)], check=True, capture_output=True, text=True).stdout for cubin in cubins))


def measured(job):
    """Mangled name -> name, what ptxas says, and what `measure` finds (None without SASS), of the kernels of one object file."""
    path, arch, nvdisasm, cuobjdump = job
    found = {}
    read_ptxas(pathlib.Path(str(path) + ".log"), arch, found)
    names, bodies = demangle(sorted(found)), disassembled(path, arch, nvdisasm, cuobjdump)
    return {mangled: (names[mangled], numbers, measure(names[mangled], bodies[mangled]) if mangled in bodies else None)
            for mangled, numbers in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", type=pathlib.Path)
    parser.add_argument("--arch", default="90")
    parser.add_argument("--nvdisasm")
    parser.add_argument("--cuobjdump")
    parser.add_argument("--table", type=pathlib.Path, help="write the table of all kernels here (Markdown)")
    options = parser.parse_args()
    nvdisasm, cuobjdump = tool("nvdisasm", options.nvdisasm), tool("cuobjdump", options.cuobjdump)
    if nvdisasm is None or cuobjdump is None:
        print("gates: nvdisasm or cuobjdump not found (wheels nvidia-cuda-nvdisasm, nvidia-cuda-cuobjdump); nothing measured", file=sys.stderr)
        return 2
    objects = sorted(options.objects.glob("*instances*.o"))
    if not objects:
        print(f"gates: no objects in {options.objects}", file=sys.stderr)
        return 2

    jobs = [(path, options.arch, nvdisasm, cuobjdump) for path in objects]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        found = {mangled: kernel for kernels in pool.map(measured, jobs) for mangled, kernel in kernels.items()}
    failures, rows = [], []
    for name, numbers, m in sorted(found.values(), key=lambda kernel: kernel[0]):
        if m is None:
            failures.append(f"{name}: no SASS")
            continue
        passes = main_passes(name, m)
        most = max((l["loads"] for l in m["loops"]), default=0)
        flying = min((loop["in_flight"] for loop in batch_loops(m)), default="-")
        rows.append((name, numbers["registers"], numbers["spills"], most, m["wide_loads"], flying, passes, m["instructions"], numbers["shared"]))
        if numbers["spills"] or numbers["stack"] or m["local"]:
            failures.append(f"{name}: {numbers['spills']} spilled bytes, {numbers['stack']} bytes of stack, {m['local']} local accesses")
        if m["generic"] and not name.startswith("class_rows"):  # there a cluster's shared memory is read by its generic address
            failures.append(f"{name}: {m['generic']} generic loads and stores, of addresses that the compiler does not know to be global")
        if m["float_atomics"]:
            failures.append(f"{name}: {m['float_atomics']} floating-point atomics")
        if not name.startswith(GATHERING) and tile_budget(name) is None and most < 4:
            failures.append(f"{name}: {most} 128-bit loads in its widest loop, 4 wanted")
        for pattern, budget in BUDGETS if options.arch == "90" else []:
            figure = None if passes is None else passes[1] if name.startswith("reduce_") else passes[0]
            if name == pattern and (figure is None or figure > budget):
                failures.append(f"{name}: {figure if figure is None else round(figure, 2)} instructions per element, budget {budget}")
        if options.arch == "90":
            failures += loop_gates(name, m)
    for pattern, budget in BUDGETS:  # elsewhere for reading only
        hit = next((r for r in rows if r[0] == pattern), None)
        if hit is None:
            failures.append(f"{pattern}: not among the kernels")
        else:
            print(f"{pattern}: {'none' if hit[6] is None else f'{hit[6][0]:.2f} to {hit[6][1]:.2f}'} instructions per element, budget {budget}")
    print(f"{len(rows)} kernels of sm_{options.arch}: {sum(1 for r in rows if r[2])} with spills, registers {min(r[1] for r in rows)} to {max(r[1] for r in rows)}")
    if options.table:
        options.table.write_text(table(rows, options.arch))
    for failure in failures:
        print(f"gate: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
