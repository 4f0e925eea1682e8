"""ONNX's backend tests in the interpreter: every one agrees, within the test's own tolerance, or is listed in
not_run.txt with the reason why it is not run."""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

warnings.simplefilter("ignore")
KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator"]
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
HERE = pathlib.Path(__file__).resolve().parent


def to_message(value, declared):
    if isinstance(value, (TensorProto, onnx.SequenceProto, onnx.OptionalProto)):
        return value
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value) if value else onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR)
    if kind == "optional_type":
        return numpy_helper.from_optional(value)
    return numpy_helper.from_array(np.asarray(value))


def folders(root, operators=None):
    """[(name, kind, folder with model.onnx and test_data_set_0, rtol, atol)]; tests with random results are left out, and
    with `operators` those without any of these."""
    from onnx.backend.test.loader import load_model_tests
    for kind in KINDS:
        for test in load_model_tests(kind=kind):
            if test.model is None:
                if test.model_dir is None:
                    continue
                model = onnx.load(os.path.join(test.model_dir, "model.onnx"))
                folder = pathlib.Path(test.model_dir)
            else:
                model, folder = test.model, root / test.name
                if operators is not None and not any(node.op_type in operators for node in model.graph.node):
                    continue
                data = folder / "test_data_set_0"
                data.mkdir(parents=True)
                (folder / "model.onnx").write_bytes(model.SerializeToString())
                for prefix, values, declared in (("input", test.data_sets[0][0], model.graph.input), ("output", test.data_sets[0][1], model.graph.output)):
                    for i, value in enumerate(values):
                        if value is not None:
                            (data / f"{prefix}_{i}.pb").write_bytes(to_message(value, declared[i]).SerializeToString())
            if not any(node.op_type in RANDOM for node in model.graph.node):
                yield test.name, kind, folder, test.rtol, test.atol


def run(case, *options):
    name, kind, folder, rtol, atol = case
    program = os.path.join(os.path.dirname(os.environ["TENSORLINT_BINARY"]), "tensorlint-run")
    data = folder / "test_data_set_0"
    command = [program, f"--model={folder / 'model.onnx'}", f"--inputs={data}", f"--expect={data}", f"--rtol={rtol}", f"--atol={atol}", *options]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, errors="replace")
    except subprocess.TimeoutExpired:
        return name, kind, -1, "it takes more than 60 s"
    return name, kind, result.returncode, result.stderr.strip()


def listed():
    """{test: reason} from lines `test_name: reason`."""
    lines = (HERE / "not_run.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print what does not pass in the form of not_run.txt")
    arguments = parser.parse_args()
    expected = listed()
    passed, total, wrong = {}, {}, []
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, kind, code, message in pool.map(run, folders(pathlib.Path(root))):
            total[kind] = total.get(kind, 0) + 1
            passed[kind] = passed.get(kind, 0) + (code == 0)
            if arguments.list and code != 0:
                print(f"{name}: {message.splitlines()[-1] if message else code}")
            if code == 0 and name in expected:
                wrong.append(f"{name} passes: take it out of not_run.txt")
            if code != 0 and code != (1 if expected.get(name, "").startswith("rounding:") else 2 if name in expected else 0):
                wrong.append(f"{name}: exit code {code}: {message[-300:]}")
    for kind in KINDS:
        print(f"{kind}: {passed[kind]} of {total[kind]} agree")
    for line in wrong[:40]:
        print(line)
    return 1 if wrong or total["node"] < 1800 else 0


if __name__ == "__main__":
    sys.exit(main())
