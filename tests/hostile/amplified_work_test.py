"""Small models and recordings of which a run or a comparison made much more than they hold: in what lies between, for noise, or again and again."""

import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import unittest
import zlib

import wire
from files_beside_models_test import npy
from hostile_test import BINARY, CLEAN, UNREADABLE, run, simple

HEAD = '<ir_version: 10, opset_import: ["": 21, "l": 1, "ai.onnx.preview": 1]>\n'
LITTLE = 80 << 20  # what this process holds counts as well
FOUND = 1
LOOP = "Loop <body = b (int64 i, bool c{0}) => (bool d{1}) {{ d = Identity (c) {2} }}> (n, go{3})"


def offset_in(pid, path):
    """How far a process has read a file; nothing where it has not opened it."""
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{number}") == str(path):
                return int(pathlib.Path(f"/proc/{pid}/fdinfo/{number}").read_text().split()[1])
    except OSError:
        pass
    return None


class AmplifiedWorkTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.onnxtxt"
        (self.folder / "r").mkdir()

    def kept(self, graph, *options, codes=(CLEAN,), memory=LITTLE, command="run", seconds=1):
        self.model.write_text(HEAD + graph)
        result = run([command, self.model, *options])
        self.assertIn(result.code, codes, result.errors[:500])
        self.assertLess(result.cpu, seconds)
        self.assertLess(result.memory, memory)
        return result.output.decode() + result.errors.decode()

    def compared(self, graph, codes, memory=LITTLE, **recorded):
        for name, (dtype, shape, data) in recorded.items():
            (self.folder / "r" / f"{name}.npy").write_bytes(npy(shape, data, dtype))
        return self.kept(graph, "--against", self.folder / "r", codes=codes, command="compare", memory=memory)

    # ---- what lies between

    def test_axes_that_grow_before_others_shrink(self):
        pads = "p = Constant <value_ints = [0, 0, -49999, 49999]> ()"
        sizes = "p = Constant <value_ints = [1, 50000]> ()"
        back = "p = Constant <value_ints = [50000, 1]> ()"
        for shape, operands, node in (
            ("50000, 1", pads, 'y = Pad <mode = "edge"> (x, p)'),
            ("50000, 1", sizes, 'y = Resize <mode = "nearest"> (x, , , p)'),
            ("1, 50000", back, 'y = Resize <mode = "linear"> (x, , , p)'),
        ):
            self.kept(f"g () => (y) {{ s = Constant <value_ints = [{shape}]> () x = ConstantOfShape (s) {operands} {node} }}", "--memory-limit", "10000000")

    def test_samples_of_a_region_far_larger_than_the_image(self):
        graph = """g () => (y) { x = Constant <value = float[1,1,1,1] {1}> () r = Constant <value = float[1,4] {0, 0, 4095, 4095}> () b = Constant <value_ints = [0]> ()
          y = RoiAlign <output_height = 1, output_width = 1, sampling_ratio = 0> (x, r, b) }"""
        self.assertIn("a region of 16769025 samples is too large", self.kept(graph, codes=(UNREADABLE,)))

    def test_expressions_that_alternate(self):
        """Compiling one takes milliseconds."""
        nodes = " ".join(f'm{k} = RegexFullMatch <pattern = ".{{0,300}}{k}"> (s)' for k in range(4))
        loop = LOOP.format("", "", nodes, "")
        self.kept(f'g () => (z) <int64 n = {{2000}}, bool go = {{1}}> {{ s = Constant <value_strings = ["a"]> () = {loop} z = Identity (n) }}', "--force")

    def test_facts_of_many_results(self):
        """Inference of tensors without elements, each time of another shape."""
        results = ", ".join(f"o{k}" for k in range(300))
        body = f"""w = Div (i, powers) v = Mod (w, two) u = Concat <axis = 0> (zero, v, all) e = ConstantOfShape (u) {results} = Split <axis = 21, num_outputs = 300> (e)"""
        powers = ", ".join(str(1 << k) for k in range(20))
        graph = f"""g () => (z) <int64 n = {{3000}}, bool go = {{1}}, int64[20] powers = {{{powers}}}, int64[1] two = {{2}}, int64[1] zero = {{0}}, int64[1] all = {{300}}> {{
          = {LOOP.format("", "", body, "")} z = Identity (n) }}"""
        self.kept(graph, "--force", memory=160 << 20, seconds=30)

    # ---- for noise

    def test_loops_that_float64_would_not_leave(self):
        """In float32 the sum is what it was, at once."""
        work = " ".join(f"u{k} = Neg (o)" for k in range(300))
        graph = f"""g (float x) => (float y) <bool go = {{1}}, float tiny = {{1e-9}}, int64 n = {{1000000}}> {{
          y = Loop <body = b (int64 i, bool c, float a) => (bool d, float o) {{ o = Add (a, tiny) e = Equal (o, a) d = Not (e) {work} }}> (n, go, x) }}"""
        self.compared(graph, (CLEAN, FOUND), x=("<f4", "()", struct.pack("<f", 1)), y=("<f4", "()", struct.pack("<f", 1)))

    def test_branches_that_noise_takes_and_that_cost_much(self):
        """Work of operators that neither operands nor results show."""
        body = """r = Constant <value = float[1,4] {0, 0, 1, 1}> () k = Constant <value_ints = [0]> () m = Constant <value = float[1,1,1,1] {1}> ()
          p = RoiAlign <output_height = 1, output_width = 1, sampling_ratio = 1000> (m, r, k) q = ReduceSum <keepdims = 0> (p) o = Add (a, q)"""
        graph = f"""g (float x) => (float z) <int64 n = {{100000}}> {{
          v = Exp (x) w = Exp (x) e = Equal (v, w) go = Not (e) z = Loop <body = b (int64 i, bool c, float a) => (bool d, float o) {{ d = Identity (c) {body} }}> (n, go, x) }}"""
        self.compared(graph, (CLEAN, FOUND), memory=128 << 20, x=("<f4", "()", struct.pack("<f", 1)), z=("<f4", "()", struct.pack("<f", 1)))

    # ---- again and again

    def test_positions_of_a_long_line(self):
        count = 8000
        graph = f"g (float[{count}] x) => (int64[{count}] i) <int64[1] k = {{{count}}}> {{ v = Exp (x) o, i = TopK (v, k) }}"
        values = struct.pack(f"<{count}f", *(-k / count for k in range(count)))
        positions = struct.pack(f"<{count}q", *((k + 1) % count for k in range(count)))
        self.compared(graph, (FOUND,), x=("<f4", f"({count},)", values), i=("<i8", f"({count},)", positions))

    def test_what_many_bugs_read_and_nobody_recorded(self):
        bugs = 300
        outputs = ", ".join(f"float y{k}" for k in range(bugs))
        nodes = " ".join(f"y{k} = Sin (t)" for k in range(bugs))
        graph = f"g (float x) => ({outputs}) <int64[1] s = {{10000}}, int64[1] a = {{0}}> {{ w = Expand (x, s) v = Exp (w) t = ReduceSum <keepdims = 0> (v, a) {nodes} }}"
        wrong = {f"y{k}": ("<f4", "()", struct.pack("<f", 7)) for k in range(bugs)}
        self.compared(graph, (FOUND,), x=("<f4", "()", struct.pack("<f", 1)), **wrong)

    def test_axes_that_may_be_exchanged(self):
        shape = ",".join(["2"] * 17)
        values = struct.pack(f"<{1 << 17}f", *(k % 7 for k in range(1 << 17)))
        (self.folder / "r" / "x.npy").write_bytes(npy(f"({shape})", values))
        wrong = struct.pack(f"<{1 << 17}f", *((k * 5) % 11 for k in range(1 << 17)))
        (self.folder / "r" / "y.npy").write_bytes(npy(f"({shape})", wrong))
        self.kept(f"g (float[{shape}] x) => (float[{shape}] y) {{ y = Neg (x) }}", "--against", self.folder / "r", codes=(FOUND,), command="compare", memory=128 << 20)

    def test_members_that_share_bytes_in_an_archive_with_room(self):
        content = npy("(4000,)", bytes(16000))
        check = zlib.crc32(content)
        archive, entries, names = b"", b"", ("x", "a", "b")
        head = 30 + len("x.npy")
        starts = [k * head for k in range(len(names))]
        data = len(names) * head
        for name, start in zip(names, starts):
            extra = data - start - head  # up to the bytes of all
            archive += struct.pack("<4sHHHHHLLLHH", b"PK\3\4", 20, 0, 0, 0, 0, check, len(content), len(content), 5, extra) + f"{name}.npy".encode()
            entries += struct.pack("<4sHHHHHHLLLHHHHHLL", b"PK\1\2", 20, 20, 0, 0, 0, 0, check, len(content), len(content), 5, 0, 0, 0, 0, 0, start) + f"{name}.npy".encode()
        archive += content + bytes(64000)
        end = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, 3, 3, len(entries), len(archive), 0)
        (self.folder / "r" / "all.npz").write_bytes(archive + entries + end)
        told = self.kept("g (float[4000] x) => (float[4000] b) { a = Neg (x) b = Neg (a) }", "--against", self.folder / "r", codes=(UNREADABLE,), command="compare")
        self.assertIn("members overlap", told)

    # ---- on the emulated device

    def test_windows_far_larger_than_the_image(self):
        side = 1 << 26
        graph = f"g (float[1,1,16,16] x) => (y) {{ y = AveragePool <kernel_shape = [{side}, {side}], pads = [{side // 2}, {side // 2}, {side // 2}, {side // 2}]> (x) }}"
        self.kept(graph, "--seed", "1", "--device", "emulated:0", memory=128 << 20)

    def test_memory_that_ends_in_a_thread_of_a_kernel(self):
        graph = "g (int8 x) => (int8 z) <int64[1] s = {20000000}, int64[1] a = {0}> { y = Expand (x, s) z = ReduceMax <keepdims = 0> (y, a) }"
        told = self.kept(graph, "--seed", "1", "--device", "emulated:0", "--memory-limit", "200000000", codes=(CLEAN, UNREADABLE), memory=2 << 30, seconds=20)
        self.assertNotIn("terminate", told)

    def test_values_that_queued_work_holds(self):
        """One place in the plan, and pages of their own for each as long as work waits."""
        nodes = " ".join(f"t{k} = Add (x, x) r{k} = ReduceMax <keepdims = 0> (t{k}, a)" for k in range(60))
        graph = f"g (float[200000] x) => (float z) <int64[1] a = {{0}}> {{ {nodes} z = Max ({', '.join(f'r{k}' for k in range(60))}) }}"
        self.kept(graph, "--seed", "1", "--device", "emulated:0", "--memory-limit", "4000000", codes=(CLEAN, UNREADABLE), seconds=60)

    # ---- in checks

    def test_nodes_without_results_behind_a_spent_allowance(self):
        """Nobody knows whether they have what they need: rules have nothing to say of them."""
        deep = 16
        functions = f'<domain: "l", opset_import: ["": 15, "l": 1]> F0 (s, x) => (o) {{ o = Max ({", ".join(["s"] * 300)}) }}\n'
        for k in range(1, deep):
            functions += f'''<domain: "l", opset_import: ["": 15, "l": 1]> F{k} (s, x) => (o) {{ c = Constant <value_int = {2**k}> ()
              a = l.F{k - 1} (s, x) t = Add (s, c) b = l.F{k - 1} (t, x) o = Add (a, b) }}\n'''
        for many in (0, 10, 64, 100, 200):
            before = " ".join(f"w{k} = Abs (x)" for k in range(many))
            last = f'''<domain: "l", opset_import: ["": 15, "l": 1]> G (s, x) => (z) {{ m = Constant <value = bool {{1}}> () r = Constant <value_float = 0.5> ()
              z = l.F{deep - 1} (s, x) {before} = Dropout (x, r, m) }}\n'''
            self.model.write_text(f'<ir_version: 10, opset_import: ["": 15, "l": 1]>\ng (float[4,10] x) => (float[4,10] y) <int64 one = {{1}}> {{ y = Relu (x) z = l.G (one, x) }}\n{functions}{last}')
            result = run(["check", self.model])
            self.assertIn(result.code, (CLEAN, FOUND), result.errors[:300])

    def test_operands_that_are_left_out_and_asked_for_again(self):
        asked = " ".join(f"y{k} = Gather (t, i)" for k in range(1800))
        text = f"""<ir_version: 10, opset_import: ["": 13]>
g (float[4,10] x, float[3] t) => (float[480,1] y0) <float[4,10] w> {{ w = Sum (x{"," * 24_000}x) p = Concat <axis = 0> ({",".join(["w"] * 120)}) i = ArgMax <axis = 1> (p) {asked} }}"""
        self.model.write_text(text)
        self.assertLess(len(text), 1 << 16)
        result = run(["check", self.model])
        self.assertIn(result.code, (CLEAN, FOUND), result.errors[:300])
        self.assertLess(result.cpu, 1)

    def test_what_place_says_of_copies(self):
        evil = "N\x1b]0;pwned\x07\x1b[31m\u202e"
        axis = wire.data(2, wire.data(1, wire.data(2, evil)))  # dim_param, in a dim, in a shape
        value = wire.data(1, "x") + wire.data(2, wire.data(1, wire.number(1, wire.FLOAT) + axis))
        path = self.folder / "m.onnx"
        path.write_bytes(simple([wire.node("Sinh", ["x"], ["a"]), wire.node("Relu", ["a"], ["y"])], inputs=[value]))
        result = run(["place", path, "--provider", "cuda", "-o", self.folder / "placed.onnx"])
        self.assertEqual([byte for byte in result.output.decode() if byte != "\n" and not byte.isprintable()], [], result.output)
        self.assertIn(result.code, (CLEAN, FOUND), result.errors[:300])

    def test_nodes_that_give_nothing_are_shown_piece_by_piece(self):
        with open(self.model, "w") as file:
            file.write('<ir_version: 10, opset_import: ["": 21]>\ng (float x) => () {\n')
            file.writelines("=A(x)\n" * 1000 for _ in range(150))
            file.write("}\n")
        checked, shown = run(["check", "-q", self.model]), run(["show", self.model])
        self.assertEqual(shown.code, CLEAN, shown.errors[:300])
        self.assertGreater(len(shown.output), 6 << 20)
        self.assertLess(shown.memory, checked.memory + (4 << 20))

    def test_a_text_that_changes_while_it_is_read(self):
        with open(self.model, "w") as file:  # piece by piece: what this process holds counts as memory of those that it starts
            file.write('<ir_version: 10, opset_import: ["": 21]>\ng (float x) => (y) { y = Neg (x) }\n')
            file.writelines("# more\n" * 1000 for _ in range(9_000))
        size = self.model.stat().st_size
        tried = 0
        for _ in range(20):
            process = subprocess.Popen([BINARY, "check", self.model], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            while process.poll() is None:
                at = offset_in(process.pid, self.model)
                if at is not None and 0 < at < size:
                    os.kill(process.pid, signal.SIGSTOP)
                    stopped_at = offset_in(process.pid, self.model)
                    with open(self.model, "a") as file:
                        file.write("#\n")
                    os.kill(process.pid, signal.SIGCONT)
                    output, _ = process.communicate(timeout=60)
                    if stopped_at is not None and stopped_at < size:
                        self.assertEqual(process.returncode, UNREADABLE, output)
                        self.assertIn(b"changed while being read", output)
                        tried += 1
                    break
            process.communicate()
            size = self.model.stat().st_size
            if tried:
                return
        self.skipTest("the file was read before it could be changed")

    # ---- in models

    def test_lists_of_sparse_tensors(self):
        dense = wire.tensor("v", wire.FLOAT, [4], bytes(3))
        sparse = wire.data(1, dense) + wire.data(2, wire.tensor("i", wire.INT64, [4], struct.pack("<4q", 0, 1, 2, 3))) + wire.number(3, 9)
        attribute = wire.data(1, "l") + wire.data(23, sparse) + wire.number(20, 12)
        node = wire.data(1, "x") + wire.data(2, "y") + wire.data(4, "Relu") + wire.data(5, attribute)
        path = self.folder / "m.onnx"
        path.write_bytes(simple([node], inputs=[wire.value("x", dims=[4])]))
        result = run(["check", path])
        self.assertEqual(result.code, FOUND, result.output[:500])
        self.assertIn(b"raw_data has 3", result.output)

    def test_fixes_of_unusual_bytes(self):
        """An attribute whose last name counts, and unknown groups."""
        head = wire.data(1, "x") + wire.data(2, "y") + wire.data(4, "Squeeze")
        named = wire.data(1, "zz") + wire.data(1, "axes") + wire.number(8, 0) + wire.number(20, 7)
        plain = wire.data(1, "axes") + wire.number(8, 0) + wire.number(20, 7)
        group = wire.varint(100 << 3 | 3) + wire.number(1, 5) + wire.varint(101 << 3 | 3) + wire.varint(101 << 3 | 4) + wire.varint(100 << 3 | 4)
        for node in (head + wire.data(5, named), head + wire.data(5, plain) + group):
            path, fixed = self.folder / "m.onnx", self.folder / "fixed.onnx"
            path.write_bytes(simple([node], inputs=[wire.value("x", dims=[1, 4])], opsets=(("", 17),)))
            self.assertEqual(run(["check", path]).code, FOUND)
            result = run(["fix", path, "-o", fixed])
            self.assertEqual(result.code, CLEAN, result.errors[:500])
            self.assertEqual(run(["check", fixed]).code, CLEAN)

    def test_sparse_constants_in_text(self):
        for index, dtype, why in (("99", "int64", "has 4 elements"), ("-7", "int64", "has 4 elements"), ("1.0", "float", "have to be int64")):
            self.model.write_text(f"{HEAD}g () => (y) {{ y = Constant <sparse_value = sparse_tensor(float[4]) = {{float[1] {{1.0}}, {dtype}[1] {{{index}}}}}> () }}\n")
            result = run(["check", self.model])
            self.assertEqual(result.code, FOUND, result.output[:500])
            self.assertIn(why, result.output.decode())


if __name__ == "__main__":
    unittest.main()
