"""All models that the onnx package brings for testing backends (its files, and its node tests, which it makes when asked), our
samples and the exported losses: read, rebuilt from the graph, and equal for libprotobuf. Folders given as arguments are
tried instead."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import onnx
import onnx.backend.test.case.model
import onnx.backend.test.case.node


def main() -> int:
    tool = os.environ["TENSORLINT_REBUILD"]
    if sys.argv[1:]:
        return subprocess.run([tool, *sys.argv[1:]], check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # overflows in the reference values, which nobody looks at here
        cases = [*onnx.backend.test.case.node.collect_testcases(None), *onnx.backend.test.case.model.collect_testcases()]
        for number, case in enumerate(cases):
            if case.model is not None:
                Path(folder, f"{number}-{case.name}.onnx").write_bytes(case.model.SerializeToString())
        count = len(os.listdir(folder))
        if count < 1500:
            print(f"the onnx package made only {count} models")
            return 1
        data = Path(onnx.__file__).parent / "backend" / "test" / "data"
        root = Path(__file__).resolve().parents[2]
        return subprocess.run([tool, folder, data, root / "samples", root / "tests" / "models"], check=False).returncode


sys.exit(main())
