"""`tensorlint run --device emulated:0`: each exported loss reaches our kernels, with the interpreter's results; what it says without a device."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import backend_run_test
import numpy as np
import onnx

TOOL = os.environ["TENSORLINT_BINARY"]
RUNNER = Path(TOOL).with_name("tensorlint-run")
MODELS = Path(__file__).resolve().parents[1] / "models"
LOSSES = json.loads((MODELS / "losses.json").read_text())

# What each loss of the corpus is for the kernels. Losses without a kernel of their own are summed by one.
KERNELS = {
    "mse": "pointwise_loss squared",
    "mse_long": "pointwise_loss squared",
    "mse_functional": "pointwise_loss squared",
    "l1": "pointwise_loss absolute",
    "smooth_l1": "pointwise_loss smooth_l1",
    "smooth_l1_long": "pointwise_loss smooth_l1",
    "smooth_l1_beta": "pointwise_loss smooth_l1",
    "huber": "pointwise_loss smooth_l1",
    "huber_delta": "pointwise_loss huber",
    "bce": "pointwise_loss binary",
    "bce_weight": "pointwise_loss binary",
    "bce_logits": "pointwise_loss binary_logits",
    "bce_logits_pos": "pointwise_loss binary_logits",
    "kl_div": "pointwise_loss kl_divergence",
    "kl_div_log": "pointwise_loss kl_divergence_log",
    "cross_entropy": "class_loss cross_entropy",
    "cross_entropy_ignore": "class_loss cross_entropy",
    "cross_entropy_weight": "class_loss cross_entropy",
    "nll": "class_loss cross_entropy",
    "nll_weight": "class_loss cross_entropy",
    "hand_bce": "pointwise_loss binary_logits",
    "hand_ce_gather": "class_loss cross_entropy",
    "hand_ce_one_hot": "class_loss cross_entropy_probabilities",
    "hand_kl": "pointwise_loss kl_divergence_log",
    "hand_l1": "pointwise_loss absolute",
    "hand_log_cosh": "reduce mean",
    "hand_mse_mul": "pointwise_loss squared",
    "hand_mse_pow": "pointwise_loss squared",
    "hand_mse_rows": "pointwise_loss squared",
    "hand_mse_square": "pointwise_loss squared",
    "hand_mse_swapped": "pointwise_loss squared",
    "hand_rmse": "pointwise_loss squared",
}
# ONNX has no cross-entropy with probabilities: what exporters write for it does not run anywhere.
NOT_RUN = {"cross_entropy_prob"}
AVERAGING = {"mean": "mean", "sum": "sum", "none": "none", "batchmean": "sum"}


def execute(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(RUNNER), *arguments], capture_output=True, text=True, timeout=120, check=False)


class ExportedLosses(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        root = Path(cls.folder.name)
        np.save(root / "features.npy", np.array(LOSSES["features"], np.float32).reshape(5, 4))
        for i, target in enumerate(LOSSES["targets"]):
            np.save(root / f"target_{i}.npy", np.array(target["values"]).reshape(target["shape"]).astype(target["dtype"]))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def run_on_both(self, entry: dict) -> str:
        """Empty, or what is wrong."""
        root = Path(self.folder.name)
        name = Path(entry["file"]).stem
        model = [f"--model={MODELS / entry['file']}", f"--inputs=features={root / 'features.npy'}", f"--inputs=target={root / 'target_{}.npy'.format(entry['target_input'])}"]
        recorded = root / name
        host = execute(*model, f"--outputs={recorded}")
        device = execute(*model, "--device=emulated:0", f"--expect={recorded}", "--rtol=2e-6", "--atol=2e-7", "--timings=")
        if entry["loss"] in NOT_RUN:
            return "" if host.returncode == device.returncode == 2 and host.stderr == device.stderr else f"{host.stderr} {device.stderr}"
        if host.returncode != 0 or device.returncode != 0:
            return host.stderr + device.stderr
        kernels = re.findall(r"^emulated:0 .*?\): (?!part of)(.*)$", device.stdout, re.MULTILINE)
        expected = KERNELS[entry["loss"]]
        if entry["loss"].startswith("hand_mse_rows") or entry["loss"] == "hand_kl":
            expected += ", batch mean"
        elif expected.startswith("pointwise"):
            expected += f", {AVERAGING[entry['reduction']]}"
        if not any(kernel == expected or kernel.startswith(expected + ",") for kernel in kernels):
            return f"kernels are {kernels}, not {expected}\n{device.stdout}"
        return ""

    def test_every_exported_loss_reaches_a_kernel(self) -> None:
        entries = LOSSES["models"]
        self.assertEqual({entry["loss"] for entry in entries}, set(KERNELS) | NOT_RUN)
        with ThreadPoolExecutor(2) as pool:
            for entry, wrong in zip(entries, pool.map(self.run_on_both, entries), strict=True):
                with self.subTest(entry["file"]):
                    self.assertEqual(wrong, "")


class BackendCases(unittest.TestCase):
    """ONNX's backend tests of what has kernels: they agree as they do in the interpreter."""

    OPERATORS = {"ArgMax", "ArgMin", "LogSoftmax", "NegativeLogLikelihoodLoss", "Softmax", "SoftmaxCrossEntropyLoss"} | {
        f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    } | {"AveragePool", "BatchNormalization", "Conv", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "GroupNormalization", "InstanceNormalization",
         "LayerNormalization", "MatMul", "MaxPool", "RMSNormalization", "Split"}

    def test_backend_cases(self) -> None:
        expected = backend_run_test.listed()
        ran = 0
        with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(2) as pool:
            cases = backend_run_test.folders(Path(root), self.OPERATORS)
            for name, _, code, message in pool.map(lambda case: backend_run_test.run(case, "--device=emulated:0"), cases):
                with self.subTest(name):
                    self.assertEqual(code, 1 if expected.get(name, "").startswith("rounding:") else 2 if name in expected else 0, message)
                ran += 1
        self.assertGreater(ran, 200)


class DeviceOption(unittest.TestCase):
    def run_loss(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(
                '<ir_version: 10, opset_import: ["": 21]>\ng (float[6, 3] x, float[6, 3] t) => (float y) {\n'
                " d = Sub (x, t)\n s = Mul (d, d)\n [loss] y = ReduceMean <keepdims = 0> (s)\n}\n"
            )
            return subprocess.run([TOOL, "run", str(path), "--seed", "1", *arguments], capture_output=True, text=True, timeout=60, check=False)

    def test_timings_say_where_and_why(self) -> None:
        result = self.run_loss("--device", "emulated:0", "--timings")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = re.sub(r"\d+\.\d+(?= )", "T", result.stdout)
        self.assertIn("emulated:0               `#0(Sub)` (Sub): part of `loss`\n", text)
        self.assertRegex(text, r"emulated:0   +T  `loss` \(ReduceMean\): pointwise_loss squared, mean\n")
        self.assertIn("copies, as planned: 2 to emulated:0 (144 bytes), 1 from it (4 bytes); memory there: 176 bytes\n", text)
        self.assertIn("emulated: these are times of the emulator", text)
        self.assertEqual(result.stdout.splitlines()[0], self.run_loss("--device", "emulated:1", "--repeat", "2").stdout.splitlines()[0])

    def test_gradient_of_the_prediction(self) -> None:
        host = self.run_loss()
        loss = float(host.stdout.split("= ")[1])
        # The mean of (x - t)^2 falls by itself along its gradient, less the square of what is left.
        for sides in ("kernels", "cost"):
            result = self.run_loss("--device", "emulated:0", "--gradient", "--sides", sides, "--timings")
            self.assertEqual(result.returncode, 0, result.stderr)
            found = re.search(r"^gradient of `loss` by `x`: float32\[6, ?3\] = (.*)$", result.stdout, re.MULTILINE)
            assert found is not None, result.stdout
            gradient = np.array([float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", found[1])])
            self.assertEqual(gradient.size, 18)
            # 2 (x - t) / 18 each: squares of it are the loss times 4 / 18.
            self.assertAlmostEqual(float((gradient**2).sum()), loss * 4 / 18, places=5)
            self.assertRegex(result.stdout, r"2 from it \(76 bytes\)")

    def run_text(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(text)
            return subprocess.run([TOOL, "run", str(path), "--seed", "1", *options], capture_output=True, text=True, timeout=60, check=False)

    def test_gradients_that_no_kernel_computes(self) -> None:
        text = '<ir_version: 10, opset_import: ["": 21]>\ng (float[6, 3] x) => (float[6, 3] y) { y = Exp (x) }\n'
        result = self.run_text(text, "--device", "emulated:0", "--gradient")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no node of the model is known as a loss, so there is no gradient to compute", result.stderr)
        model = MODELS / "losses/hand_log_cosh_mean_dynamo.onnx"
        result = subprocess.run([TOOL, "run", str(model), "--seed", "1", "--device", "emulated:0", "--gradient"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("node `node_sub_1` (Sub): no kernel computes the gradient of this log-cosh loss: it is computed by `elementwise Sub", result.stderr)

    def test_two_devices(self) -> None:
        text = (
            '<ir_version: 10, opset_import: ["": 21, "tensorlint": 1]>\ng (float[6, 3] x) => (float[1, 1] y) {\n'
            ' a = tensorlint.Transfer <device = "emulated:1"> (x)\n p = Softmax (a)\n b = tensorlint.Transfer <device = "emulated:0"> (p)\n'
            ' m = ReduceMax (b)\n y = tensorlint.Transfer <device = "cpu"> (m)\n}\n'
        )
        result = self.run_text(text, "--device", "emulated:0,emulated:1", "--timings")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"emulated:1 +[\d.]+  `#1\(Softmax\)`")
        self.assertRegex(result.stdout, r"emulated:0 +[\d.]+  `#3\(ReduceMax\)`")
        self.assertIn("copies, as planned: 2 to emulated:0, emulated:1 (144 bytes), 2 from it (76 bytes); memory there: 96, 160 bytes\n", result.stdout)

    def test_defaults_that_a_run_replaces_are_no_constants_of_a_loss(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            np.save(root / "a.npy", np.array([1, 2, 4, 8], np.float32))
            np.save(root / "b.npy", np.array([1, 0, 1, 3], np.float32))
            np.save(root / "w.npy", np.float32(3))
            model = root / "m.onnxtxt"
            for body, expected in (("s = Mul (d, d) e = Mul (s, w)", 28.5), ("e = Pow (d, w)", 40.0)):
                default = "1" if "Mul" in body else "2"
                model.write_text(f'''<ir_version: 10, opset_import: ["": 21]>
                    g (float[4] a, float[4] b, float w = {{{default}}}) => (float y) {{ d = Sub (a, b) {body} y = ReduceMean <keepdims = 0> (e) }}''')
                for device in ([], ["--device=emulated:0"]):
                    result = execute(f"--model={model}", "--text=", *(f"--inputs={name}={root / name}.npy" for name in "abw"), *device)
                    self.assertEqual(result.stdout, f"`y`: float32[] = {expected:g}\n", result.stderr)

    def test_node_that_makes_the_data_and_its_shape(self) -> None:
        """The shape is known, so that the Reshape does not read it; the If, which nothing else reads, runs for the data."""
        text = (
            '<ir_version: 10, opset_import: ["": 21]>\ng (float[6] x, bool c) => (float[2, 3] y) {\n v, s = If (c) <\n'
            "  then_branch = t () => (float[6] a, int64[2] p) { a = Neg (x) p = Constant <value_ints = [2, 3]> () },\n"
            "  else_branch = e () => (float[6] b, int64[2] q) { b = Abs (x) q = Constant <value_ints = [2, 3]> () }>\n"
            " y = Reshape (v, s)\n}\n"
        )
        plain, on_device = self.run_text(text), self.run_text(text, "--device", "emulated:0", "--timings")
        self.assertEqual(on_device.returncode, 0, on_device.stderr)
        self.assertEqual(on_device.stdout.splitlines()[0], plain.stdout.splitlines()[0])
        self.assertRegex(on_device.stdout, r"\(Reshape\): view\n")

    def test_products_by_cublaslt(self) -> None:
        library = str(RUNNER.with_name("libcublaslt_stand_in.so"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnxtxt"
            path.write_text(
                '<ir_version: 10, opset_import: ["": 21]>\ng (float[6, 3] x, float[3, 5] w, float[5] b) => (float[6, 5] y) {\n'
                " [plain] p = MatMul (x, w)\n [scaled] y = Gemm <beta = 2.0> (x, w, b)\n}\n"
            )
            command = [TOOL, "run", str(path), "--seed", "1", "--device", "emulated:0", "--timings"]
            ours = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            for products in ("cublaslt", "cublaslt-tf32"):
                asked = [*command, "--products", products, "--cublaslt", library]
                result = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, r"emulated:0 +[\d.]+  `plain` \(MatMul\): matrix_product, by cublasLt\n")
                self.assertRegex(result.stdout, r"`scaled` \(Gemm\): matrix_product, addend, not by cublasLt because the row that it adds is scaled\n")
        self.assertRegex(ours.stdout, r"`plain` \(MatMul\): matrix_product\n")

    def test_what_is_not_worth_its_copies_stays(self) -> None:
        result = self.run_loss("--device", "emulated:0", "--sides", "cost", "--timings")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"interpreter +[\d.]+  `loss` \(ReduceMean\): copies for `pointwise_loss squared, mean` cost more than running here\n")
        self.assertIn("copies, as planned: 0 to emulated:0 (0 bytes), 0 from it (0 bytes)", result.stdout)

    def test_operands_that_are_not_there_are_errors_with_force(self) -> None:
        inputs = "float[1, 1, 1, 1] q, float[1, 1, 1, 1] k"
        calls = [f"y = Attention <q_num_heads = 1, kv_num_heads = 1> ({given})" for given in ("", "q", "q, k", "q, , k", ", q, k")]
        calls += [f"y = {op} ({given})" for op in ("Pow", "Div", "Cast <to = 1>", "Where", "MatMul", "Softmax", "LayerNormalization", "Add", "Mod", "Clip") for given in ("", ", q")]
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "m.onnx"
            for call in calls:
                with self.subTest(call):
                    text = f'<ir_version: 10, opset_import: ["": 24]> g ({inputs}) => (float[1, 1, 1, 1] y) {{ {call} }}'
                    model.write_bytes(onnx.parser.parse_model(text).SerializeToString())
                    result = subprocess.run([TOOL, "run", model, "--seed", "1", "--force", "--device", "emulated:0"], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                    self.assertIn("node `", result.stderr)

    def test_what_fails_for_certain_fails_on_a_device_too(self) -> None:
        for shape, node in (
            ("1,2,3", "y = MaxPool <kernel_shape = [1], pads = [2, 2]> (x)"),
            ("1,2,3", "y = AveragePool <kernel_shape = [2], pads = [3, 3]> (x)"),
            ("1,2", "y, z = Split <axis = 0, num_outputs = 2> (x)"),
        ):
            with self.subTest(node), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "m.onnxtxt"
                path.write_text(f'<ir_version: 8, opset_import: ["": 18]>\ng (float[{shape}] x) => (y) {{ {node} }}\n')
                command = [TOOL, "run", "--force", "--seed", "1", str(path)]
                here, there = (subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False) for more in ([], ["--device", "emulated:0"]))
                self.assertEqual((here.returncode, there.returncode, there.stdout), (2, 2, ""))
                self.assertEqual(here.stderr, there.stderr)

    def test_refusals(self) -> None:
        for arguments, message in (
            (["--device", "gpu"], "`gpu` is not a device: cpu, cuda:N or emulated:N"),
            (["--device", "cuda:x"], "`cuda:x` is not a device"),
            (["--device", "emulated:9"], "emulated:9: there are 2 emulated devices"),
            (["--device", "emulated:0,emulated:0"], "--device names emulated:0 twice"),
            (["--device", "emulated:0,"], "`` is not a device"),
            (["--device", "emulated:0", "--sides", "gpu"], "`--sides=gpu`: expected cost or kernels"),
            (["--sides", "cost"], "it needs --device"),
            (["--device", "emulated:0,emulated:1", "--sides", "cost"], "--sides works with one device"),
            (["--gradient"], "it needs --device"),
            (["--products", "cublaslt"], "--products chooses what multiplies matrices on a device: it needs --device"),
            (["--device", "emulated:0", "--cublaslt", "x.so"], "it needs --products cublaslt or cublaslt-tf32"),
            (["--device", "emulated:0", "--products", "blas"], "`--products=blas`: expected kernels, cublaslt or cublaslt-tf32"),
            (["--device", "emulated:0", "--products", "cublaslt"], "emulated:0: cublasLt "),
            (["--device", "emulated:0", "--products", "cublaslt", "--cublaslt", "/nowhere/x.so"], "emulated:0: cublasLt cannot be loaded: /nowhere/x.so: "),
            (["--device", "emulated:0", "--dump", "d"], "they run on the cpu, without --device"),
            (["--device", "emulated:0", "--check-facts"], "they run on the cpu, without --device"),
            (["--device", "emulated:0", "--memory-limit", "175"], "bytes"),
        ):
            with self.subTest(arguments=arguments):
                result = self.run_loss(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(message, result.stderr)
        self.assertEqual(self.run_loss("--device", "cpu").returncode, 0)
        for option, form in (("--device", "cpu, cuda:N or emulated:N"), ("--cublaslt", "the file of a library")):
            self.assertIn(f"`{option}=`: expected {form}", subprocess.run([RUNNER, f"{option}="], capture_output=True, text=True, timeout=60, check=False).stderr)

    def test_without_a_gpu_cuda_says_so(self) -> None:
        if Path("/dev/nvidiactl").exists():
            self.skipTest("there is a driver")
        result = self.run_loss("--device", "cuda:0")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertTrue(result.stderr.startswith("tensorlint run: cuda:0"), result.stderr)
        # Built without nvcc, or with it: the machine has no driver.
        self.assertRegex(result.stderr, "which is not installed beside this program|this machine has no NVIDIA driver: install one that runs CUDA")


if __name__ == "__main__":
    unittest.main()
