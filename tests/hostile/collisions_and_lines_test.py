"""Texts whose hashes in the standard library are one, models in text that are one line, and what grows with the square of a number: ranges of
device memory, calls of calls, the lines of a diff."""

import itertools
import math
import resource
import string
import unittest

import numpy as np
import wire
from hostile_test import CLEAN, UNREADABLE, VERDICT, run, simple
from promise import PromiseTest
from visits_and_probes_test import HEADER, some_names

INT32 = 6
FACTOR = np.uint64(0xC6A4A7935BD1E995)
INVERSE = np.uint64(pow(int(FACTOR), -1, 1 << 64))
PRINTABLE = np.frombuffer((string.ascii_letters + string.digits + "_!#$%&()*+,-./:;<=>?@[]^{|}~").encode(), np.uint8)
BYTES = np.arange(256, dtype=np.uint8)
X1 = wire.value("x", dims=[1])


def colliding(count, alphabet, parts=3):
    """Words with one std::hash of libstdc++, which is Murmur's: each part of 16 letters leads from one known state to another one."""
    of_part = math.ceil(count ** (1 / parts))
    shift = np.uint64(47)
    random = np.random.default_rng(1)

    def mix(word):
        word = word * FACTOR
        return (word ^ (word >> shift)) * FACTOR

    def unmix(word):
        word = word * INVERSE
        return (word ^ (word >> shift)) * INVERSE

    is_letter = np.isin(BYTES, alphabet)
    # Products of scalars would warn of what they lose.
    state = np.array([0xC70F6907], np.uint64) ^ np.array([16 * parts], np.uint64) * FACTOR
    goal = np.array([0x1234567890ABCDEF], np.uint64)
    words = [b""]
    for _ in range(parts):
        found: list[bytes] = []
        while len(found) < of_part:
            first = alphabet[random.integers(0, len(alphabet), (1 << 16, 8))]
            second = unmix(((state ^ mix(first.view("<u8").ravel())) * FACTOR) ^ (goal * INVERSE)).view(np.uint8).reshape(-1, 8)
            good = is_letter[second].all(axis=1)
            found += [bytes(a) + bytes(b) for a, b in zip(first[good], second[good])]
        words = [word + part for word in words for part in found[:of_part]]
        state = goal
    return words[:count]


def nested(count, depth=62, dead=1200):
    """Small nodes in bodies, far from the margin, and nodes before and after them that nobody needs."""
    def leave():
        return wire.graph([], [], [wire.data(1, "x")], name="e")

    body = wire.graph([wire.node("Abs", ["x"], ["z"])] * count + [wire.node("Abs", ["x"], ["zz"])], [], [wire.data(1, "zz")], name="b")
    for level in range(depth):
        body = wire.graph([wire.node("If", ["c"], [f"v{level}"], then_branch=("g", body), else_branch=("g", leave()))], [], [wire.data(1, f"v{level}")], name="b")
    unused = [wire.node("Neg", ["x"], [f"{name}_"]) for name in some_names(dead)]
    nodes = [*unused[:dead // 2], wire.node("If", ["c"], ["y"], then_branch=("g", body), else_branch=("g", leave())), *unused[dead // 2:]]
    return wire.model(wire.graph(nodes, [X1, wire.value("c", wire.BOOL, [])], [wire.value("y", dims=[1])]))


class CollisionsAndLinesTest(PromiseTest):
    def run_in(self, seconds, content, *command, name="m.onnx", codes=VERDICT):
        path = self.folder / name
        path.write_bytes(content)
        result = run([*command, path])
        self.assert_kept(result, len(content), seconds=seconds, codes=codes)
        return result

    def run_on_device(self, content):
        path = self.folder / "m.onnx"
        path.write_bytes(content)
        return run(["run", "--seed", "0", "--device", "emulated:0", path])

    def test_keys_of_one_hash(self):
        keys = colliding(40_000, BYTES, parts=1)
        numbers = wire.data(1, "values_int64s") + wire.data(8, bytes(len(keys))) + wire.number(20, 7)
        encoder = wire.node("LabelEncoder", ["t"], ["y"], domain="ai.onnx.ml") + wire.data(5, wire.data(1, "keys_strings") + b"".join(wire.data(9, key) for key in keys) + wire.number(20, 8))
        model = simple([wire.node("StringNormalizer", ["s"], ["t"], case_change_action="UPPER"), encoder + wire.data(5, numbers)],
                       inputs=[wire.value("s", 8, ["N"])], opsets=(("", 18), ("ai.onnx.ml", 4)))
        self.run_in(1, model, "check")

    def test_names_of_one_hash(self):
        names = [word.decode() for word in colliding(27_000, PRINTABLE)]
        split = wire.node("Split", ["x"], names, num_outputs=len(names))
        self.run_in(1.5, simple([split], inputs=[wire.value("x", dims=[len(names)])], outputs=names[:1], opsets=(("", 18),)), "show", "--format", "json")

    def test_a_model_in_one_line(self):
        names = ["".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=3), 100_000)]
        model = f"{HEADER}g (float[N] x) => (float[N] y) <{','.join(f'float {name}={{1}}' for name in names)}> {{\ny = Relu (x)\n}}\n".encode()
        self.run_in(1.5, model, "check", name="m.onnxtxt")
        self.run_in(3, model, "fix", "--diff", name="m.onnxtxt")

    def test_indices_that_are_sorted_at_each_sum(self):
        count = 4096
        table = wire.tensor("i", INT32, [count], np.random.default_rng(1).permutation(count).astype("<i4").tobytes())
        nodes = [wire.node("ScatterElements", ["z", "i", "x"], [f"{name}_"], reduction="add") for name in some_names(10_000)]
        nodes += [wire.node("ConstantOfShape", ["s"], ["z"]), wire.node("Gather", ["x", "i"], ["g"])]
        self.run_in(1, simple(nodes[-2:] + nodes[:-2], [table, wire.integers("s", [count])], inputs=[wire.value("x", dims=[count])], outputs=["g"], opsets=(("", 18),)), "check")

    def test_results_that_take_each_others_place(self):
        """On the emulated device, which looks for work under way on what had been there: a few pages for each, and not all that were before it."""
        count = 6000
        nodes = [wire.node("Abs", ["x"], [f"{name}_"]) for name in some_names(count)]
        result = self.run_on_device(simple([*nodes, wire.node("Relu", ["x"], ["y"])], inputs=[wire.value("x", dims=[2])]))
        self.assertEqual(result.code, CLEAN, result.errors[:500])
        self.assertLess(result.memory, (64 << 20) + 16384 * count)

    def test_functions_that_call_each_other_one_by_one(self):
        """What else there is pays for their memory. The stack is a quarter of the usual one, and so is their number."""
        names = [f"{name}_" for name in some_names(20_000)]
        functions = []
        for name, callee in zip(names, [*names[1:], "Abs"]):
            is_last = callee == "Abs"
            opsets = wire.data(9, wire.data(1, "l") + wire.number(2, 1)) + (wire.data(9, wire.data(1, "") + wire.number(2, 18)) if is_last else b"")
            call = wire.node(callee, ["x"], ["y"], domain="" if is_last else "l")
            functions.append(wire.data(1, name) + wire.data(4, "x") + wire.data(5, "y") + wire.data(7, call) + opsets + wire.data(10, "l"))
        graph = wire.graph([wire.node(names[0], ["x"], ["y"], domain="l")], [X1], [wire.value("y", dims=[1])])
        model = wire.model(graph, functions, opsets=(("", 18), ("l", 1))) + wire.data(14, wire.data(1, "k") + wire.data(2, "v" * (1 << 20)))
        stack = resource.getrlimit(resource.RLIMIT_STACK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_STACK, stack)
        resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, stack[1]))
        result = self.run_on_device(model)
        self.assertEqual(result.code, UNREADABLE, result.errors[:500])
        self.assertIn(b"functions and graphs are nested too deep", result.errors)

    def test_a_diff_of_indented_bodies(self):
        result = self.run_in(2, nested(60_000), "fix", "--unsafe", "--diff")
        self.assertLess(len(result.output), 6 << 20)
        self.assertIn(b"\n(the diff continues beyond 4 MiB of text)\nfixed ", result.output)

    def test_a_diff_of_distant_changes(self):
        result = self.run_in(2, nested(0, depth=10, dead=200), "fix", "--unsafe", "--diff")
        self.assertEqual(result.code, CLEAN)
        self.assertEqual(result.output.count(b"\n@@ "), 2)
        self.assertEqual(result.output.count(b"\n-  "), 200)


if __name__ == "__main__":
    unittest.main()
