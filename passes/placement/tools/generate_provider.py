"""Makes a provider table (docs/providers.md) of the kernel tables that onnxruntime publishes.

generate_provider.py OperatorKernels.md CUDAExecutionProvider cuda cuda:0 "onnxruntime 1.23.0" > providers/cuda.txt
"""
import re
import sys
from pathlib import Path

DTYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bfloat16": "bfloat16", "bool": "bool", "string": "string",
    "float8e4m3fn": "float8e4m3fn", "float8e4m3fnuz": "float8e4m3fnuz", "float8e5m2": "float8e5m2", "float8e5m2fnuz": "float8e5m2fnuz",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)},
}  # fmt: skip
DOMAINS = {"ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml.", "com.microsoft": "com.microsoft."}

# Kernels that the page leaves out, since they constrain no types: what `get_all_opkernel_def` of onnxruntime's Python module
# lists of the cpu, and core/providers/cuda/object_detection/non_max_suppression.cc.
UNLISTED = {
    "CPUExecutionProvider": [
        "NonMaxSuppression 11+",
        "NonMaxSuppression 10-10",
        "com.microsoft.QLinearAveragePool 1+",
        "com.microsoft.QLinearConcat 1+",
        "com.microsoft.QLinearGlobalAveragePool 1+",
    ],
    "CUDAExecutionProvider": ["NonMaxSuppression 11+", "NonMaxSuppression 10-10"],
}  # fmt: skip


def constraints(text: str) -> list[str]:
    """`**T** = tensor(float), ...<br/> **U** = ...`; types other than tensors say nothing."""
    found = []
    for part in re.split(r"<br/>", text):
        match = re.match(r"\s*\*\*(.+?)\*\* = (.+)", part)
        if not match:
            continue
        names = re.findall(r"(?<!\()\btensor\((\w+)\)", match[2])
        unknown = [name for name in names if name not in DTYPES]
        if unknown:
            sys.exit(f"unknown types {unknown} in {text}")
        if names and "seq(" not in match[2]:
            found.append(f"{match[1]}={','.join(DTYPES[name] for name in names)}")
    return found


def versions(text: str) -> str:
    """`13+`, `[6, 12]`, `13` as `13+`, `6-12`, `13-13`."""
    if text.endswith("+"):
        return text
    low, _, high = text.strip("[]").partition(", ")
    return f"{low}-{high or low}"


def main() -> None:
    source, provider, name, device, release = sys.argv[1:]
    rows: list[str] = []
    domain, op, inside = None, "", False
    for line in Path(source).read_text(encoding="utf-8").splitlines():
        if line.startswith("## Operators implemented by "):
            inside = line.split()[-1] == provider
        if not inside or not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if match := re.match(r"\*\*Operator Domain:\*\* \*(.+)\*", cells[0]):
            domain = DOMAINS.get(match[1])
            continue
        cells = line.rstrip("\n").split("|")[1:-1]
        if domain is None or len(cells) != 4 or cells[0] in ("Op Name", "---------"):
            continue
        op = cells[0] or op
        rows.append(" ".join([domain + op, versions(cells[2].strip()), *constraints(cells[3])]))
    print(f"# {provider} of {release}, from docs/OperatorKernels.md by generate_provider.py")
    print(f"provider {name}\ndevice {device}\nsource {release}")
    print("\n".join(rows + UNLISTED.get(provider, [])))


if __name__ == "__main__":
    main()
