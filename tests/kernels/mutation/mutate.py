"""Measures the emulator and its tests: changes one thing of the kernels at a time (a barrier, fence, mask or atomic removed, an index
or a guard wrong) and counts how many of the changes the probe notices, for each kernel that has the changed code.

    mutate.py [--jobs N] [--sample N] [--only TEXT] [--list] [--json FILE]

Each mutant is the kernel sources with one change, in a temporary folder, compiled with probe.cc and run once for each kernel that uses
the changed function. Killed: the probe fails, or ends by a signal, or runs past the limit. --sample takes that many mutants, spread over
kernels and kinds: 20 take about a minute of processor time, all of them about ten. Exit: 0 score at least 95 % of the mutants that change
something, 1 below, or where a mutant that EQUIVALENT lists is killed.
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

WITH_TOTAL = ["class_rows", "class_columns", "cosine_embedding", "pointwise_loss", "negative_log_likelihood"]
# File -> the kernels that its code is in; where functions of it are in different kernels, by function.
KERNELS = {
    "kernels/common/combine.h": {
        "combine_lanes": ["reduce_rows", "class_rows", "softmax_gradient", "cosine_embedding"],
        "combine_block": ["reduce_rows", "softmax_gradient", "scan_labels", *WITH_TOTAL],
        "arrives_last": ["reduce_rows", "reduce_columns", "scan_labels", *WITH_TOTAL],
        "grid_sum": WITH_TOTAL},
    "kernels/common/launch.h": {"launch": ["class_rows"]},
    "kernels/common/unaligned.h": {"": ["reduce_rows", "class_rows"]},
    "kernels/common/store_span.h": {"": ["class_rows"]},
    "kernels/reduction/kernels.h": {
        "absorb_rest": ["reduce_rows"], "walk_line": ["reduce_rows"], "walk_segments": ["reduce_rows"], "walk_row": ["reduce_rows"], "reduce_rows": ["reduce_rows"], "take_columns": ["reduce_columns"], "walk_columns": ["reduce_columns"], "reduce_tile": ["reduce_columns"]},
    "kernels/loss/class_common.h": {"": ["class_rows", "class_columns"]},
    "kernels/loss/class_rows.h": {"": ["class_rows"]},
    "kernels/loss/class_columns.h": {"": ["class_columns"]},
    "kernels/common/walk.h": {"": ["scan_labels"]},
    "kernels/loss/label_scan.h": {"": ["scan_labels"]},
    "kernels/loss/softmax_gradient.h": {"": ["softmax_gradient"]},
    "kernels/loss/cosine_embedding.h": {"": ["cosine_embedding"]},
    "kernels/loss/pointwise_kernel.h": {"": ["pointwise_loss"]},
    "kernels/loss/negative_log_likelihood.h": {"": ["negative_log_likelihood"]},
    "kernels/elementwise/kernel.h": {"": ["elementwise"]},
    "kernels/movement/kernel.h": {"": ["move_words"]},
    "kernels/movement/index_kernels.h": {"": ["move_words"]},
    "kernels/movement/transpose_kernel.h": {"": ["move_words"]},
    "kernels/product/tile.h": {"": ["multiply_matrices"]},
    "kernels/product/matrix_kernel.h": {"": ["multiply_matrices"]},
    "kernels/product/stack.h": {"": ["multiply_matrices", "attend_tiles"]},
    "kernels/product/product.cc": {"": ["multiply_matrices"]},
    "kernels/product/plan.cc": {"": ["multiply_matrices"]},
    "kernels/window/convolution_kernel.h": {"": ["convolve_tiles"], "convolve_few_filters": ["convolve_few_filters"]},
    "kernels/normalization/kernels.h": {"": ["normalize_rows"]},
    "kernels/attention/attention_kernel.h": {"": ["attend_tiles"]},
    "kernels/attention/attention.cc": {"": ["attend_tiles"]},
    "kernels/window/pooling_kernel.h": {"": ["pool_windows"]},
    "kernels/window/window.cc": {"": ["convolve_tiles"]},
}

# What to look for, and what to put there. A removed barrier removes the statement; a removed mask narrows a shuffle to half a warp; a
# removed atomic becomes a plain load and store.
PATTERNS = [
    ("block barrier", r"\bblock_barrier\(\);", "(void)0;"),
    ("cluster barrier", r"\bcluster_barrier\(\);", "(void)0;"),
    ("warp barrier", r"\bwarp_barrier\(kFullMask\);", "(void)0;"),
    ("fence", r"\bfence\(\);", "(void)0;"),
    ("mask", r"shuffle_xor\(kFullMask\b", "shuffle_xor(0xffffU"),
    ("atomic", r"\batomic_increment\(ticket\)", "[&] { const unsigned v = load_global(ticket); store_global(ticket, v + 1); return v; }()"),
    # What synchronisation protects: the reset of the ticket, the last block's choice, the order of arrival.
    ("ticket reset", r"if \(last\) store_global\(ticket, 0U\);", ""),
    ("last block", r"atomic_increment\(ticket\) == count - 1", "(atomic_increment(ticket), block_in_grid() % count == count - 1)"),
    ("remote block", r"block_state\.in_block\(other\)\[0\]", "block_state.in_block(0)[0]"),
    # Places: tickets and partial results.
    ("ticket index", r"\bp\.tickets \+ \w+", "p.tickets"),
    ("partial index", r"\+ row \* splits\b", ""),
    ("partial index", r"\bpartials \+ (split|i|block_in_grid\(\))(?=[,)])", "partials"),
    ("partial index", r"\bpartials \+ split \* results\b", "partials"),
    ("partial index", r"\bfrom \+ i \* results\b", "from"),
    ("partial index", r"\bi \+ k \* parts\b", "i"),
    # Guards: who does it, and how far.
    ("owner", r"== 0\) (?=store_global|scratch|block_state|finish_and_store)", "<= 1) "),
    ("owner", r"\blane == 0(?=\) finish)", "lane <= 1"),
    ("owner", r"(?<=% lanes )== lane\b|(?<=% p\.plan\.lanes )== part\.lane\b", r"<= (lane_in_warp() | 1U)"),
    ("owner", r"\bunit == whole\b", "unit >= whole"),
    ("owner", r"\bblock_in_grid\(\) \+ 1 == p\.blocks\b", "true"),
    ("clamp", r"\b((?:\w|\.)+ \+ (?:\w|\.)+) < ((?:\w|\.)+) \? \1 : \2", r"\1"),
    ("clamp", r"(?<== )end < full \? end : full", "end"),
    ("active", r"const bool active = [^;{]+;", "const bool active = true;"),
    ("active", r"\.active = (?!v)[^;]+;", ".active = true;"),
    ("step", r"\bi \+= kThreads\b", "i += kThreads - 1"),
    ("alignment", r"% 16 == 0", "% 4 == 0"),
    ("alignment", r"(?<=\()shift == 0(?=\))", "shift % 8 == 0"),
    ("owner", r"\btid >= columns\b", "tid > columns"),
    ("active", r" && part < parts(?=;)", ""),
    # Lines of several rows or segments: which columns make a result, who takes the rest, and where a segment ends.
    ("merge", r"\binside \* plan\.merge \+ i\b", "inside * plan.merge"),
    ("merge", r"\bi \* static_cast<unsigned>\(results_inner\) \+ inside", "inside"),
    ("merge", r"\btile \* tile_results \+ inside\b", "inside"),
    ("merge", r"\bof \* results_inner \+ result\b", "result"),
    ("merge", r"\bof \* axes\.inner \+ column\b", "column"),
    ("rest", r"\bsplit \+ 1 == plan\.splits && ", ""),
    ("rest", r" && depth_index == 0(?=\))", ""),
    ("rest", r"if \(k < count\) (?=Accumulator)", ""),
    ("rest", r"if \(own_rest < rest\) (?=rest_element)", ""),
    ("rest", r"\(first - full\) & \(stride - 1\)", "(first - full) & (stride / 2)"),
    ("wrap", r"\(wraps \? wrap : 0\)", "0"),
    ("wrap", r"\bwraps \? length : 0", "0"),
    ("wrap", r"\binside >= length\b", "inside > length"),
    ("edge", r"width == kWidth \|\| end < axes\.outer_reduced \? end : end - 1", "end"),
    ("edge", r"width == kWidth \? load_anywhere\(readable, at\) : load_first\(readable, at, width\)", "load_anywhere(readable, at)"),
    ("levels", r"\bfirst \+ stride(?=; d)", "first + 2 * stride"),
    ("levels", r"if \(level_parts > 1\) \{", "if (level_parts > 99) {"),
    ("levels", r"\bc / columns_at_once\b", "0"),
    # Vectors at any address: which bytes, what may be read, and who writes the elements beside whole vectors.
    ("splice", r"\(bytes & 8U\) != 0", "false"),
    ("splice", r"\(bytes & 4U\) != 0", "false"),
    ("readable", r"\blow >= reinterpret_cast<std::uintptr_t>\(begin\) && ", ""),
    ("readable", r"\blow \+ 32 <=", "low + 16 <="),
    ("readable", r"if \(i < count\) (?=vector)", ""),
    ("edge", r"kSize - before(?=;)", "kSize"),
    ("edge", r"\bhead \+ \(i - tail_at\)", "i - tail_at"),
    ("edge", r"(?<=first_of\(vectors\) \+ )\(i - head\)", "i"),
    ("edge", r"inside >= span\.head &&\s", ""),
    ("cache slot", r"\bpart\.whole \+ part\.slot\b", "part.begin + part.slot"),
    ("cache slot", r"std::int64_t\{thread_in_block\(\) / p\.plan\.lanes\} \* p\.plan\.part", "std::int64_t{0}"),
    ("cache slot", r"\bindex / kSize \+ part\.slot\b", "index / kSize - part.begin"),
    ("row barrier", r"if \(p\.plan\.cached\) row_barrier\(lanes\);", ""),
    ("whole batch", r"if \(!whole\) break;", ""),
    ("label logit", r"\br\.label_logit, r\.label,", "widen(load_global(KERNEL_LOGIT)), r.label,"),
    # Element functions: which lane of a shared cell, where a tile ends, which operand, what is kept.
    ("lane", r"\blane % 2 == 0(?= \?)", "lane % 2 == 1"),
    ("lane", r"\blane % 2 == 0(?=\))", "lane % 2 == 1"),
    ("lane", r"\blane / 2\b", "lane"),
    ("lane", r"\bpass \* kWarpLanes \+ lane_in_warp\(\)", "lane_in_warp()"),
    ("guard", r"\belement \+ i < p\.elements\b", "element + i <= p.elements"),
    ("guard", r"\bfirst \+ tile_elements <= p\.elements\b", "first <= p.elements"),
    ("guard", r"(?<=\()whole && (?=operand|p\.result)", ""),
    ("guard", r"\bj \+ 4 <= count\b", "j + 3 <= count"),
    ("kept", r"step\.save != kNothing\b", "false"),
    ("kept", r"(?<=slot - kFirstSlot\) \* )kSlotCells<C> \* kWarpLanes", "0"),
    ("kept", r"step\.[ab] (?:=|!)= kAccumulator\b", "true"),
    ("stride", r"\* operand\.strides\[axis\]", "* operand.strides[0]"),
    # Movement: borders, which index, what is outside, and who writes last.
    ("border", r"\bc < 0 \? 0 : n - 1", "c < 0 ? n - 1 : 0"),
    ("border", r"2 \* \(n - 1\) - c\b", "2 * n - 1 - c"),
    ("border", r"c < 0 \? c \+ n : c - n\b", "c + n"),
    ("border", r"\bis_inside = false;\n      return 0;", "return 0;"),
    ("index", r"if \(index < 0\) index \+= [^;]+;", ""),
    ("index", r"\bindex < 0 \|\| index >=", "index < 0 || index >"),
    ("index", r"\btuple \* p\.parts \+ part\b", "tuple * p.parts"),
    ("index", r"\bindex \* p\.part_strides\[part\]", "index * p.part_strides[0]"),
    ("index", r"\bindex < -extent \|\| index >= extent\b", "index < -extent || index > extent"),
    ("index", r"\bindex < -extent \|\| ", ""),
    ("index", r"a\.first < b\.first \? a\.first", "a.first > b.first ? a.first"),
    ("outside", r"kKind == MovementKind::kCopy \|\| route\.is_inside", "true"),
    ("outside", r"kKind != MovementKind::kScatter \|\| route\.is_inside", "true"),
    ("outside", r"\bis_inside && other == target\b", "other == target"),
    ("last update", r"load_global\(p\.last \+ route\.tuple\) != 0", "true"),
    ("last update", r"\blater = tuple \+ 1\b", "later = tuple + 2"),
    ("guard", r"\btuple >= p\.movement\.tuples\b", "tuple > p.movement.tuples"),
    ("stride", r"\bc \* p\.(to|from|index)_strides\[axis\]", r"c * p.\1_strides[0]"),
    ("stride", r"\bindex \* p\.(to|from)_strides\[axis\]", r"index * p.\1_strides[0]"),
    ("guard", r"\bcolumn \+ (lane|across) < p\.columns\b", r"column + \1 <= p.columns"),
    ("guard", r"\brow \+ (lane|down) < p\.rows\b", r"row + \1 <= p.rows"),
    ("stride", r"(?<=route\.is_inside\) )\* p\.from_strides\[axis\]", "* p.from_strides[0]"),
    # Tiles of products: the edges of matrices, which half of shared memory, which matrix of a stack, what may be read as vectors.
    ("guard", r"\broom >= kSize\b", "room >= kSize - 1"),
    ("guard", r"\bmine\.k \+ kSize <= left\b", "mine.k + kSize <= left + 1"),
    ("guard", r"\bmine\.k < left\b", "mine.k <= left"),
    ("guard", r"\bi < room\b", "i <= room"),
    ("guard", r"\bmine\.k \+ i \* step < left\b", "mine.k + i * step <= left"),
    ("guard", r"\brow >= result\.m\b", "row > result.m"),
    ("guard", r"\bcolumn \+ kQuad <= result\.n\b", "column + kQuad <= result.n + 1"),
    ("guard", r"\bcolumn \+ j < result\.n\b", "column + j <= result.n"),
    ("buffer", r"\bstep = Shape::kStep - step;", "step = 0;"),
    ("matrix", r"\bplace\.matrix \* p\.result\.m\b", "0 * p.result.m"),
    ("matrix", r"\boffsets\.[ab], place\b", "0, place"),
    ("matrix", r"\bmatrix - next \* axes\.extents\[axis\]\.value", "matrix"),
    ("matrix", r"\bmatrix = next;", ""),
    ("matrix", r"\+= offsets_in\(p\.stack, place\.matrix\)\.addend", "+= 0"),
    ("vector", r"(?<=aligned = aligned && )operand\.batch\[axis\] % kSize == 0", "true"),
    ("vector", r"(?<=aligned = aligned && )position % kSize == 0", "true"),
    ("vector", r"\b(?:aligned && )?depth % kSize == 0\b", "true"),
    ("vector", r"request\.n % kQuad == 0 && ", ""),
    # Windows: padding on each side, the ends of windows, groups, what counts in an average, filters as vectors.
    ("padding", r"\by < 0 \|\| ", ""),
    ("padding", r"\bx < 0 \|\| ", ""),
    ("padding", r"\by >= ((?:p|factor_)\.rows\.in)\b", r"y > \1"),
    ("padding", r"\bx >= ((?:p|factor_)\.columns\.in)\b", r"x > \1"),
    ("guard", r"\bk >= factor_\.depth\b", "k > factor_.depth"),
    ("guard", r"\bposition < end \?", "position <= end ?"),
    ("matrix", r"\bplace\.matrix \* p\.group_data\b", "0"),
    ("matrix", r"\bgroup \* p\.result\.m \* p\.filters\.position\b", "0"),
    ("matrix", r"\bp\.by_groups\.remainder\(place\.matrix\) \* p\.result\.m\b", "0"),
    ("matrix", r"\bgroup \* p\.group_channels(?=\))", "0"),
    ("loop end", r"\brow < p\.kernel_rows\b", "row <= p.kernel_rows"),
    ("loop end", r"\bcolumn < p\.kernel_columns\b", "column <= p.kernel_columns"),
    ("loop end", r"\bchannel < p\.group_channels\b", "channel <= p.group_channels"),
    ("counted", r"\bat >= low && ", ""),
    ("counted", r"\bat < high\b", "at <= high"),
    ("vector", r"\bdepth % Vector<T>::kSize == 0 && ", ""),
    ("vector", r"p\.result\.n % kQuad == 0 && ", ""),
    ("product", r" \|\| axis\.stride != 1", ""),
    ("product", r" \|\| axis\.begin != 0", ""),
    ("product", r" \|\| axis\.in != axis\.out", ""),
    # Normalizations: which parameters, and how moments are merged.
    ("moments", r"a\.squares \+ b\.squares \+", "a.squares + b.squares + 0 *"),
    ("moments", r"\bif \(a\.count == C\{0\}\) return b;", ""),
    ("moments", r"\ba\.sum \+ b\.sum\b", "a.sum"),
    ("parameter", r"\bkind \* p\.each\b", "0"),
    ("parameter", r"\bp\.(mean|variance) \+ kind\b", r"p.\1"),
    ("parameter", r"\bby_part\.value % kCount == 0\b", "by_part.value >= kCount"),
    ("parameter", r"\bby_part\.quotient\(i \+ k\)", "by_part.quotient(i)"),
    ("loop end", r"\bunit \+ 3 \* step < full\b", "unit + 2 * step < full"),
    ("loop end", r"\bi < length; i \+=", "i + 1 < length; i +="),
    # Attention: which keys are seen, what scores are relative to, which rows are zeros, which matrix.
    ("seen", r"(?<== )key \+ j < p\.keys(?=;)", "key + j <= p.keys"),
    ("seen", r"\bkey \+ j <= query \+ i\b", "key + j < query + i"),
    ("seen", r"inside && \(!p\.causal", "(!p.causal"),
    ("seen", r"\(set == \(p", "(set != (p"),
    ("seen", r"inside && query \+ i < p\.queries\b", "inside"),
    ("rescale", r"\bsums\.rows\[i\] \*= rescale;", ""),
    ("rescale", r"\bresults\[i\]\[j\] \*= rescale;", ";"),
    ("rescale", r"\blargest\.rows\[i\] = now\.rows\[i\];", ""),
    ("rescale", r"largest == Limits<float>::kLowest \? 0\.0F : largest", "largest"),
    ("rescale", r"LargestOfRows::State now = largest;", "LargestOfRows::State now{};"),
    ("rows", r"sum > 0\.0F && ", ""),
    ("rows", r" && sum == 0\.0F && largest == Limits<float>::kLowest", ""),
    ("rows", r"\bquery >= p\.queries\b", "query > p.queries"),
    ("matrix", r"index \* stack\.steps\[axis\]\.(query|key|value|mask|result)", "0"),
    ("matrix", r"\bfirst_key \* p\.value\.depth\b", "0"),
    ("step", r"\bk \+ Shape::kDepth\) \* Shape", "k) * Shape"),
    ("edge", r"after \+ p\.causal_offset < end \?", "after + p.causal_offset > end ?"),
    ("edge", r"first_query \+ kAttentionEdge < p\.queries \? first_query \+ kAttentionEdge : p\.queries", "first_query"),
    ("edge", r"\bp\.keys - first_key < kAttentionEdge \?", "false ?"),
    ("guard", r"\bfirst \+ kQuad <= p\.value_width\b", "first + kQuad <= p.value_width + 1"),
    ("guard", r"\bfirst \+ j < p\.value_width\b", "first + j <= p.value_width"),
    ("guard", r"p\.aligned && ", ""),
    ("vector", r"request\.result_row % kQuad == 0 &&", ""),
    ("vector", r"aligned && request\.result_batch\[axis\] % kQuad == 0", "aligned"),
    ("rows", r"request\.keys == 0 \? UndefinedRows::kZero : request\.undefined", "request.undefined"),
    ("fold", r"\brequest->b\.batch\[last\] != 0 \|\| ", ""),
    ("fold", r"request->a\.batch\[last\] != request->a\.row \* request->m", "false"),
    ("fold", r"request->addend\.batch\[last\] != request->addend\.row \* request->m", "false"),
    ("fold", r"operand\.batch\[kept - 1\] == operand\.batch\[axis\] \* extent", "operand.batch[axis] != 0"),
    ("shared memory", r"if \(geometry\.dynamic_shared_bytes > 0\) \{\n    if", "if (geometry.dynamic_shared_bytes > 48 * 1024) {\n    if"),
]
# Loops over run-time counts: one round too many. Unrolled ones have constant counts.
LOOP = re.compile(r"(?<!TL_UNROLL\n)^ *for \([^;]*; (?:active && )?(?:unit|index|level|other|i|j|c|d|r|tile|group|position|reach)\b[^;<]* (<) [^;]*;", re.MULTILINE)

# Mutants that change no result and break no rule, by kind, file and the text of their line after its function: why, and in which kernels (None: in all).
EQUIVALENT = {
    ("loop end", "kernels/normalization/kernels.h", "group * rows_at_once < p.rows"):
        ("rows past the last one are read and written by nobody", None),
    ("loop end", "kernels/movement/transpose_kernel.h", "tile < p.tiles"):
        ("the tile past the last one is the first one again", None),
    ("loop end", "kernels/attention/attention_kernel.h", "tile < p.tiles"):
        ("the tile past the last one is the first one again", None),
    ("clamp", "kernels/attention/attention_kernel.h", "after"):
        ("steps of keys that no query sees change nothing", None),
    ("edge", "kernels/attention/attention_kernel.h", "after + p.causal_offset < end"):
        ("steps of keys that no query sees change nothing", None),
    ("guard", "kernels/window/convolution_kernel.h", "position < end"):
        ("a window past the last one reads inside of the image, and its sum is not stored", None),
    ("guard", "kernels/elementwise/kernel.h", "j + 4 <= count"):
        ("a lane stages 1, 2 or a multiple of 4 vectors", None),
    ("loop end", "kernels/elementwise/kernel.h", "stage_elements: for (unsigned j = 0; j < count; ++j) {"):
        ("one vector more of an operand lies where the next one, or the result, comes later", None),
    ("loop end", "kernels/elementwise/kernel.h", "tile < p.tiles"):
        ("a tile past the last one has no elements", None),
    ("guard", "kernels/product/tile.h", "column + kQuad <= result.n"):
        ("4 divides the length of rows that are written by quads", None),
    ("clamp", "kernels/loss/class_rows.h", "part.begin + p.plan.part < units"):
        ("the end of the whole vectors is clamped too, and the incomplete one after them has no elements then", None),
    ("block barrier", "kernels/common/combine.h", "what any thread wrote"):
        ("thread 0 itself wrote the block's partial", ["reduce_rows", "scan_labels", *WITH_TOTAL]),
}


def function_at(text, at):
    """The function that `at` lies in: the last one whose head begins in the first column."""
    heads = re.findall(r"^(?:TL_\w+(?:\([^()]*(?:<[^()]*>)?\))? )+[^\n]*?(\w+)\(|^Status (\w+)\(", re.sub(r"TL_LAUNCH_BOUNDS\([^)]*\) ", "", text[:at]), re.MULTILINE)
    return next((name for pair in reversed(heads) for name in pair if name), "")


def mutants():
    for file, by_function in KERNELS.items():
        text = (ROOT / file).read_text()
        found = [(kind, match.start(), match.end(), match.expand(replacement) if "\\" in replacement else replacement)
                 for kind, pattern, replacement in PATTERNS for match in re.finditer(pattern, text)]
        found += [("loop end", match.start(1), match.end(1), "<=") for match in LOOP.finditer(text)]
        for kind, begin, end, replacement in sorted(set(found), key=lambda m: m[1]):
            function = function_at(text, begin)
            kernels = by_function.get(function, by_function.get("", []))
            if kind == "label logit":
                place = "v.logits + r.label" if "class_rows" in file else "p.logits + start_of(p, v.own) + r.label * p.inner"
                replacement = replacement.replace("KERNEL_LOGIT", place)
            line = text.count("\n", 0, begin) + 1
            if kind == "step":  # shows with more blocks than threads: one kernel of each kind of total has a probe of that size
                kernels = [k for k in kernels if k in ("reduce_rows", "pointwise_loss", "scan_labels")]
            if kernels:
                yield {"kind": kind, "file": file, "line": line, "code": text.splitlines()[line - 1].strip(), "function": function, "kernels": kernels,
                       "text": text[:begin] + replacement + text[end:]}


def sampled(all_mutants, count):
    """`count` of them: first one of each kernel and kind, in turn."""
    if count <= 0 or count >= len(all_mutants):
        return all_mutants
    turns = {}
    order = []
    for mutant in all_mutants:
        key = (mutant["kernels"][0], mutant["kind"])
        turns[key] = turns.get(key, 0) + 1
        order.append((turns[key], len(order), mutant))
    first = [mutant for _, _, mutant in sorted(order, key=lambda o: o[:2])]
    chosen = [first[i * len(turns) // count] for i in range(count)] if count <= len(turns) else first[:count]
    return chosen


def build_and_run(mutant, emulator, folder):
    """Kernel -> '' where its probe passes, else why not; None where the mutant does not compile."""
    tree = pathlib.Path(folder)
    shutil.copytree(ROOT / "kernels", tree / "kernels", ignore=shutil.ignore_patterns("*.md", "bench", "gates", "instances"))
    (tree / "tests/kernels").mkdir(parents=True)
    shutil.copytree(ROOT / "tests/kernels/mutation", tree / "tests/kernels/mutation")
    if mutant is not None:
        (tree / mutant["file"]).write_text(mutant["text"])
    kernels = mutant["kernels"] if mutant is not None else sorted({k for by in KERNELS.values() for ks in by.values() for k in ks})
    binary = tree / "probe"
    defines = [f"-DPROBE_{kernel}" for kernel in kernels]
    sources = ["tests/kernels/mutation/probe.cc", *(f"kernels/{part}.cc" for part in ("reduction/plan", "loss/plan", "product/plan", "product/operands", "elementwise/plan", "movement/plan", "common/launch"))]
    built = subprocess.run(["g++", "-std=c++20", "-O0", "-I.", *defines, *sources, str(emulator), "-o", str(binary)], cwd=tree, capture_output=True,
                           text=True)
    if built.returncode != 0:
        if mutant is None:
            sys.exit("the unchanged probe does not compile: " + built.stderr[:500])
        return None
    verdicts = {}
    for kernel in kernels:
        try:
            ran = subprocess.run([str(binary), kernel], capture_output=True, text=True, timeout=120)
            verdicts[kernel] = "" if ran.returncode == 0 else (ran.stdout.strip().splitlines() or [f"signal {-ran.returncode}"])[0]
        except subprocess.TimeoutExpired:
            verdicts[kernel] = "runs past the limit"
    return verdicts


def equivalent(mutant, kernel):
    return next((why for (kind, file, code), (why, kernels) in EQUIVALENT.items()
                 if mutant["kind"] == kind and mutant["file"] == file and code in f"{mutant['function']}: {mutant['code']}" and (kernels is None or kernel in kernels)), None)


def report(wanted, verdicts):
    """Prints a line for each mutant and kernel as they come; returns the results, and whether a listed one was killed."""
    results, contradicted = [], False
    for mutant, by_kernel in zip(wanted, verdicts):
        where = f"{mutant['file']}:{mutant['line']}"
        if by_kernel is None:
            print(f"invalid    {mutant['kind']:16} {where}: does not compile", flush=True)
            continue
        for kernel, verdict in by_kernel.items():
            why = equivalent(mutant, kernel)
            word = "killed" if verdict else "equivalent" if why else "SURVIVED"
            contradicted = contradicted or bool(why and verdict)
            print(f"{word:10} {mutant['kind']:16} {where} in {kernel}: {verdict[:120] or why or mutant['code']}", flush=True)
            if verdict or not why:
                results.append({"kind": mutant["kind"], "where": where, "kernel": kernel, "killed": bool(verdict), "by": verdict})
    return results, contradicted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sample", type=int, default=0, help="this many mutants; 0: all")
    parser.add_argument("--only", default="", help="mutants whose kind, file or kernel contains this")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    wanted = [m for m in mutants() if any(options.only in part for part in (m["kind"], m["file"], *m["kernels"]))]
    wanted = sampled(wanted, options.sample)
    if options.list:
        for m in wanted:
            print(f"{m['kind']:16} {m['file']}:{m['line']} in {', '.join(m['kernels'])}: {m['code']}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        emulator = pathlib.Path(scratch) / "simt.o"
        subprocess.run(["g++", "-std=c++20", "-O2", "-I.", "-c", "kernels/emulator/simt.cc", "-o", str(emulator)], cwd=ROOT, check=True)

        def one(mutant):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                return build_and_run(mutant, emulator, folder)

        if complaints := [f"{kernel}: {complaint}" for kernel, complaint in one(None).items() if complaint]:
            print(f"the unchanged kernels fail: {complaints[0]}")
            return 1
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results, contradicted = report(wanted, pool.map(one, wanted))
    by_kernel = {}
    for result in results:
        tally = by_kernel.setdefault(result["kernel"], [0, 0])
        tally[0] += result["killed"]
        tally[1] += 1
    for kernel, (killed, count) in sorted(by_kernel.items()):
        print(f"  {kernel}: {killed} of {count}")
    killed = sum(1 for r in results if r["killed"])
    score = killed / len(results) if results else 0.0
    print(f"mutation score {killed} of {len(results)}: {100 * score:.1f} %")
    if options.json:
        options.json.write_text(json.dumps({"score": score, "mutants": results}, indent=1) + "\n")
    return 0 if score >= 0.95 and not contradicted else 1


if __name__ == "__main__":
    sys.exit(main())
