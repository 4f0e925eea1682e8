"""Files that break other tools: each gets a clear error or a verdict, in little time and memory.

The promises are those of SECURITY.md: no crash, exit code 2 with one message for what cannot be read, no more than 64 MiB
and 40 bytes for each byte of the file that is not weights, no more than a second of processor time for 64 KB.
TENSORLINT_LARGE=1 adds the ten million nodes.

Each case expects a text: the one that stands beside it, else exit code and rules as in hostile.expected.json, which a run
with TENSORLINT_UPDATE=1 rewrites.
"""
import contextlib
import json
import math
import os
import pathlib
import random
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest
import zlib
from typing import ClassVar

import wire
from wire import BOOL, FLOAT, INT64

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
LEAST, MOST = -(1 << 63), (1 << 63) - 1
CLEAN, FINDINGS, UNREADABLE = 0, 1, 2
VERDICT = (CLEAN, FINDINGS)
EXPECTED = pathlib.Path(__file__).with_name("hostile.expected.json")
UPDATE = "TENSORLINT_UPDATE" in os.environ
X = wire.value("x")


class Result:
    def __init__(self, code, cpu, output, errors, memory):
        self.code, self.cpu, self.output, self.errors, self.memory = code, cpu, output, errors, memory


# Neighbours on the same processor make single runs up to three times as long: of those that seem slow, the least of three counts.
SEEMS_SLOW, ATTEMPTS = 0.8, 3
WRITES_NOTHING = {"check", "contract", "show", "why"}
# Seconds are those of a machine that compresses this so often in so many seconds; slower ones get up to twice as long. It is short, since
# what this process holds counts as memory of those that it starts.
COMPRESSED, TIMES, COMPRESSED_IN, SLOWEST = bytes(random.Random(1).choices(b"abcdefgh ,()\n", k=1 << 16)), 16, 0.064, 2.0


def slowness():
    """Of this machine, now."""
    least = math.inf
    for _ in range(ATTEMPTS):
        start = time.process_time()
        for _ in range(TIMES):
            zlib.compress(COMPRESSED, 9)
        least = min(least, time.process_time() - start)
    return min(max(least / COMPRESSED_IN, 1.0), SLOWEST)


def run(arguments, seconds=60):
    """Runs tensorlint; processor time and the most memory, in bytes, are those of the process and what it started."""
    words = list(map(str, arguments))
    result = run_once(words, seconds)
    if words and (words[0] in WRITES_NOTHING or "--diff" in words or (words[0] == "run" and "--outputs" not in words)):
        for _ in range(ATTEMPTS - 1):
            if SEEMS_SLOW < result.cpu < seconds:
                result = min(result, run_once(words, seconds), key=lambda each: each.cpu)
    if result.cpu > SEEMS_SLOW / 2:
        result.cpu /= slowness()
    return result


def run_once(words, seconds):
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                   (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
        pid = os.posix_spawn(BINARY, [BINARY, *words], os.environ, file_actions=actions)
        timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
        timer.start()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        timer.join()
        _, status, usage = os.wait4(pid, 0)
        output.seek(0)
        errors.seek(0)
        return Result(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, output.read(), errors.read(), usage.ru_maxrss << 10)


def simple(nodes, initializers=(), inputs=(X,), outputs=("y",), **more):
    """A model whose outputs declare no type."""
    return wire.model(wire.graph(nodes, inputs, [wire.data(1, name) for name in outputs], initializers), **more)


class HostileTest(unittest.TestCase):
    expected: ClassVar[dict[str, dict[str, str]]] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    seen: ClassVar[dict[str, dict[str, str]]] = {}

    @classmethod
    def tearDownClass(cls):
        if UPDATE:
            EXPECTED.write_text(json.dumps({**cls.expected, **cls.seen}, indent=1, sort_keys=True) + "\n")

    @contextlib.contextmanager
    def subTest(self, msg="", **params):
        before, self.case = self.case, ", ".join(f"{name}={ascii(value)[:60]}" for name, value in params.items())
        with super().subTest(msg, **params):
            yield
        self.case = before

    def expect(self, found):
        """Exit code and rules of a check that has no text beside it, as they were: the n-th one of its subtest."""
        test = self.id().rsplit(".", 1)[-1]
        seen = self.seen.setdefault(test, {})
        number = sum(key.startswith(f"{self.case} #") for key in seen) + 1
        key = f"{self.case} #{number}"
        seen[key] = found
        if not UPDATE:
            self.assertEqual(found, self.expected.get(test, {}).get(key), f"{test}, {key}: run with TENSORLINT_UPDATE=1 and review the diff")

    def setUp(self):
        self.case = ""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, content, codes, says=None, weights=0, name="m.onnx"):
        """Writes and checks a file; the findings, or the error where the code is 2."""
        path = self.folder / name
        if content is not None:
            path.write_bytes(content)
        size = path.stat().st_size if path.is_file() else 0
        result = run(["check", "--format", "json", "--timings", path])
        context = f"exit code {result.code}, {result.cpu:.2f} s, {size} bytes\n{result.errors[:500]}\n{result.output[:2000]}"
        self.assertIn(result.code, codes if isinstance(codes, tuple) else (codes,), context)
        self.assertLess(result.cpu, 1 + size / (1 << 20), context)
        document = json.loads(result.output)
        # What wait4 says of a child's memory would include this process.
        self.assertLess(document["inputs"][0].get("peak_rss_bytes", 0), (64 << 20) + 40 * (size - weights), context)
        self.assertNotRegex(result.output.decode(), r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
        entry = document["inputs"][0]
        if result.code == UNREADABLE:
            self.assertEqual(entry["status"], "failed", context)
            self.assertTrue(entry["error"], context)
            if says is not None:
                self.assertRegex(entry["error"], says)
            return entry["error"]
        self.assertEqual(entry["status"], "checked", context)
        if says is not None:
            self.assertRegex(" | ".join(f"{finding['rule']}: {finding['message']}" for finding in document["findings"]), says)
        else:
            self.expect(f"exit code {result.code}: " + (", ".join(sorted({finding["rule"] for finding in document["findings"]})) or "no findings"))
        return document["findings"]

    # ---- what is no model

    def test_truncated(self):
        content = wire.model(wire.chain(20))
        for length in range(1, len(content) - 20, 7):  # the last twenty are fields that may be left out
            with self.subTest(length=length):
                self.check(content[:length], UNREADABLE, r"at byte \d+|no graph")

    def test_not_files_of_ours(self):
        cases = {
            "nothing": (b"", "is empty"),
            "png": (b"\x89PNG\r\n\x1a\n" + bytes(64), "PNG"),
            "text": (b"hello, world\n" * 10, "not an ONNX model"),
            "zeros": (bytes(4096), "not an ONNX model"),
            "noise": (random.Random(1).randbytes(65536), "not an ONNX model"),
            "tags": (b"\xff" * 65536, "not an ONNX model"),
            "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"),
        }
        for name, (content, says) in cases.items():
            with self.subTest(name=name):
                self.check(content, UNREADABLE, says)

    def test_not_files(self):
        os.mkfifo(self.folder / "fifo.onnx")
        (self.folder / "zero.onnx").symlink_to("/dev/zero")
        (self.folder / "loop.onnx").symlink_to("loop.onnx")
        (self.folder / "gone.onnx").symlink_to("nowhere")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "socket.onnx"))
            for name, says in {"fifo": "a FIFO", "zero": "a device", "loop": "symbolic links", "gone": "No such file", "socket": "cannot open"}.items():
                with self.subTest(name=name):
                    self.check(None, UNREADABLE, says, name=f"{name}.onnx")
        (self.folder / "folder.onnx").mkdir()
        self.check(None, UNREADABLE, "no .onnx", name="folder.onnx")

    def test_the_whole_file_must_be_read(self):
        good = wire.model(wire.chain(3))
        for name, tail in {"zero tag": b"\0\0", "field number above 2^29": wire.varint(1 << 33 | 2) + b"\0", "end of a group": wire.varint(99 << 3 | 4),
                           "text": b"trailing"}.items():
            with self.subTest(name=name):
                self.check(good + tail, UNREADABLE, r"at byte \d+")

    # ---- nesting

    def test_deep_nesting(self):
        graph = wire.graph([wire.node("Relu", ["x"], ["y"])])
        for _ in range(2500):  # each level costs its own length: 10,000 levels of four bytes would not be shorter
            graph = wire.data(1, wire.data(5, wire.attribute("then_branch", ("g", graph))))
        self.check(wire.model(graph), UNREADABLE, "deeper")
        self.check(wire.number(1, 8) + wire.varint(99 << 3 | 3) * 10_000, UNREADABLE, "deeper|at byte")
        inner = wire.data(1, wire.number(1, FLOAT))
        for _ in range(10_000):
            inner = wire.data(4, wire.data(1, inner))
        self.check(wire.model(wire.graph([], [wire.data(1, "x") + wire.data(2, inner)])), UNREADABLE, "deeper")
        text = "m (bool c) => () { y = If (c) <then_branch = " + "a () => (y) { y = If (c) <then_branch = " * 10_000
        self.check(text.encode(), UNREADABLE, "deep", name="m.onnxtxt")
        self.check(("m (" + "seq(" * 10_000).encode(), UNREADABLE, "deep", name="m.onnxtxt")

    def test_chains_of_calls(self):
        for calls in (100, 10_000):
            functions = [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{i + 1}", ["a"], ["b"], domain="local") if i + 1 < calls else
                                                               wire.node("Relu", ["a"], ["b"])]) for i in range(calls)]
            with self.subTest(calls=calls):
                self.check(simple([wire.node("f0", ["x"], ["y"], domain="local")], functions=functions), VERDICT)

    def test_doubling_calls(self):
        for depth in (16, 64, 1000):
            functions = [wire.function("f0", ["a"], ["b"], [wire.node("Relu", ["a"], ["b"])])]
            functions += [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{i - 1}", ["a"], ["t"], domain="local"),
                                                                 wire.node(f"f{i - 1}", ["t"], ["b"], domain="local")]) for i in range(1, depth)]
            with self.subTest(depth=depth):
                self.check(simple([wire.node(f"f{depth - 1}", ["x"], ["y"], domain="local")], functions=functions), VERDICT)

    def test_doubling_calls_with_other_ranges(self):
        """tanh(tanh(...)) has another range after each call: 2^64 calls, and still the result is known."""
        functions = [wire.function("f0", ["a"], ["b"], [wire.node("Tanh", ["a"], ["b"])])]
        functions += [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{i - 1}", ["a"], ["t"], domain="local"),
                                                             wire.node(f"f{i - 1}", ["t"], ["b"], domain="local")]) for i in range(1, 64)]
        self.check(simple([wire.node("f63", ["x"], ["y"], domain="local")], functions=functions), CLEAN)
        shown = json.loads(run(["show", "--format", "json", self.folder / "m.onnx"]).output)["values"]["y"]
        self.assertEqual((shown["dtype"], shown["shape"]), (["float32"], ["N", 4]))

    def test_doubling_calls_that_never_agree(self):
        """Each call has another shape, so that no summary fits twice."""
        functions = [wire.function("f0", ["a"], ["b"], [wire.node("Concat", ["a", "a"], ["b"], axis=0)])]
        functions += [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{i - 1}", ["a"], ["t"], domain="local"),
                                                             wire.node(f"f{i - 1}", ["t"], ["b"], domain="local")]) for i in range(1, 40)]
        self.check(simple([wire.node("f39", ["x"], ["y"], domain="local")], functions=functions), VERDICT)

    def test_recursion_and_cycles(self):
        one = [wire.function("f", ["a"], ["b"], [wire.node("f", ["a"], ["b"], domain="local")])]
        self.check(simple([wire.node("f", ["x"], ["y"], domain="local")], functions=one), VERDICT)
        ring = [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{(i + 1) % 500}", ["a"], ["b"], domain="local")]) for i in range(500)]
        self.check(simple([wire.node("f7", ["x"], ["y"], domain="local")], functions=ring), VERDICT)
        self.check(simple([wire.node("Add", ["x", "b"], ["a"]), wire.node("Relu", ["a"], ["b"]), wire.node("Relu", ["b"], ["y"])]), FINDINGS, "cycle")
        circle = [wire.node("Relu", [f"v{(i + 1) % 10_000}"], [f"v{i}"]) for i in range(10_000)]
        self.check(simple(circle, outputs=["v0"]), FINDINGS, "cycle")
        behind = [wire.node("Add", [f"v{i + 1}", "v9"], [f"v{i}"]) for i in range(20)] + [wire.node("Relu", ["v0"], ["v20"])]
        behind += [wire.node("Add", [f"w{i + 1}", "v0"], [f"w{i}"]) for i in range(10_000)] + [wire.node("Relu", ["v0"], ["w10000"])]
        self.check(simple(behind, outputs=["w0"]), FINDINGS, "cycle")
        tangle = [wire.node("Sum", [f"v{(i * k + 1) % 5000}" for k in range(1, 6)], [f"v{i}"]) for i in range(5000)]
        self.check(simple(tangle, outputs=["v0"]), FINDINGS, "cycle")
        backwards = [wire.node("Relu", [f"v{i + 1}" if i < 9_999 else "x"], [f"v{i}"]) for i in range(10_000)]
        self.check(simple(backwards, outputs=["v0"]), FINDINGS, "use-before-definition")

    def test_nested_loops(self):
        """Fourteen loops of sixteen iterations in one another: 2^56 visits of the innermost body."""
        initializers = [wire.integers("trip", [16], scalar=True), wire.tensor("go", BOOL, [], b"\1")]
        body = None
        for depth in reversed(range(14)):
            p = f"l{depth}"
            inner = wire.node("Concat", [f"{p}s", f"{p}s"], [f"{p}o"], axis=0) if body is None else \
                wire.node("Loop", ["trip", "go", f"{p}s"], [f"{p}o"], body=("g", body))
            body = wire.graph([wire.node("Identity", [f"{p}c"], [f"{p}d"]), inner],
                              [wire.value(f"{p}i", INT64, []), wire.value(f"{p}c", BOOL, []), wire.data(1, f"{p}s")],
                              [wire.value(f"{p}d", BOOL, []), wire.data(1, f"{p}o")], name=p)
        self.check(simple([wire.node("Loop", ["trip", "go", "x"], ["y"], body=("g", body))], initializers), VERDICT)

    def test_exclusive_conditions_around_a_loop(self):
        """The device of what a loop carries: conditions decide it by their parity, each iteration anew. 64: 2^64 ways through 128 choices; 1,000: a full store."""
        def transfer(source, target, device):
            return wire.node("Transfer", [source], [target], domain="tensorlint", device=device)

        def branches(condition, value, result, p):
            return wire.node("If", [condition], [result], then_branch=("g", wire.graph([transfer(value, f"{p}a", f"{p}:0")], [], [wire.data(1, f"{p}a")])),
                             else_branch=("g", wire.graph([wire.node("Identity", [value], [f"{p}b"])], [], [wire.data(1, f"{p}b")])))
        for count in (64, 1000):
            body = wire.graph([wire.node("Identity", ["go"], ["on"]), transfer("s", "h", "cpu"), wire.node("Greater", ["h", "zero"], ["q"]), branches("q", "s", "o", "xpu")],
                              [wire.value("i", INT64, []), wire.value("go", BOOL, []), wire.value("s", FLOAT, [1])], [wire.data(1, "on"), wire.data(1, "o")])
            nodes = [wire.node("Xor", [f"c{i}", f"p{i}"], [f"p{i + 1}"]) for i in range(count)]
            nodes += [branches(f"p{count}", "x", "start", "cuda"), wire.node("Loop", ["n", "", "start"], ["y"], body=("g", body))]
            inputs = [wire.value("x", FLOAT, [1]), wire.value("n", INT64, []), *(wire.value(name, BOOL, []) for name in ("p0", *(f"c{i}" for i in range(count))))]
            self.check(simple(nodes, [wire.tensor("zero", FLOAT, [], b"\0" * 4)], inputs, opsets=(("", 18), ("tensorlint", 1))), VERDICT, "device")

    def test_nested_loops_that_repeat(self):
        """Two iterations each, captured values with other ranges: 2^24 visits at least, and still all is known."""
        for trips in (2, None):
            initializers = [wire.integers("trip", [2], scalar=True), wire.tensor("go", BOOL, [], b"\1")]
            body = None
            for depth in reversed(range(24)):
                p, around = f"l{depth}", f"l{depth - 1}s" if depth else "x"
                inner = wire.node("Tanh", [f"{p}m"], [f"{p}o"]) if body is None else \
                    wire.node("Loop", ["trip" if trips else "", "go" if trips else f"{p}c", f"{p}m"], [f"{p}o"], body=("g", body))
                body = wire.graph([wire.node("Identity", [f"{p}c"], [f"{p}d"]), wire.node("Add", [f"{p}s", around], [f"{p}m"]), inner],
                                  [wire.value(f"{p}i", INT64, []), wire.value(f"{p}c", BOOL, []), wire.data(1, f"{p}s")],
                                  [wire.value(f"{p}d", BOOL, []), wire.data(1, f"{p}o")], name=p)
            with self.subTest(trips=trips):
                self.check(simple([wire.node("Loop", ["trip" if trips else "", "go", "x"], ["y"], body=("g", body))], initializers), CLEAN)
                graphs = json.loads(run(["show", "--format", "json", self.folder / "m.onnx"]).output)["graphs"]
                self.assertEqual(len(graphs), 24)
                for graph in graphs:
                    for name, shown in graph["values"].items():
                        if name.endswith(("s", "m", "o")):
                            self.assertEqual((shown["dtype"], shown["shape"]), (["float32"], ["N", 4]), (graph["graph"], name))

    def test_nested_loops_that_capture_much(self):
        """What a visit was given is kept, but not when that is more than the file."""
        count, body = 20_000, None
        initializers = [wire.integers("trip", [3], scalar=True), wire.tensor("go", BOOL, [], b"\1")]
        for depth in reversed(range(40)):
            p = f"l{depth}"
            inner = wire.node("Sum", [f"v{i}" for i in range(count)], [f"{p}o"]) if body is None else \
                wire.node("Loop", ["trip", "go", f"{p}s"], [f"{p}o"], body=("g", body))
            body = wire.graph([wire.node("Identity", [f"{p}c"], [f"{p}d"]), inner],
                              [wire.value(f"{p}i", INT64, []), wire.value(f"{p}c", BOOL, []), wire.data(1, f"{p}s")],
                              [wire.value(f"{p}d", BOOL, []), wire.data(1, f"{p}o")], name=p)
        nodes = [wire.node("Identity", ["x"], [f"v{i}"]) for i in range(count)]
        self.check(simple([*nodes, wire.node("Loop", ["trip", "go", "x"], ["y"], body=("g", body))], initializers), CLEAN)

    def nested(self, init, nodes, extra=(), depth=5):
        """Loops of sixteen iterations in one another; `nodes(s, o)` are those of the innermost, from what it is handed to what it hands on."""
        initializers = [wire.integers("trip", [16], scalar=True), wire.tensor("go", BOOL, [], b"\1"), wire.integers("one", [1]), wire.integers("zero", [0]), *extra]
        body = None
        for level in reversed(range(depth)):
            p = f"l{level}"
            inner = nodes(f"{p}s", f"{p}o") if body is None else [wire.node("Loop", ["trip", "go", f"{p}s"], [f"{p}o"], body=("g", body))]
            body = wire.graph([wire.node("Identity", [f"{p}c"], [f"{p}d"]), *inner], [wire.value(f"{p}i", INT64, []), wire.value(f"{p}c", BOOL, []), wire.data(1, f"{p}s")],
                              [wire.value(f"{p}d", BOOL, []), wire.data(1, f"{p}o")], name=p)
        return simple([wire.node("Loop", ["trip", "go", init], ["y"], body=("g", body))], initializers)

    def test_costly_bodies(self):
        """A million visits, each of which computes something new and large."""
        big = wire.integers("big", list(range(1000)))
        many = wire.tensor("", INT64, [6000], struct.pack("<6000q", *range(6000)))
        grow = lambda s, o: wire.node("Concat", [s, "x"], [o], axis=0)
        step = lambda s, o: wire.node("Add", [s, "one"], [o])
        cases = {
            "contents": self.nested("big", lambda s, o: [step(s, o)], [big]),
            "shapes": self.nested("big", lambda s, o: [wire.node("Reshape", ["x", s], ["q"]), step(s, o)], [big]),
            "dims": self.nested("x", lambda s, o: [grow(s, o)]),
            "deeper": self.nested("x", lambda s, o: [grow(s, o)], depth=40),
            "numbers": self.nested("zero", lambda s, o: [step(s, o), wire.node("ConstantOfShape", [o], ["q"])]),
            "symbols": self.nested("x", lambda s, o: [wire.node("NonZero", ["x"], ["q"]), grow(s, o)]),
            "operands": self.nested("x", lambda s, o: [wire.node("Sum", [s] * 6000, ["q"]), grow(s, o)]),
            "long results": self.nested("zero", lambda s, o: [wire.node("Concat", [s] * 5000, ["q"], axis=0), step(s, o)]),
            "results": self.nested("x", lambda s, o: [wire.node("Split", [s], [f"q{i}" for i in range(3000)], axis=0, num_outputs=3000), grow(s, o)]),
            "constants": self.nested("zero", lambda s, o: [wire.node("Constant", [], ["q"], value=("t", many)), step(s, o)]),
            "lists": self.nested("zero", lambda s, o: [wire.node("Constant", [], ["q"], value_ints=list(range(20_000))), step(s, o)]),
            "strings": self.nested("zero", lambda s, o: [wire.node("Constant", [], ["q"], value_string="a" * 50_000), step(s, o)]),
            "sequences in one another": self.nested("x", lambda s, o: [wire.node("SequenceConstruct", [s], [o])]),
            "optionals in one another": self.nested("x", lambda s, o: [wire.node("Optional", [s], [o])]),
        }
        random_numbers = random.Random(1)
        irregular = wire.integers("v0", [random_numbers.randrange(1 << 40) for _ in range(1000)])
        chain = [wire.node("Add", [f"v{i}", "k"], [f"v{i + 1}"]) for i in range(1500)]
        cases["contents of the main graph"] = simple(chain, [irregular, wire.integers("k", [12345677])], outputs=["v1500"])
        functions = [wire.function("f0", ["a"], ["b"], [wire.node("Constant", [], ["o"], value=("t", wire.integers("", [1]))), wire.node("Add", ["a", "o"], ["b"])])]
        functions += [wire.function(f"f{i}", ["a"], ["b"], [wire.node(f"f{i - 1}", ["a"], ["t"], domain="local"),
                                                             wire.node(f"f{i - 1}", ["t"], ["b"], domain="local")]) for i in range(1, 40)]
        cases["contents of functions"] = simple([wire.node("f39", ["big"], ["y"], domain="local")], [big], functions=functions)
        for name, content in cases.items():
            with self.subTest(name=name):
                self.check(content, VERDICT)
                result = run(["check", "--placement", "runtime", self.folder / "m.onnx"])
                self.assertIn(result.code, VERDICT)
                self.assertLess(result.cpu, 2)

    # ---- numbers

    def test_arithmetic_at_its_ends(self):
        ends = [LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST]
        for a in ends:
            for b in ends:
                constants = [wire.integers("a", [a]), wire.integers("b", [b]), wire.integers("one", [1]), wire.integers("zero", [0])]
                nodes = [wire.node(op, ["a", "b"], [f"{op}_r"]) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Pow")]
                nodes += [wire.node("Neg", ["a"], ["n"]), wire.node("Abs", ["a"], ["m"]),
                          wire.node("Slice", ["x", "a", "b", "zero", "b"], ["s"]), wire.node("Slice", ["x", "zero", "a", "one", "b"], ["s2"]),
                          wire.node("Slice", ["a", "zero", "b", "zero", "a"], ["s3"]), wire.node("Gather", ["x", "a"], ["g"]),
                          wire.node("Range", ["a", "b", "one"], ["r"]), wire.node("Tile", ["x", "ab"], ["t"]), wire.node("Concat", ["a", "b"], ["ab"], axis=0),
                          wire.node("Expand", ["x", "ab"], ["e"]), wire.node("Reshape", ["x", "ab"], ["rs"]), wire.node("ConstantOfShape", ["ab"], ["c"]),
                          wire.node("SplitToSequence", ["x", "a"], ["q"]), wire.node("Split", ["x", "ab"], ["p1", "p2"]),
                          wire.node("Unsqueeze", ["x", "a"], ["u"]), wire.node("Squeeze", ["x", "a"], ["w"]), wire.node("Trilu", ["x", "a"], ["tr"]),
                          wire.node("TopK", ["x", "a"], ["k1", "k2"]), wire.node("OneHot", ["a", "b", "ab"], ["h"]),
                          wire.node("Softmax", ["x"], ["sm"], axis=a), wire.node("Flatten", ["x"], ["fl"], axis=a),
                          wire.node("Gather", ["x", "zero"], ["g2"], axis=b), wire.node("Transpose", ["x"], ["tp"], perm=[a, b]),
                          wire.node("Split", ["x"], ["o1", "o2"], num_outputs=a), wire.node("DepthToSpace", ["x4"], ["d"], blocksize=a),
                          wire.node("SpaceToDepth", ["x4"], ["d2"], blocksize=b), wire.node("EyeLike", ["x"], ["ey"], k=a),
                          wire.node("Conv", ["x4", "x4"], ["cv"], pads=[a, b, a, b], strides=[b, a], dilations=[a, a], kernel_shape=[b, b], group=a),
                          wire.node("MaxPool", ["x4"], ["mp"], pads=[a, b, a, b], strides=[b, a], dilations=[b, a], kernel_shape=[a, b], ceil_mode=1),
                          wire.node("Pad", ["x", "abab"], ["pd"]), wire.node("Concat", ["ab", "ab"], ["abab"], axis=0),
                          wire.node("Cast", ["a"], ["cf"], to=FLOAT), wire.node("Cast", ["cf"], ["ci"], to=INT64), wire.node("ReduceSum", ["x", "ab"], ["rd"])]
                with self.subTest(a=a, b=b):
                    self.check(simple(nodes, constants, [X, wire.value("x4", FLOAT, ["N", 4, 8, 8])], ["s"]), VERDICT)

    def test_floats_that_are_no_numbers(self):
        for value in (float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 5e-324):
            scales = wire.tensor("scales", FLOAT, [4], struct.pack("<4f", 1, 1, value, value))
            one = wire.tensor("f", FLOAT, [], struct.pack("<f", value))
            nodes = [wire.node("Resize", ["x4", "", "scales"], ["y"]), wire.node("Cast", ["scales"], ["i"], to=INT64), wire.node("ConstantOfShape", ["i"], ["c"]),
                     wire.node("Range", ["f", "f", "f"], ["r"]), wire.node("Upsample", ["x4", "scales"], ["u"])]
            with self.subTest(value=value):
                self.check(simple(nodes, [scales, one], [wire.value("x4", FLOAT, ["N", 4, 8, 8])]), VERDICT)

    def test_dims_that_claim_much(self):
        claims = {"2^40": [1 << 40], "2^60": [1 << 60], "wraps to zero": [1 << 32, 1 << 32], "negative": [-1, -2], "least": [LEAST], "10,000 dims": [2] * 10_000}
        for name, dims in claims.items():
            for raw in (b"", bytes(8)):
                with self.subTest(name=name, raw=len(raw)):
                    self.check(simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, dims, raw)]), FINDINGS)
            with self.subTest(name=name, where="input"):
                self.check(simple([wire.node("Mul", ["x", "x"], ["y"]), wire.node("Shape", ["x"], ["s"]), wire.node("ReduceProd", ["s"], ["p"]),
                                   wire.node("Flatten", ["x"], ["f"])], inputs=[wire.value("x", FLOAT, dims)]), VERDICT)

    def test_nothing_is_made_because_a_graph_says_so(self):
        big = wire.integers("big", [1 << 40])
        cases = {
            "ConstantOfShape": [wire.node("ConstantOfShape", ["big"], ["y"])],
            "Expand": [wire.node("Expand", ["x", "big"], ["y"])],
            "Range": [wire.node("Squeeze", ["big"], ["n"]), wire.node("Range", ["zero", "n", "one"], ["y"])],
            "Split": [wire.node("Split", ["x"], ["y", "z"], num_outputs=1 << 40)],
            "OneHot": [wire.node("OneHot", ["i", "big", "v"], ["y"])],
            "Pad": [wire.node("Concat", ["big", "big", "big", "big"], ["p"], axis=0), wire.node("Pad", ["x", "p"], ["y"])],
            "sequence": [wire.node("SplitToSequence", ["x", "one1"], ["y"])],
            "random": [wire.node("RandomNormal", [], ["y"], shape=[1 << 40, 1 << 40])],
            "eye": [wire.node("EyeLike", ["x"], ["y"], k=1 << 40)],
        }
        more = [big, wire.integers("zero", [0], True), wire.integers("one", [1], True), wire.integers("one1", [1]), wire.integers("i", [1, 2]),
                wire.tensor("v", FLOAT, [2], bytes(8))]
        for name, nodes in cases.items():
            with self.subTest(name=name):
                self.check(simple(nodes, more), VERDICT)

    def doubling(self, step, count=200):
        return [node for i in range(count) for node in step(f"v{i}" if i else "x", f"v{i + 1}", i)]

    def test_doubling_chains(self):
        chains = {
            "Tile": lambda a, b, i: [wire.node("Tile", [a, "twos"], [b])],
            "Concat": lambda a, b, i: [wire.node("Concat", [a, a], [b], axis=0)],
            "Expand": lambda a, b, i: [wire.node("Unsqueeze", [a, "ax"], [f"u{i}"]), wire.node("Expand", [f"u{i}", "pair"], [b])],
            "content": lambda a, b, i: [wire.node("Shape", [a], [f"s{i}"]), wire.node("Mul", [f"s{i}", f"s{i}"], [f"t{i}"]), wire.node("ConstantOfShape", [f"t{i}"], [b])],
            "products": lambda a, b, i: [wire.node("Shape", [a], [f"s{i}"]), wire.node("Add", [f"s{i}", "twos"], [f"p{i}"]), wire.node("Mul", [f"p{i}", f"s{i}"], [f"q{i}"]),
                                         wire.node("Expand", ["f", f"q{i}"], [b])],
            "sums": lambda a, b, i: [wire.node("Shape", [a], [f"s{i}"]), wire.node("Concat", [f"s{i}", f"s{i}"], [f"c{i}"], axis=0), wire.node("ConstantOfShape", [f"c{i}"], [b])],
            "Unsqueeze": lambda a, b, i: [wire.node("Unsqueeze", [a, "ax"], [b])],
            "sequences": lambda a, b, i: [wire.node("SequenceConstruct", [a, a], [b])],
            "reshape": lambda a, b, i: [wire.node("Shape", [a], [f"s{i}"]), wire.node("Concat", ["ones", f"s{i}"], [f"c{i}"], axis=0), wire.node("Reshape", [a, f"c{i}"], [b])],
        }
        constants = [wire.integers("twos", [2, 2]), wire.integers("ax", [0]), wire.integers("pair", [2, 1, 1]), wire.integers("ones", [1, 1]),
                     wire.tensor("f", FLOAT, [], bytes(4))]
        for name, step in chains.items():
            for count in (80, 5000 if name == "Unsqueeze" else 400):
                with self.subTest(name=name, count=count):
                    self.check(simple(self.doubling(step, count), constants, [wire.value("x", FLOAT, ["N", "M"])], [f"v{count}"]), VERDICT)

    def test_extents_in_extents(self):
        """Sixteen quotients in one another, each with the last one twenty times in it: 20^16 places for one symbol."""
        nodes, last = [wire.node("Shape", ["x"], ["q0"])], "q0"
        for i in range(16):
            nodes += [wire.node("Mul", [last, last], [f"a{i}"]), wire.node("Mul", [f"a{i}", last], [f"b{i}"]), wire.node("Add", [f"a{i}", f"b{i}"], [f"c{i}"]),
                      wire.node("Add", [f"c{i}", last], [f"d{i}"]), wire.node("Add", [f"a{i}", "three"], [f"e{i}"]), wire.node("Div", [f"d{i}", f"e{i}"], [f"q{i + 1}"])]
            last = f"q{i + 1}"
        nodes += [wire.node("ConstantOfShape", [last], ["s"]), wire.node("Identity", ["s"], ["y"])]
        model = simple(nodes, [wire.integers("three", [3])], [wire.value("x", FLOAT, ["N"])])
        self.check(model, VERDICT)
        for options in ([], ["--format", "json", "--all-symbols"]):
            result = run(["show", *options, self.folder / "m.onnx"])
            self.assertEqual(result.code, CLEAN, result.errors[:500])
            self.assertLess(result.cpu, 1)

    def test_equations(self):
        for equation in ("....i", "...i,...i->...", "i" * 60_000, ",".join("i" * 20_000), "->", "...->...", ",,,,->", "i->" + "i" * 50_000, "\u202e\u0000i->i", "i" * 50 + "..." * 50):
            with self.subTest(equation=equation[:20]):
                self.check(simple([wire.node("Einsum", ["x"], ["y"], equation=equation)]), VERDICT)

    # ---- many of something

    def test_floods(self):
        """Sixteen megabytes of empty messages: two gigabytes for a parser that makes an object of each."""
        many = 4 << 20
        floods = {"nodes": wire.data(1, b"") * many, "initializers": wire.data(5, b"") * many, "inputs": wire.data(11, b"") * many}
        for name, fields in floods.items():
            with self.subTest(name=name):
                self.check(wire.model(fields), UNREADABLE, "too many tiny messages")
        self.check(wire.model(wire.data(1, wire.node("Relu", ["x"], ["y"]) + wire.data(5, b"") * many)), UNREADABLE, "too many tiny messages")
        self.check(wire.model(wire.graph([]), functions=[b""] * 1_000_000), UNREADABLE, "too many tiny messages")

    def test_many_names(self):
        self.check(simple([wire.node("Concat", ["x"] * 100_000, ["y"], axis=0)]), VERDICT)
        self.check(simple([wire.node("Split", ["x"], [f"y{i}" for i in range(50_000)], axis=0, num_outputs=50_000)]), VERDICT)
        self.check(simple([wire.node("Relu", ["x"], ["y"])] * 20_000), FINDINGS, "duplicate-definition")
        self.check(simple([wire.node("NoSuchOperator", ["x"], [f"v{i}"]) for i in range(20_000)]), FINDINGS, "unknown-operator")
        self.check(simple([wire.node("Relu", [f"u{i}"], [f"v{i}"]) for i in range(20_000)]), FINDINGS)
        self.check(simple([wire.node("Relu", ["x"], ["y"])], opsets=[(f"d{i}", i) for i in range(100_000)]), UNREADABLE, "opset imports")
        shape = wire.data(1, wire.data(2, "N" * 60_000))
        self.check(simple([wire.node("Relu", ["x"], ["y"])], inputs=[wire.data(1, "x") + wire.data(2, wire.data(1, wire.number(1, 1) + wire.data(2, shape * 50)))]), VERDICT)

    def test_many_symbols(self):
        """A product and a sum of thousands of different dims."""
        count = 2000
        inputs = [wire.value(f"x{i}", FLOAT, [f"N{i}"]) for i in range(count)]
        self.check(simple([wire.node("Concat", [f"x{i}" for i in range(count)], ["y"], axis=0), wire.node("Reshape", ["y", "two"], ["z"])],
                          [wire.integers("two", [2, -1])], inputs), VERDICT)
        nodes = [wire.node("Unsqueeze", [f"x{i}", "ax"], [f"u{i}"]) for i in range(count)]
        nodes += [wire.node("MatMul", [f"x{i}", f"x{i + 1}"], [f"m{i}"]) for i in range(count - 1)]
        self.check(simple(nodes, [wire.integers("ax", [0])], inputs, ["u0"]), VERDICT)
        self.check(simple([wire.node("Flatten", ["x"], ["y"], axis=0)], inputs=[wire.value("x", FLOAT, [f"N{i}" for i in range(5000)])]), VERDICT)

    def test_ten_million_nodes(self):
        count = 10_000_000 if os.environ.get("TENSORLINT_LARGE") else 200_000
        path = self.folder / "m.onnx"
        node = lambda i: wire.data(1, wire.node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]))
        size = sum(len(node(start)) * (min(10 ** digits, count) - start) for digits in range(1, 9) for start in [10 ** (digits - 1) if digits > 1 else 1] if start < count)
        with open(path, "wb") as file:
            chunks = [b"".join(node(i) for i in range(start, min(start + 100_000, count))) for start in range(0, count, 100_000)] if count <= 200_000 else None
            if chunks is not None:
                body = b"".join(chunks)
                file.write(wire.number(1, 8) + wire.data(7, body) + wire.data(8, wire.number(2, 18)))
            else:
                del size
                start = file.tell()
                file.write(wire.number(1, 8) + wire.data(8, wire.number(2, 18)) + wire.varint(7 << 3 | 2) + b"\xff\xff\xff\xff\x0f")
                begin = file.tell()
                file.writelines(b"".join(node(i) for i in range(first, first + 100_000)) for first in range(0, count, 100_000))
                length = file.tell() - begin
                file.seek(begin - 5)
                file.write(bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14 & 0x7F | 0x80, length >> 21 & 0x7F | 0x80, length >> 28]))
                del start
        self.check(None, VERDICT)

    # ---- external data

    def test_external_data(self):
        (self.folder / "data").write_bytes(bytes(64))
        outside = self.folder / "outside"
        outside.write_bytes(bytes(64))
        inside = self.folder / "model"
        inside.mkdir()
        (inside / "data").write_bytes(bytes(64))
        (inside / "link").symlink_to("/dev/zero")
        (inside / "away").symlink_to("../outside")
        os.mkfifo(inside / "fifo")
        bad = [{"location": "../outside"}, {"location": "/etc/passwd"}, {"location": "a/../../outside"}, {"location": "link"}, {"location": "away"},
               {"location": "fifo"}, {"location": "."}, {"location": ""}, {}, {"location": "none"}, {"location": "data\0/../data"}, {"location": "data/"},
               {"location": "data", "offset": "60"}, {"location": "data", "offset": "-4"}, {"location": "data", "offset": "99999999999999999999"},
               {"location": "data", "offset": str(MOST), "length": "16"}, {"location": "data", "length": "1"}, {"location": "data", "length": "-1"},
               {"location": "data", "length": str(1 << 60)}, {"location": "data", "offset": "1e1"}, {"location": "data", "offset": " 4"},
               {"location": "x" * 50_000}, {"location": "\x1b[2J"}]
        for external in bad:
            with self.subTest(external={key: value[:40] for key, value in external.items()}):
                self.check(simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, [4], external=external)]), FINDINGS, name="model/m.onnx")
        self.check(simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, [1 << 40], external={"location": "data"})]), FINDINGS, name="model/m.onnx")
        good = simple([wire.node("Add", ["x", "w"], ["y"])], [wire.tensor("w", FLOAT, [4], external={"location": "data", "offset": "16", "length": "16"})])
        self.check(good, CLEAN, name="model/m.onnx")

    def test_very_many_external_tensors(self):
        (self.folder / "data").write_bytes(bytes(64))
        count = 100_000
        tensors = [wire.tensor(f"w{i}", FLOAT, [4], external={"location": "data", "offset": "16", "length": "16"}) for i in range(count)]
        self.check(simple([wire.node("Sum", ["x"] + [f"w{i}" for i in range(count)], ["y"])], tensors), VERDICT)

    # ---- what is shown

    def test_names_that_talk_to_a_terminal(self):
        evil = "\x1b]0;owned\x07\x1b[2J\r\n\x9b31m\u202etxt.exe\u2066\x7f\0<script>alert(1)</script>" + "A" * 5000
        raw = b"\xff\xfe\xc0\x80\xed\xa0\x80" + evil.encode()
        node = wire.node("ReduceMean", [raw, "axes"], [raw + b"2"], name=raw.decode(errors="surrogateescape").encode(errors="surrogateescape"))
        trace = wire.data(9, wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, b'File "' + raw + b'", line 7, in f\n    ' + raw))
        content = simple([node + trace, wire.node(raw, ["x"], ["y"], domain=raw)], [wire.integers("axes", [9])], [wire.value(raw)])
        self.check(content, FINDINGS, "reduction-axis-out-of-range")
        for arguments in (["check"], ["show"], ["fix", "--diff"], ["why"]):
            extra = ["y"] if arguments == ["why"] else []
            result = run([*arguments, self.folder / "m.onnx", *extra])
            self.assertNotRegex((result.output + result.errors).decode(), r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", arguments)
            self.assertIn(result.code, (0, 1, 2), arguments)
        path = self.folder / "\x1b[2J\x9b.onnx"
        path.write_bytes(b"nothing")
        result = run(["check", path])
        self.assertEqual(result.code, UNREADABLE)
        self.assertNotRegex((result.output + result.errors).decode(), r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_traces_do_not_open_what_they_name(self):
        os.mkfifo(self.folder / "pipe.py")
        for target in (self.folder / "pipe.py", "/dev/zero", "/proc/self/mem", "/dev/tty"):
            trace = wire.data(9, wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, f'File "{target}", line 1, in f\n    x'))
            node = wire.node("ReduceMean", ["x", "axes"], ["y"]) + trace
            with self.subTest(target=str(target)):
                self.check(simple([node], [wire.integers("axes", [9])]), FINDINGS, "reduction-axis-out-of-range: axis 9 outside")
                self.assertEqual(run(["check", self.folder / "m.onnx"]).code, FINDINGS)

    # ---- any byte

    def test_a_changed_byte_is_never_an_internal_error(self):
        """Seeded: the same changes in every run. A folder at a time, so that many fit into a second."""
        randomly = random.Random(20240601)
        seeds = [wire.model(wire.chain(5)), wire.model(wire.graph([wire.node("If", ["c"], ["y"], then_branch=("g", wire.chain(2)), else_branch=("g", wire.chain(3)))],
                                                                  [X, wire.value("c", BOOL, [])], [wire.value("y")])),
                 simple([wire.node("Reshape", ["x", "s"], ["r"]), wire.node("ReduceMean", ["r", "a"], ["y"])], [wire.integers("s", [-1, 2]), wire.integers("a", [1])])]
        seeds += [path.read_bytes() for path in sorted((ROOT / "samples").glob("regression_*.onnx"))]
        for seed in seeds:
            for number in range(300):
                content = bytearray(seed)
                for _ in range(randomly.choice((1, 1, 1, 2, 8))):
                    content[randomly.randrange(len(content))] = randomly.randrange(256)
                (self.folder / f"m{number}.onnx").write_bytes(content)
            result = run(["check", "--format", "json", self.folder])
            self.assertIn(result.code, (CLEAN, FINDINGS, UNREADABLE), result.errors)
            inputs = json.loads(result.output)["inputs"]
            self.assertEqual(len(inputs), 300)
            self.assertNotIn(b"internal error", result.output)
            for entry in inputs:
                self.assertIn(entry["status"], ("checked", "failed"))
                if entry["status"] == "failed":
                    self.assertRegex(entry["error"], r"[a-z]{3}")
            self.assertEqual({entry["status"] for entry in inputs}, {"checked", "failed"})


if __name__ == "__main__":
    unittest.main()
