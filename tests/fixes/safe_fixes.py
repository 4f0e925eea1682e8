"""What safe fixes do to faulty models: `safe_fixes.py MODEL...` or `safe_fixes.py --list FILE` (one path a line).

Each model with a finding that offers a safe fix is fixed; the fixed model must have no finding of that rule at that node, and none
that the model did not have before. Without errors left it must pass onnx.checker, and onnxruntime must load what it loaded before.
Where onnxruntime runs a model before and after, both give the same values. `--list` may name a twin without the fault."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

TOOL = os.environ.get("TENSORLINT_BINARY", str(Path(__file__).resolve().parents[2] / "build/bin/tensorlint"))


def findings(path: str) -> list[dict]:
    result = subprocess.run([TOOL, "check", "--format", "json", path], capture_output=True, text=True, timeout=120, check=False)
    return json.loads(result.stdout)["findings"] if result.returncode in (0, 1) else []


def key(finding: dict) -> tuple[str, str, str]:
    return finding["rule"], finding["graph"], finding["node"] or ""


def fixed_by_tool(path: str, out: str) -> tuple[int, Counter]:
    result = subprocess.run([TOOL, "fix", path, "-o", out], capture_output=True, text=True, timeout=120, check=False)
    rules = Counter(line.split()[1] for line in result.stdout.splitlines() if line.startswith("fixed "))
    return result.returncode, rules


def feeds(model, np, onnx) -> dict | None:
    """Random values of the declared types; named dims are 4. None where an input is no tensor of numbers."""
    random = np.random.default_rng(7)
    constants = {tensor.name for tensor in model.graph.initializer}
    values = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        if tensor.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
            return None
        shape = [dim.dim_value if dim.dim_value > 0 else 4 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        values[value.name] = (random.integers(0, 2, shape) if not np.issubdtype(dtype, np.floating) else random.random(shape)).astype(dtype)
    return values


def outputs(path: str, values: dict) -> list | None:
    """None where onnxruntime does not load or run the model."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, values)
    except Exception:  # every reason is the same to us
        return None


def agree(first: list, second: list, np) -> bool:
    def same(a, b) -> bool:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return False
        if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
            return bool((a == b).all())
        return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-5, equal_nan=True))

    return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second))


class Measure:
    def __init__(self) -> None:
        self.counts: Counter = Counter()
        self.rules: Counter = Counter()
        self.wrong: list[str] = []

    def model(self, path: str, twin: str | None = None) -> None:
        before = findings(path)
        offered = [finding for finding in before if any(fix["applicability"] == "safe" for fix in finding["fixes"])]
        self.counts["models"] += 1
        if not offered:
            return
        self.counts["with a safe fix offered"] += 1
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder) / Path(path).name)
            _, rules = fixed_by_tool(path, out)
            if not rules:
                self.counts["advice only"] += 1
                return
            self.rules.update(rules)
            self.counts["fixed"] += 1
            after = findings(out)
            left = {key(finding) for finding in after}
            known = Counter((*key(finding), finding["value"]) for finding in before)
            for rule, graph, node, value in Counter((*key(finding), finding["value"]) for finding in after) - known:
                self.wrong.append(f"{path}: the fix adds {rule} at {node or graph} ({value})")
            if not any(finding["severity"] == "error" for finding in after):
                self.checker(path, out)
            for finding in offered:
                if finding["rule"] in rules and key(finding) in left:
                    self.wrong.append(f"{path}: {finding['rule']} is still there at {finding['node']}")
            self.values(path, out, "as before")
            if twin is not None:
                self.values(twin, out, "as the twin")

    def checker(self, path: str, fixed: str) -> None:
        import onnx

        try:
            onnx.checker.check_model(fixed, full_check=True)
        except Exception as error:  # every reason is the same to us
            self.wrong.append(f"{path}: the checker refuses the fixed model: {str(error).splitlines()[0]}")

    def values(self, other: str, fixed: str, what: str) -> None:
        import numpy as np
        import onnx

        given = feeds(onnx.load(other), np, onnx)
        if given is None:
            self.counts[f"values {what}: no inputs to give"] += 1
            return
        a, b = outputs(fixed, given), outputs(other, given)
        if a is None and b is not None:
            self.wrong.append(f"{other}: onnxruntime runs it, but not the fixed model")
        if a is None or b is None:
            self.counts[f"values {what}: not run by both"] += 1
        elif agree(a, b, np):
            self.counts[f"values {what}: same"] += 1
        else:
            self.counts[f"values {what}: others"] += 1
            if what == "as before":
                self.wrong.append(f"{other}: the fix changes values")

    def text(self) -> str:
        lines = [f"{name}: {number}" for name, number in self.counts.items()]
        lines += [f"  {rule}: {number} fixed" for rule, number in self.rules.most_common()]
        return "\n".join(lines + self.wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--list", help="file with a path, or a path and its twin, in each line")
    arguments = parser.parse_args()
    pairs: list[tuple[str, str | None]] = [(model, None) for model in arguments.models]
    if arguments.list:
        for line in Path(arguments.list).read_text().splitlines():
            parts = line.split("\t")
            pairs.append((parts[0], parts[1] if len(parts) > 1 else None))
    measure = Measure()
    for model, twin in pairs:
        measure.model(model, twin)
    print(measure.text())
    return 1 if measure.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
