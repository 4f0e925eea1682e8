"""The cost of copies in ../shared/cases/placement/real_cost, exactly as counted there. Without that folder: skipped."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared/cases/placement/real_cost"
KEYS = ("copies", "bytes", "setup_copies", "setup_bytes")


def cost_of(binary, model):
    command = [binary, "check", "--placement", "runtime", "--format", "json", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    return report["inputs"][0].get("cost"), report["findings"]


def differences(binary, folder):
    wrong, cases = [], 0
    for name, expected in json.loads((CASES / "expected.json").read_text()).items():
        cost, findings = cost_of(binary, folder / name)
        said = [cost["min"], cost["max"]] if cost and "min" in cost else [cost]
        wanted = sorted(expected, key=lambda case: case["bytes"])
        cases += len(wanted)
        for ours, theirs in zip(said, wanted):
            if not ours or any(ours[k] != theirs[k] for k in KEYS) or ours.get("conditions", {}) != theirs["condition"]:
                wrong.append(f"{name}: {ours}, not {theirs}")
        if len(said) != len(wanted):
            wrong.append(f"{name}: {len(said)} costs, not {len(wanted)}")
        blamed = sorted({f["node"] for f in findings if f["rule"] in ("costly-transfers", "transfer-in-loop")})
        if blamed != wanted[-1]["nodes"]:
            wrong.append(f"{name}: copies at {blamed}, not at {wanted[-1]['nodes']}")
    return wrong, cases


def main():
    binary = os.environ.get("TENSORLINT_BINARY")
    if not binary:
        sys.exit("TENSORLINT_BINARY is not set")
    if not CASES.is_dir():
        print("skipped: the cases are not beside this tree")
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(CASES / "make.py"), folder], check=True)
        wrong, cases = differences(binary, pathlib.Path(folder))
    print("\n".join(wrong) or f"{cases} cases, all exact")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
