"""Files beside a model, and findings that they have kept: what is read of them, and how often names are compared with what they say."""

import pathlib
import unittest

import hostile_test
import wire
from promise import LARGEST, PromiseTest
from visits_and_probes_test import some_names

MIB = 1 << 20
X, Y = wire.value("x", dims=[2]), wire.value("y", dims=[2])


class KeptOfSideFilesTest(PromiseTest):
    in_memory = True

    def setUp(self) -> None:
        super().setUp()
        self.config = self.folder / "tensorlint.toml"

    def write_model(self, content: bytes = b"") -> None:
        self.path.write_bytes(content or wire.model(wire.graph([wire.node("Abs", ["x"], ["y"])], [X], [Y])))

    def assert_memory(self, memory: int, *words: object, of: pathlib.Path | None = None, codes: tuple[int, ...] = (0, 1)) -> hostile_test.Result:
        result = hostile_test.run([*words, of or self.path])
        self.assertIn(result.code, codes, result.errors[:500])
        self.assertLess(result.memory, memory)
        return result

    def test_dense_toml(self) -> None:
        """A table for each part of a key, a value for each comma."""
        self.write_model()
        dense = self.folder / "dense.toml"
        for line in ("{" + ".".join("a" * 16) + "=1},", "1,", "[],", "{},"):
            dense.write_text("x=[" + line * ((MIB - 10) // len(line)) + "]\n")
            for option in ("--config", "--placement-file", "--signatures"):
                with self.subTest(line[:10], option=option):
                    self.assertIn(b"more than 131072 keys, values and brackets", self.assert_memory(80 * MIB, "check", option, dense, codes=(2,)).errors)

    def write_signature(self, inputs: list[str], outputs: list[str]) -> pathlib.Path:
        path = self.folder / "operators.toml"
        path.write_text(f"[[operator]]\ndomain = 'local'\nname = 'F'\ninputs = {inputs}\noutputs = {outputs}\n")
        return path

    def test_signatures_of_many_names(self) -> None:
        self.write_model()
        names = some_names(150_000)
        signatures = {
            "operands": ([f"T[{','.join(names[i : i + 64])}]" for i in range(0, 150_000, 64)], ["T[]"]),
            "results": (["T[]"], [f"T[{','.join(names[i : i + 64])}]" for i in range(0, 150_000, 64)]),
            "sums": ([f"T[{','.join(names[:64])}]"], [f"T[{'+'.join(names[i * (j + 1) % 64] for j in range(16))}]" for i in range(1, 12_000)]),
        }
        for name, (inputs, outputs) in signatures.items():
            path = self.write_signature(inputs, outputs)
            with self.subTest(name):
                self.assert_memory(64 * MIB + 48 * path.stat().st_size // 2, "check", "--signatures", path)

    def test_a_call_that_fits_nowhere(self) -> None:
        path = self.write_signature([f"T[{','.join('9' * 64)}]"] * 7000, ["T[]"])
        x = wire.value("x", dims=list(range(10, 74)))
        self.write_model(wire.model(wire.graph([wire.node("F", ["x"] * 7000, ["y"], domain="local")], [x], [Y])))
        result = self.assert_memory(64 * MIB, "check", "--signatures", path, codes=(1,))
        self.assertIn(b"axis 0 of `x` has extent 10, F is declared with 9", result.output)

    def test_names_of_results_in_one_call(self) -> None:
        names = [name for name in some_names(15_000) if name[0] != "_"]
        path = self.write_signature(["T[1]"], [f"T[{','.join(names[i : i + 64])}]" for i in range(0, len(names), 64)])
        results = len(names) // 64
        nodes = [wire.node("F", ["x"], [f"y{i}"] + [""] * (count - 1), domain="local") for i, count in enumerate((results // 2, results))]
        self.write_model(wire.model(wire.graph(nodes, [wire.value("x", dims=[1])], [wire.data(1, "y0"), wire.data(1, "y1")])))
        self.assertLess(path.stat().st_size + self.path.stat().st_size, LARGEST)
        self.assert_kept(hostile_test.run(["check", "--signatures", path, self.path]), LARGEST, seconds=0.5)

    def test_rows_that_declare_nothing(self) -> None:
        self.write_model()
        for i in range(12):
            folder = self.folder / "models" / f"d{i}"
            folder.mkdir(parents=True)
            (folder / "m.onnx").write_bytes(self.path.read_bytes())
            (folder / "tensorlint.toml").write_text("models=[" + '{path="*"},' * 15_000 + f"]\n# {i}\n")
        self.assert_memory(64 * MIB, "check", "--jobs", "1", of=self.folder / "models")

    def test_provider_tables(self) -> None:
        self.write_model()
        table = self.folder / "npu.txt"
        head = "provider npu\ndevice npu:0\n"
        table.write_text(head + "Add 1+ T=\n")
        self.assertIn(b"`T=` names no dtype", self.assert_memory(64 * MIB, "check", "--placement", "runtime", "--provider", table, codes=(2,)).errors)
        with table.open("w") as file:
            file.write(head)
            file.writelines(f"a{i} 1+ T=bool U=int8 V=bool W=int4\n" for i in range(23_000))
        self.assert_memory(96 * MIB, "check", "--placement", "runtime", *["--provider", table] * 3)
        with table.open("a") as file:
            file.writelines("# more\n" for _ in range(MIB // 7))
        self.assertIn(b"larger than", self.assert_memory(64 * MIB, "check", "--placement", "runtime", "--provider", table, codes=(2,)).errors)

    def test_nodes_without_a_kernel(self) -> None:
        table = self.folder / "npu.txt"
        table.write_text(f"provider {'p' * 200}\ndevice npu:0\n")
        for node, count in ((wire.data(4, "a"), 400_000), (wire.data(4, "a") + wire.data(7, "c"), 300_000)):
            self.write_model(wire.model(wire.data(1, node) * count + wire.data(2, "g"), opsets=[("", 17), ("c", 1)]))
            self.assert_memory(2 * 64 * MIB + 40 * self.path.stat().st_size, "check", "--placement", "runtime", "--provider", table)

    def test_findings_kept_for_a_suppression(self) -> None:
        """A function without a name is a finding, and none of them may be left out before they are compared."""
        self.config.write_text("suppress=[{rule='TL-G616',reason='x',graph='zz'}]\n")
        self.write_model(wire.model(wire.graph([wire.node("Abs", ["x"], ["y"])], [X], [Y])) + b"\xca\x01\x00" * 10_000)
        self.assert_memory(64 * MIB + 40 * self.path.stat().st_size, "check", codes=(1,))

    def test_names_that_all_but_repeat_a_glob(self) -> None:
        for glob in ("*baaa*", "*?aa" * 12 + "*b*"):
            rows = ",".join(f"{{rule='TL-G616',reason='x',graph='{glob}'}}" for _ in range(80))
            self.config.write_text(f"max-findings=99999\nsuppress=[{rows}]\n")
            body = f"{'a' * 1018} () => (float[1] v) {{ v = Max ({','.join(some_names(8000, without=('x', 'y', 'c', 'v', 'w')))}) }}"
            text = self.folder / "m.onnxtxt"
            text.write_text(
                f'<ir_version: 8, opset_import: ["" : 17]>\ng (float[1] x, bool c) => (float[1] y) {{ y = If (c) <then_branch = {body}, else_branch = e () => (float[1] w) {{ w = Abs (x) }}> }}\n'
            )
            self.assertLess(text.stat().st_size + self.config.stat().st_size, LARGEST)
            for form in ("text", "json"):
                with self.subTest(glob[:10], form=form):
                    self.assert_kept(hostile_test.run(["check", "--format", form, text]), LARGEST, codes=(1,))

    def test_modules_of_a_long_name(self) -> None:
        name = "/" + "a" * 32_400 + "/b" * 70 + "/c/Abs"
        self.write_model(wire.model(wire.graph([wire.node("Abs", ["x"], ["y"], name=name)], [X], [Y])))
        for form in ("text", "json"):
            self.assert_kept(hostile_test.run(["show", "--format", form, "--module", "*?" + "a" * 32_000 + ".b" * 70 + ".c*", self.path]), LARGEST)


if __name__ == "__main__":
    unittest.main()
