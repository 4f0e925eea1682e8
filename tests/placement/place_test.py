"""`tensorlint place`: what it writes passes the placement check and onnx.checker; what it cannot place is refused with one sentence."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import onnx

TOOL = os.environ["TENSORLINT_BINARY"]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
MODEL = '<ir_version: 11, opset_import: ["": 21]>\ng (float[N, 4096] x, float[4096, 4096] w) => (float[N, 4096] y) { h = MatMul (x, w) y = Relu (h) }'


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60, check=False)


class PlaceTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.placed = self.folder / "placed.onnx"

    def model(self, text: str) -> str:
        path = self.folder / "model.onnx"
        onnx.save(onnx.parser.parse_model(text), path)
        return str(path)

    def test_samples_pass_the_check_once_they_are_placed(self) -> None:
        for sample in sorted(SAMPLES.glob("*_ok.onnx")):
            with self.subTest(sample.name):
                done = run("place", str(sample), "-o", str(self.placed))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                onnx.checker.check_model(onnx.load(self.placed))
                self.assertEqual(run("check", "--select", "placement", str(self.placed)).returncode, 0)

    def test_samples_may_live_on_an_accelerator_as_a_whole(self) -> None:
        """Shapes stay on the cpu there, with the constants that exporters compute them with."""
        for sample in sorted(SAMPLES.glob("*_ok.onnx")):
            with self.subTest(sample.name):
                done = run("check", "--select", "placement", "--device", "cuda:0", str(sample))
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_is_written_and_said(self) -> None:
        model = self.model(MODEL)
        done = run("place", model, "-o", str(self.placed))
        self.assertIn("2 nodes on cuda:0, 0 on cpu: 2 copies a run, 16384*N + 67108864 bytes\n", done.stdout)
        self.assertIn("with 2 Transfers\n", done.stdout)
        placed = onnx.load(self.placed)
        self.assertEqual([node.op_type for node in placed.graph.node], ["Transfer", "Transfer", "MatMul", "Relu"])
        self.assertEqual({(each.domain, each.version) for each in placed.opset_import}, {("", 21), ("tensorlint", 1)})
        again = run("place", model)
        self.assertEqual(again.stdout, "".join(done.stdout.splitlines(keepends=True)[:2]))

    def test_an_output_of_a_branch_that_nothing_defines(self) -> None:
        model = self.model("""<ir_version: 11, opset_import: ["": 21]>
            g (bool b) => (float[1] y) { y = If (b) <then_branch = g1 () => (float[1] lost) { c = Constant <value = float[1] {1}> () },
                                                     else_branch = g2 () => (float[1] d) { d = Constant <value = float[1] {2}> () }> }""")
        done = run("place", model, "-o", str(self.placed))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"tensorlint: {model}: `lost` is used but never defined\n")

    def test_a_wrong_declared_shape_is_no_reason_to_refuse(self) -> None:
        """A warning, with which runtimes run the model."""
        path = self.folder / "model.onnx"
        model = onnx.parser.parse_model(MODEL)
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1
        onnx.save(model, path)
        self.assertIn("TL-G617", run("check", str(path)).stdout)
        done = run("place", str(path), "-o", str(self.placed))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_weights_are_placed_by_tags(self) -> None:
        text = MODEL.replace(", float[4096, 4096] w", "").replace(" { h", " <float[4096, 1] w = {" + ", ".join(["1"] * 4096) + "}> { h").replace("float[N, 4096] y", "float[N, 1] y")
        done = run("place", self.model(text), "--device", "cuda:0", "-o", str(self.placed))
        self.assertIn("2 nodes on cuda:0, 0 on cpu: 0 copies a run, 0 bytes\n", done.stdout)
        self.assertEqual(run("check", "--select", "placement", "--device", "cuda:0", str(self.placed)).returncode, 0)
        done = run("place", self.model(text), "--device", "x=cuda:0", "-o", str(self.placed))
        self.assertIn("0 copies a run", done.stdout)
        self.assertEqual([(p.key, p.value) for p in onnx.load(self.placed).graph.initializer[0].metadata_props], [("tensorlint.device", "cuda:0")])

    def test_a_provider_of_ones_own(self) -> None:
        table = self.folder / "npu.txt"
        table.write_text("provider npu\ndevice npu:0\nMatMul 1-99\n")
        done = run("place", self.model(MODEL), "--provider", str(table), "-o", str(self.placed))
        self.assertIn("1 nodes on npu:0, 1 on cpu", done.stdout)
        self.assertEqual([node.op_type for node in onnx.load(self.placed).graph.node], ["Transfer", "Transfer", "MatMul", "Transfer", "Relu"])

    def test_the_kernels_of_run(self) -> None:
        done = run("place", self.model(MODEL), "--provider", "tensorlint-cuda", "-o", str(self.placed))
        self.assertIn("2 nodes on cuda:0, 0 on cpu", done.stdout, done.stderr)
        acos = self.model(MODEL.replace("Relu", "Acos"))
        self.assertIn("1 nodes on cuda:0, 1 on cpu", run("place", acos, "--provider", "tensorlint-cuda").stdout)

    def test_refusals(self) -> None:
        model = self.model(MODEL)
        broken = self.folder / "broken.onnx"
        onnx.save(onnx.parser.parse_model(MODEL.replace("4096, 4096] w", "4095, 4096] w")), broken)
        cpu = self.folder / "cpu.txt"
        cpu.write_text("provider host\ndevice cpu\nMatMul 1-99\n")
        for arguments, said in [
            ([str(broken)], "the model has errors"),
            ([model, "--provider", "tpu"], "there is no provider `tpu`"),
            ([model, "--provider", "cuda", "--provider", "cuda"], "between the cpu and one provider"),
            ([model, "--provider", str(cpu)], "a provider of another device"),
            ([model, "--device", "x=cuda:1"], "`x` is placed on cuda:1; a model is split between the cpu and cuda:0"),
            ([str(self.folder / "none.onnx")], "none.onnx"),
            ([str(SAMPLES / "encoder_step.py")], "encoder_step.py"),
            (["model.onnxtxt"], "placing models in text is not built yet"),
            ([model, "-o", str(self.folder / "no" / "such.onnx")], "no"),
        ]:
            with self.subTest(said):
                done = run("place", *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
