"""What is multiplied by the number of inputs, findings or losses: configurations, reports, sites of losses; and names in documents."""

import json
import pathlib
import struct
import unittest

import hostile_test
import wire
from files_beside_models_test import npy
from promise import LARGEST, PromiseTest
from visits_and_probes_test import HEADER, some_names

X = wire.value("x", dims=["N"])
# Of a version and a graph without nodes.
TINY = b"\x08\x0a\x3a\x00"
ABS = wire.model(wire.graph([wire.node("Abs", ["x"], ["y"])], [X], [wire.data(1, "y")]))


def long_findings(character: str, length: int) -> str:
    """A thousand findings in a function that is called through sixteen others, in nodes of long names."""
    name = character * length
    calls = "".join(f"<domain: \"f\", opset_import: [\"\" : 18, \"f\" : 1]>\nf{i} (a) => (o) {{\n  [\"{name}\"] o = f.f{i + 1} (a)\n}}\n" for i in range(16))
    softmax = "".join(f"  {each} = Softmax <axis = {100 + i}> (a)\n" for i, each in enumerate(some_names(1000, without=("a", "o"))))
    last = f"<domain: \"f\", opset_import: [\"\" : 18]>\nf16 (a) => (aa) {{\n{softmax}}}\n"
    return f'<ir_version: 10, opset_import: ["" : 18, "f" : 1]>\nmain (float[N] x) => (y) {{\n  ["{name}"] y = f.f0 (x)\n}}\n{calls}{last}'


def sites(length: int, terms: int, sums: int, losses: int) -> str:
    """Losses of their own beside sums of as many terms, each of which is held against all losses, through a long way."""
    each = some_names(terms, without=("p", "t"))
    text = HEADER.replace('"" : 21', '"" : 21, "tensorlint" : 1') + "g (float[N, M] p, float[N, M] t) => (" + ", ".join(f"o{i}" for i in range(sums)) + ") {\n"
    text += "".join(f"L{i} = tensorlint.L1Loss(p,t)\n" for i in range(losses))
    text += "".join(f"_{x} = Sub(p,t)\n{x} = Abs(_{x})\n" for x in each)
    text += f"c0 = Max({','.join(each)})\n" + "".join(f"c{i + 1} = ReduceSum(c{i})\n" for i in range(length))
    return text + "".join(f"o{i} = Neg(c{length})\n" for i in range(sums)) + "}\n"


class ManyInputsTest(PromiseTest):
    in_memory = True

    def setUp(self) -> None:
        super().setUp()
        self.models = self.folder / "models"
        self.models.mkdir()

    def check_models(self, *options: str | pathlib.Path, codes: tuple[int, ...] = (1,)) -> None:
        """Reports go to a file: what this process holds counts as memory of those that it starts."""
        size = sum(path.stat().st_size for path in self.models.rglob("*") if path.is_file() and not path.is_symlink())
        for form in ("text", "json"):
            with self.subTest(form):
                self.assert_kept(hostile_test.run(["check", "--jobs", "1", "--format", f"{form}={self.folder}/report", *options, self.models]), size, codes=codes)

    def summary_of(self, *inputs: str | pathlib.Path) -> dict[str, int]:
        report = self.folder / "report"
        hostile_test.run(["check", "--format", f"json={report}", *inputs])
        with report.open("rb") as file:
            file.seek(-300, 2)
            return json.loads("{" + file.read().decode().rpartition('"summary": {')[2].rstrip().removesuffix("}"))

    def write_models(self, count: int) -> None:
        for i in range(count):
            (self.models / f"{i}.onnx").write_bytes(ABS)

    def write_tiny_models(self, count: int, config: str = "") -> None:
        for i in range(count):
            (self.models / f"{i}{'ab'[i % 2]}.onnx").write_bytes(TINY)
        (self.models / "tensorlint.toml").write_text(config)

    def configure(self, head: str, declared: str) -> None:
        (self.models / "tensorlint.toml").write_text(head + "".join(f"{name}={declared}\n" for name in some_names(1000)))

    def test_a_report_of_long_names(self) -> None:
        for character, length in (("n", 990), ("'", 1000)):
            (self.models / "m.onnxtxt").write_text(long_findings(character, length))
            self.check_models()

    def test_findings_of_many_inputs(self) -> None:
        for i in range(6):
            (self.models / f"{i}.onnxtxt").write_text(long_findings("n", 990))
        self.check_models()

    def test_what_is_not_kept_is_counted(self) -> None:
        inputs = [self.models / f"{i}.onnxtxt" for i in range(12)]
        for path in inputs:
            path.write_text(long_findings("n", 990))
        one, all_of_them = self.summary_of(inputs[0]), self.summary_of(*inputs)
        self.assertEqual(all_of_them["error"], 12 * one["error"])
        self.assertGreater(all_of_them["omitted"], 12 * one.get("omitted", 0))

    def test_a_configuration_of_a_thousand_inputs(self) -> None:
        self.write_models(1900)
        for head, declared in (('[[models]]\npath="*"\n[models.inputs]\n', '"int8"'), ("[devices]\n", '"a:1"')):
            self.configure(head, declared)
            self.check_models(codes=(0, 1, 2))

    def test_a_configuration_of_more_declarations_than_models_have(self) -> None:
        self.write_models(1)
        (self.models / "tensorlint.toml").write_text("[devices]\n" + "".join(f'{name}="cpu"\n' for name in some_names(1001)))
        result = hostile_test.run(["check", self.models])
        self.assertEqual(result.code, 2)
        self.assertRegex(result.errors, rb"tensorlint.toml:\d+:\d+: more than 1000 declarations")

    def test_rows_of_a_placement_file_for_other_models(self) -> None:
        self.write_models(32000 // len(ABS))
        row = '[[place]]\nnodes="q"\ndevice="cpu"\n'
        (self.models / "p.toml").write_text(row * (32000 // len(row)))
        (self.models / "tensorlint.toml").write_text('placement-file="p.toml"\n')
        self.check_models()
        report = hostile_test.run(["check", "--format", "json", self.models / "0.onnx"])
        messages = [finding["message"] for finding in json.loads(report.output)["findings"]]
        self.assertEqual(sum("no name or module matches" in message for message in messages), 20)
        self.assertIn(f"{32000 // len(row) - 20} more rows of the placement file place nothing", messages)

    def test_globs_and_paths_of_some_thousand_bytes(self) -> None:
        folder = self.models
        for _ in range(14):
            folder /= "a" * 250
        folder.mkdir(parents=True)
        for i in range(2000):
            (folder / f"{'a' * 200}{i}.onnx").write_bytes(TINY)
        config = self.models / "tensorlint.toml"
        for unit, length, rows in (("a?**", 7400, 5), ("a**", 11000, 3), ("a*", 1470, 22)):
            row = f'[[suppress]]\nrule="TL-G612"\npath="**/{unit * (length // len(unit))}*"\nreason="r"\n'
            config.write_text(row * rows)
            self.check_models(codes=(2,))
        self.assertIn("its globs of `path` are too long for a path of ", (self.folder / "report").read_text())
        # A folder or a name tells most paths apart from most globs.
        config.write_text("".join(f'[[suppress]]\nrule="TL-G612"\npath="**/{"b?" * 80}{i}.onnx"\nreason="r"\n' for i in range(250)))
        self.check_models(codes=(0,))

    def test_a_provider_of_many_models(self) -> None:
        self.write_tiny_models(5000)
        self.check_models("--placement", "runtime", "--provider", "cuda", codes=(0,))

    def test_severities_of_many_models(self) -> None:
        rules = json.loads(hostile_test.run(["rules", "--format", "json"]).output)
        words = sorted({rule["code"][:length] for rule in rules["rules"] for length in range(4, 8)})
        self.write_tiny_models(8000, "[severity]\n" + "".join(f'{word}="info"\n' for word in words))
        self.check_models(codes=(0,))

    def test_words_of_many_models(self) -> None:
        self.write_tiny_models(8000, "ignore=[" + '"loss",' * 12000 + "]\n")
        self.check_models(codes=(0,))

    def test_rows_of_many_models(self) -> None:
        for row in ('{path="*c"},', '{path="*c*",device="cpu"},'):  # the first ones declare nothing
            self.write_tiny_models(7000, f"models=[{row * (36000 // len(row))}]\n")
            self.check_models(codes=(0,))

    def test_declarations_of_many_models(self) -> None:
        self.write_tiny_models(7000, "[ranges]\n" + "".join(f'v{i}="0:1"\n' for i in range(1000)))
        self.check_models(codes=(0,))

    def test_declarations_of_alternating_models(self) -> None:
        rows = (f'[[models]]\npath="{glob}"\n[models.ranges]\n' + "".join(f'v{i}="0:1"\n' for i in range(500)) for glob in ("*a.onnx", "*b.onnx"))
        self.write_tiny_models(7000, "".join(rows))
        self.check_models(codes=(2,))

    def test_declarations_of_models_that_other_rows_apply_to(self) -> None:
        rows = "".join(f'[[models]]\npath="*{digit}?*.onnx"\nranges.w{digit}="0:1"\n' for digit in range(10))
        dims = ",".join("a" * 6000)
        self.write_tiny_models(5000, f'[inputs]\nx="int8[{dims}]"\n[ranges]\n' + "".join(f'v{i}="0:1"\n' for i in range(700)) + rows)
        self.check_models(codes=(2,))

    def test_links_to_one_configuration_of_declarations(self) -> None:
        (self.models / "tensorlint.toml").write_text("[ranges]\n" + "".join(f'v{i}="0:1"\n' for i in range(1000)))
        for i in range(5000):
            (self.models / f"{i}").mkdir()
            (self.models / f"{i}" / "m.onnx").write_bytes(TINY)
            (self.models / f"{i}" / "tensorlint.toml").symlink_to("../tensorlint.toml")
        self.check_models("--quiet", codes=(0,))

    def test_suppressions_of_many_models(self) -> None:
        row = '{rule="loss",reason="a",path="*"},'
        self.write_tiny_models(10000, f"suppress=[{row * 3000}]\n")
        self.check_models(codes=(0,))

    def test_findings_of_rows_that_place_nothing(self) -> None:
        self.write_tiny_models(6000)
        placement = self.folder / "p.toml"
        for between, findings in (("", 1), ("\n", 20)):  # what is said of one line twice is said once
            placement.write_text("place=[" + ('{values="a",device="cpu"},' + between) * 20 + "]\n")
            self.check_models("--placement-file", placement)
            self.assertEqual(self.summary_of("--placement-file", placement, self.models)["places"], findings * 6000)

    def test_sums_held_against_a_thousand_losses(self) -> None:
        of_losses = len(sites(480, 120, 33, 2000)) - len(sites(480, 120, 33, 1000))
        model = sites(480, 120, 33, 1000 + 1000 * (LARGEST - len(sites(480, 120, 33, 1000))) // of_losses)
        self.run_within_promise(model.encode(), "check", "show --format json", name="m.onnxtxt")

    def test_a_pattern_of_modules_below_each_other(self) -> None:
        model = wire.model(wire.graph([wire.node("Relu", ["x"], ["y"], name="/" * 65000)], [X], [wire.data(1, "y")]))
        self.path.write_bytes(model)
        for options in ([], ["--format", "json"]):
            self.assert_kept(hostile_test.run(["show", "--module", "*a?t*", *options, self.path]), len(model), codes=(2,))

    def test_names_in_the_document_of_a_comparison(self) -> None:
        model = wire.model(wire.graph([wire.node("Relu", ["x"], ["y"], name="\u202eevil\u009b31m\u2066" + "n" * 5000)], [wire.value("x", dims=[2])], [wire.value("y", dims=[2])]))
        self.path.write_bytes(model)
        recorded = self.folder / "recorded"
        recorded.mkdir()
        for name, numbers in (("x", (1, -1)), ("y", (5, 0))):
            (recorded / f"{name}.npy").write_bytes(npy("(2,)", struct.pack("<2f", *numbers)))
        result = hostile_test.run(["compare", self.path, "--against", recorded, "--format", "json"])
        self.assertEqual(result.code, 1, result.errors)
        text = result.output.decode()
        self.assertTrue(all(character.isprintable() or character == "\n" for character in text))
        self.assertIn("evil", json.loads(text)["first"]["node"])
        self.assertLess(len(text), 5000)

    def test_an_attribute_that_is_given_twice_and_has_become_an_operand(self) -> None:
        node = wire.node("ReduceSum", ["x"], ["y"], axes=[0]) + wire.data(5, wire.attribute("axes", [1]))
        self.path.write_bytes(wire.model(wire.graph([node, wire.node("Abs", ["x"], ["unused"])], [X], [wire.data(1, "y")])))
        result = hostile_test.run(["fix", self.path, "-o", self.folder / "fixed.onnx"])
        self.assertEqual(result.code, 1, result.errors)
        self.assertIn(b"remove the node", result.output)


if __name__ == "__main__":
    unittest.main()
