"""What is known to break other tools, case by case: their crashes, hangs and memory blow-ups, and what a person tries by hand.

  known_cases_test.py              a test of each
  known_cases_test.py --table      runs each once, ten million nodes included, and prints exit code, processor time and memory
"""
import itertools
import json
import os
import pathlib
import sys
import tempfile
import unittest

import hostile_test
import wire
from hostile_test import CLEAN, FINDINGS, LEAST, MOST, UNREADABLE, simple
from wire import FLOAT

# group, name, exit code, what the report says, how the model is made
CASES: list[tuple] = []
NOTHING = r'"findings": ?\[\]'


def case(group, name, code, says):
    """`make` takes an empty folder and returns the content of the model, or None where it has made `m.onnx` itself."""
    def add(make):
        CASES.append((group, name, code, says, make))
        return make
    return add


def local(name, source, target):
    return wire.node(name, [source], [target], domain="local")


def relu(count=1):
    return wire.model(wire.chain(count))


def external(**entries):
    return simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, [4], external=entries)])


# ---- crashes of other tools


@case("crash", "Slice with start 0, end and step INT64_MAX", CLEAN, NOTHING)
def slice_to_the_end(folder):
    return simple([wire.node("Slice", ["x", "start", "most", "axis", "most"], ["y"])],
                  [wire.integers("start", [0]), wire.integers("most", [MOST]), wire.integers("axis", [0])])


@case("crash", "Div and Mod of INT64_MIN by -1", CLEAN, NOTHING)
def divide_the_least(folder):
    return simple([wire.node("Div", ["least", "minus"], ["d"]), wire.node("Mod", ["least", "minus"], ["m"]), wire.node("Add", ["d", "m"], ["s"]),
                   wire.node("Reshape", ["x", "s"], ["y"])], [wire.integers("least", [LEAST]), wire.integers("minus", [-1])])


@case("crash", "SplitToSequence with 0", FINDINGS, "have the size 0, it has to be positive")
def split_by_zero(folder):
    return simple([wire.node("SplitToSequence", ["x", "zero"], ["s"], axis=1), wire.node("SequenceLength", ["s"], ["y"])], [wire.integers("zero", [0], scalar=True)])


@case("crash", "a chain of 10,000 functions", CLEAN, NOTHING)
def chain_of_calls(folder):
    functions = [wire.function(f"f{i}", ["a"], ["b"], [local(f"f{i + 1}", "a", "b") if i < 9999 else wire.node("Relu", ["a"], ["b"])]) for i in range(10_000)]
    return simple([local("f0", "x", "y")], functions=functions)


# ---- hangs of other tools


@case("hang", "5,000 Unsqueezes", CLEAN, NOTHING)
def unsqueezes(folder):
    return simple([wire.node("Unsqueeze", [f"v{i}" if i else "x", "zero"], [f"v{i + 1}"]) for i in range(5000)], [wire.integers("zero", [0])], outputs=["v5000"])


@case("hang", "40,000 names of one hash, but for its seed", CLEAN, NOTHING)
def colliding_names(folder):
    # base/hash.h's mix of 8 bytes, run backwards from results that share their lower half.
    mask, factor = (1 << 64) - 1, pow(0xff51afd7ed558ccd, -1, 1 << 64)

    def name(i):
        high = i * 2654435761 & 0xffffffff
        mixed = (high << 32 | high ^ 0x1234) * factor & mask
        return (((mixed ^ 8) - 0x9e3779b97f4a7c15 - (8 << 6) - (8 >> 2)) & mask).to_bytes(8, "little")

    names = ["x", *(name(i) for i in range(1, 40000)), "y"]
    return wire.model(wire.graph([wire.node("Relu", [a], [b]) for a, b in itertools.pairwise(names)],
                                 [wire.value("x")], [wire.value("y")]))


@case("hang", "function calls that double, 2^64", CLEAN, NOTHING)
def doubling_calls(folder):
    functions = [wire.function("f0", ["a"], ["b"], [wire.node("Relu", ["a"], ["b"])])]
    functions += [wire.function(f"f{i}", ["a"], ["b"], [local(f"f{i - 1}", "a", "t"), local(f"f{i - 1}", "t", "b")]) for i in range(1, 65)]
    return simple([local("f64", "x", "y")], functions=functions)


@case("hang", "a FIFO as a model", UNREADABLE, "FIFO")
def fifo(folder):
    os.mkfifo(folder / "m.onnx")


@case("hang", "Einsum `....i`", FINDINGS, "equation of Einsum has")
def einsum(folder):
    return simple([wire.node("Einsum", ["x"], ["y"], equation="....i")])


@case("hang", "100,000 external tensors in one file", CLEAN, NOTHING)
def many_external(folder):
    (folder / "data").write_bytes(bytes(64))
    tensors = [wire.tensor(f"w{i}", FLOAT, [4], external={"location": "data", "offset": "16", "length": "16"}) for i in range(100_000)]
    sums = [wire.node("Sum", [f"w{i}" for i in range(k * 1000, k * 1000 + 1000)], [f"s{k}"]) for k in range(100)]
    return simple([*sums, wire.node("Sum", ["x"] + [f"s{k}" for k in range(100)], ["y"])], tensors)


# ---- memory of other tools


@case("memory", "16 MB of empty messages", UNREADABLE, "too many tiny messages")
def empty_messages(folder):
    return wire.model(wire.data(1, b"") * (8 << 20))


@case("memory", "dims that claim 2^40", FINDINGS, "takes 4398046511104 bytes, raw_data has 8")
def claims(folder):
    return simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, [1 << 40], bytes(8))])


@case("memory", "Concat chains that double", CLEAN, NOTHING)
def doubling_concats(folder):
    shapes = [node for i in range(200) for node in [wire.node("Concat", [f"s{i}", f"s{i}"], [f"s{i + 1}"], axis=0)]]
    return simple([wire.node("Shape", ["x"], ["s0"]), *shapes, wire.node("ReduceProd", ["s200"], ["y"])])


@case("memory", "Split with 2^40 outputs", FINDINGS, "`num_outputs` is 1099511627776")
def split(folder):
    return simple([wire.node("Split", ["x"], ["y", "z"], num_outputs=1 << 40)])


@case("memory", "a link to an endless device", UNREADABLE, "device")
def endless(folder):
    (folder / "m.onnx").symlink_to("/dev/zero")


# ---- by hand


@case("hand", "truncated", UNREADABLE, r"at byte \d+")
def truncated(folder):
    return relu(20)[:-30]


@case("hand", "0 bytes", UNREADABLE, "empty")
def nothing(folder):
    return b""


@case("hand", "a PNG", UNREADABLE, "PNG")
def png(folder):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100)


@case("hand", "a directory", UNREADABLE, "no .onnx")
def directory(folder):
    (folder / "m.onnx").mkdir()


@case("hand", "graphs 10,000 deep", UNREADABLE, "deeper")
def deep(folder):
    # Written from the outside in, since each level holds all that is within.
    lengths, inner = [], len(wire.graph([wire.node("Relu", ["x"], ["y"])]))
    head = wire.data(4, "If") + wire.data(2, "y")
    for _ in range(10_000):
        attribute = len(wire.data(1, "then_branch")) + len(wire.number(20, 5)) + len(wire.varint(inner)) + 1 + inner
        node = len(head) + 1 + len(wire.varint(attribute)) + attribute
        lengths.append((inner, attribute, node))
        inner = 1 + len(wire.varint(node)) + node
    out = wire.number(1, 8) + wire.data(8, wire.number(2, 18)) + wire.varint(7 << 3 | 2) + wire.varint(inner)
    parts = [b"\x0a" + wire.varint(node) + head + b"\x2a" + wire.varint(attribute) + wire.data(1, "then_branch") + wire.number(20, 5) + b"\x32" + wire.varint(graph)
             for graph, attribute, node in reversed(lengths)]
    return out + b"".join(parts) + wire.graph([wire.node("Relu", ["x"], ["y"])])


@case("hand", "2^60 elements", CLEAN, NOTHING)
def elements(folder):
    return simple([wire.node("ConstantOfShape", ["big"], ["y"])], [wire.integers("big", [1 << 30, 1 << 30])])


@case("hand", "escape codes in names", FINDINGS, "axis 9 outside")
def escapes(folder):
    evil = "\x1b]0;owned\x07\x1b[2J\u202etxt"
    return simple([wire.node("ReduceMean", ["x", "axes"], [evil], name=evil)], [wire.integers("axes", [9])], outputs=[evil])


@case("hand", "external data outside the folder", FINDINGS, "broken-external-data")
def climbs(folder):
    (folder.parent / "outside").write_bytes(bytes(64))
    return external(location="../outside")


@case("hand", "external data beyond the file", FINDINGS, "broken-external-data")
def beyond(folder):
    (folder / "data").write_bytes(bytes(64))
    return external(location="data", offset="60", length="16")


@case("hand", "a cycle of 10,000 nodes", FINDINGS, "cycle")
def cycle(folder):
    return simple([wire.node("Relu", [f"v{(i + 1) % 10_000}"], [f"v{i}"]) for i in range(10_000)], outputs=["v0"])


@case("hand", "functions that call each other", FINDINGS, "calls itself")
def recursion(folder):
    return simple([local("f0", "x", "y")], functions=[wire.function(f"f{i}", ["a"], ["b"], [local(f"f{1 - i}", "a", "b")]) for i in range(2)])


@case("hand", "Tile chains that double, 2^400 elements", CLEAN, NOTHING)
def tiles(folder):
    return simple([wire.node("Tile", [f"v{i}" if i else "x", "twos"], [f"v{i + 1}"]) for i in range(200)], [wire.integers("twos", [2, 2])], outputs=["v200"])


@case("large", "10 million nodes", CLEAN, NOTHING)
def ten_million(folder):
    count = 10_000_000
    relu_of = wire.data(1, wire.node("Relu", ["v00000000"], ["v00000000"])).replace(b"00000000", b"%08d")
    tail = wire.graph([], [wire.value("v00000000")], [wire.value(f"v{count:08}")])
    with open(folder / "m.onnx", "wb") as file:
        file.write(wire.number(1, 8) + wire.data(8, wire.number(2, 18)) + wire.varint(7 << 3 | 2) + wire.varint(count * len(relu_of % (0, 0)) + len(tail)))
        file.writelines(b"".join(relu_of % (i, i + 1) for i in range(first, first + 100_000)) for first in range(0, count, 100_000))
        file.write(tail)


def run(make):
    """Content's size and the result of a check of it."""
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "model"
        folder.mkdir()
        content = make(folder)
        path = folder / "m.onnx"
        if content is not None:
            path.write_bytes(content)
        size = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
        return size, hostile_test.run(["check", "--format", "json", "--timings", path])


class KnownCasesTest(unittest.TestCase):
    def test_all(self):
        for group, name, code, says, make in CASES:
            if group == "large":
                continue
            with self.subTest(group=group, name=name):
                size, result = run(make)
                context = f"{result.cpu:.2f} s, {size} bytes\n{result.errors[:500]!r}\n{result.output[:2000]!r}"
                self.assertEqual(result.code, code, context)
                self.assertLess(result.cpu, 1 + size / (1 << 20), context)
                entry = json.loads(result.output)["inputs"][0]
                self.assertLess(entry.get("peak_rss_bytes", 0), (64 << 20) + 40 * size, context)
                self.assertRegex(result.output.decode(), says)
                self.assertNotIn(b"\x1b", result.output)

    def test_count(self):
        counts = {group: sum(case[0] == group for case in CASES) for group in ("crash", "hang", "memory")}
        self.assertEqual(counts, {"crash": 4, "hang": 6, "memory": 5})


def table():
    print("| | | bytes | exit code | CPU ms | MiB | said |\n|---|---|---:|---:|---:|---:|---|")
    for group, name, _, _, make in CASES:
        size, result = run(make)
        document = json.loads(result.output)
        entry = document["inputs"][0]
        said = entry.get("error") or "; ".join(f"{finding['rule']}: {finding['message']}" for finding in document["findings"][:1]) or "nothing found"
        print(f"| {group} | {name} | {size:,} | {result.code} | {1e3 * result.cpu:.1f} | {entry['peak_rss_bytes'] / (1 << 20):.1f} | {said[:90]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        table()
    else:
        unittest.main()
