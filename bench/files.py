"""Time and memory of large files, warm and cold, beside onnx.load and onnx.checker.check_model in the same run.

  files.py [--tool FILE] [--runs N] [--folder DIR] [MODEL...]      needs onnx and numpy

Without a MODEL: 45 MB (the size of a resnet18) and 450 MB of weights, as generated here. "Cold": the file's pages are evicted
before each run (posix_fadvise DONTNEED), so the folder must be on a disk. Programs take turns; the least of N runs is shown with
the median, and ratios are of these least times. "call" is the work alone, without starting a process or importing onnx; memory is
the peak resident set of the process.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = {
    "onnx.load": "model = onnx.load(path)",
    "onnx.checker": "onnx.checker.check_model(path)",
}
CHILD = """
import json, resource, sys, time
import onnx
path = sys.argv[1]
start = time.perf_counter()
{call}
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def weights_model(size: int, layers: int) -> bytes:
    """A model of `layers` times MatMul, Add, Relu with float weights of about `size` bytes in all, in the file itself."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    width = int((size / 4 / layers) ** 0.5)
    weights = np.random.default_rng(0).standard_normal((width, width)).astype(np.float32)
    nodes, initializers, value = [], [], "x"
    for layer in range(layers):
        initializers += [numpy_helper.from_array(weights, f"layer{layer}.weight"), numpy_helper.from_array(weights[0], f"layer{layer}.bias")]
        for op, operands in [("MatMul", [value, f"layer{layer}.weight"]), ("Add", [f"layer{layer}.MatMul", f"layer{layer}.bias"]), ("Relu", [f"layer{layer}.Add"])]:
            value = f"layer{layer}.{op}"
            nodes.append(helper.make_node(op, operands, [value], name=value))
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width])] for name in ["x", value])
    graph = helper.make_graph(nodes, "weights", inputs, outputs, initializers)
    return onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def evict(path: pathlib.Path) -> None:
    """Takes the file out of the system's cache, where that lies on a disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def tensorlint(tool: str, path: pathlib.Path) -> tuple[float, int]:
    result = subprocess.run([tool, "check", "--format", "json", "--timings", path], capture_output=True, check=False)
    report = json.loads(result.stdout)["inputs"][0]
    return report["seconds"]["total"], report["peak_rss_bytes"]


def peer(name: str, path: pathlib.Path) -> tuple[float, int]:
    result = subprocess.run([sys.executable, "-c", CHILD.format(call=PEERS[name]), path], capture_output=True, check=True)
    seconds, memory = json.loads(result.stdout)
    return seconds, memory


def measure(tool: str, path: pathlib.Path, runs: int) -> None:
    import onnx

    for is_cold in [False, True]:
        found: dict[str, list[tuple[float, int]]] = {"tensorlint": [], **{name: [] for name in PEERS}}
        for run in range(-1, runs):
            for name, measured in found.items():
                if is_cold:
                    evict(path)
                figures = tensorlint(tool, path) if name == "tensorlint" else peer(name, path)
                if run >= 0:  # the first only fills the caches
                    measured.append(figures)
        own = min(found["tensorlint"])[0]
        for name, measured in found.items():
            times = [seconds for seconds, _ in measured]
            version = f" {onnx.__version__}" if name != "tensorlint" else ""
            print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB, {'cold' if is_cold else 'warm'}: {name}{version} {min(times) * 1e3:.2f} ms "
                  f"(median {statistics.median(times) * 1e3:.2f}), {max(memory for _, memory in measured) / 1e6:.1f} MB; {min(times) / own:.1f} times tensorlint's")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tool", default=os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint")))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", default=str(ROOT / ".cache"), help="where models are generated")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.models:
        for path in arguments.models:
            measure(arguments.tool, path, arguments.runs)
        return 0
    pathlib.Path(arguments.folder).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for megabytes, layers in [(45, 60), (450, 600)]:
            path = pathlib.Path(folder) / f"weights_{megabytes}.onnx"
            path.write_bytes(weights_model(megabytes * 1_000_000, layers))
            measure(arguments.tool, path, arguments.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
