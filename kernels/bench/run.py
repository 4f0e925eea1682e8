"""Measures the kernels on a GPU machine, part by part, and prints tables: run it again until it says that all is done.

    run.py --bench PATH/kernels_bench [--out results.jsonl] [--seconds 540] [--parts a,b]

Parts of kernels_bench: device, bandwidth, correctness, determinism, losses, reductions. Programs beside it: tests (the kernels' own test
suites on the GPU, kernels_device_tests) and executor (tensorlint-run over exported models: results on the GPU against the interpreter's,
and the time of both); one that is missing has failed. Where they are installed: torch (the
same operations by torch eager and torch.compile, in the same run), sanitizer (compute-sanitizer's memcheck, racecheck and synccheck over the
correctness part) and ncu (throughput and instruction figures of the headline kernels). Each appends lines of JSON to --out and notes what
is finished, so that a run cut off after --seconds (a call on a lent machine ends after 9 minutes) goes on where it stopped. Exit: 0 all
done, 1 all done and something failed, 2 nothing to measure with, 3 to be run again.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import table

BENCH_PARTS = ["device", "bandwidth", "correctness", "determinism", "losses", "reductions"]
PARTS = [*BENCH_PARTS, "tests", "executor", "torch", "sanitizer", "ncu"]
HEADLINE = "class_rows|class_columns|pointwise_loss|reduce_rows"
METRICS = ["dram__throughput.avg.pct_of_peak_sustained_elapsed", "sm__inst_issued.avg.pct_of_peak_sustained_active",
           "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "launch__registers_per_thread", "lts__t_sector_hit_rate.pct",
           "gpu__time_duration.sum"]


class Results:
    """The lines of --out: what is finished, and a place for more."""

    def __init__(self, path):
        self.path = path

    def records(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def finished(self):
        return {record["finished"] for record in self.records() if "finished" in record}

    def failed(self):
        """The parts of which something failed."""
        return sorted({record["part"] for record in self.records() if record.get("status", 0) not in (0, "ok")})

    def add(self, *records):
        with self.path.open("a", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
                print(json.dumps(record), flush=True)

    def finish(self, name, *records):
        self.add(*records, {"finished": name})


def run_bench(options, results, part, seconds):
    """True when the part is finished; a part that runs out of time is begun anew by the next call."""
    try:
        ran = subprocess.run([str(options.bench), "--out", str(results.path), "--parts", part], timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    if ran.returncode != 0:
        sys.exit(2)
    return True


def tests_part(options, results, deadline):
    path = options.bench.with_name("kernels_device_tests")
    if not path.exists():
        results.finish("tests", {"part": "tests", "status": "failed", "note": f"{path.name} is not there"})
        return True
    try:
        ran = subprocess.run([str(path), "--gtest_brief=1"], capture_output=True, text=True, timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    failed = [line.split()[3].rstrip(",") for line in ran.stdout.splitlines() if line.startswith("[  FAILED  ]") and " (" in line]
    passed = re.search(r"PASSED  \] (\d+) test", ran.stdout)
    results.finish("tests", {"part": "tests", "status": ran.returncode, "passed": int(passed[1]) if passed else 0, "failed": " ".join(failed)[:500]})
    return True


def executor_part(options, results, deadline):
    """Each model with drawn inputs, by the interpreter and on the device: one record a model, with which the next call goes on."""
    program, models = options.bench.with_name("tensorlint-run"), options.models or options.bench.with_name("models")
    paths = sorted(models.glob("*.onnx"))
    missing = [str(path) for path, there in ((program, program.exists()), (models / "*.onnx", paths)) if not there]
    if missing:
        results.finish("executor", {"part": "executor", "status": "failed", "note": f"{missing[0]} is not there"})
        return True
    libraries = os.pathsep.join(filter(None, [str(program.with_name("lib")), os.environ.get("LD_LIBRARY_PATH")]))

    def run(model, *arguments):
        return subprocess.run([str(program), f"--model={model}", "--seed=1", "--timings=total", "--repeat=5", *arguments], capture_output=True,
                              text=True, timeout=max(1.0, deadline - time.monotonic()), env={**os.environ, "LD_LIBRARY_PATH": libraries})

    def seconds(ran):
        shown = re.search(r"run: ([\d.]+) s", ran.stdout)
        return float(shown[1]) if shown else None

    for path in paths:
        if f"executor {path.name}" in results.finished():
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                host = run(path, f"--outputs={folder}")
                device = run(path, f"--device={options.device}", "--sides=kernels", f"--expect={folder}", "--rtol=1e-5", "--atol=1e-6")
            except subprocess.TimeoutExpired:
                return False
        record = {"part": "executor", "model": path.name, "status": "ok" if host.returncode == device.returncode == 0 else "failed",
                  "interpreter_s": seconds(host), "device_s": seconds(device)}
        if host.returncode != 0 and device.returncode == host.returncode:
            record["status"] = "ok"  # what the interpreter refuses, too
        note = (device.stderr.strip() or host.stderr.strip()).splitlines()
        results.finish(f"executor {path.name}", {**record, "note": note[0][:300]} if note else record)
    results.finish("executor")
    return True


def torch_part(options, results, deadline):
    probe = subprocess.run([options.python, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True, text=True)
    if probe.returncode != 0:
        results.finish("torch", {"part": "torch", "note": "not there: " + (probe.stderr.strip().splitlines() or ["no torch"])[-1]})
        return True
    script = pathlib.Path(__file__).with_name("torch_part.py")
    try:
        ran = subprocess.run([options.python, str(script), str(results.path), str(deadline - time.monotonic())],
                             timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    if ran.returncode == 3:
        return False
    results.finish("torch", *([] if ran.returncode == 0 else [{"part": "torch", "note": f"ended with status {ran.returncode}"}]))
    return True


def tool(name):
    found = shutil.which(name)
    places = [*pathlib.Path("/usr/local").glob(f"cuda*/bin/{name}"), *pathlib.Path("/usr/local").glob(f"cuda*/compute-sanitizer/{name}"),
              *pathlib.Path("/opt/nvidia").glob(f"nsight-compute/*/{name}")]
    return found or next((str(path) for path in places), None)


def sanitizer_part(options, results, deadline):
    path = tool("compute-sanitizer")
    if path is None:
        results.finish("sanitizer", {"part": "sanitizer", "note": "compute-sanitizer is not there"})
        return True
    for check in ("memcheck", "racecheck", "synccheck"):
        name = f"sanitizer {check}"
        if name in results.finished():
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [path, "--tool", check, "--error-exitcode", "7", str(options.bench), "--parts", "correctness", "--out", folder + "/x.jsonl"]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return False
        last = [line for line in ran.stdout.splitlines() if "ERROR SUMMARY" in line or "RACECHECK SUMMARY" in line]
        results.finish(name, {"part": "sanitizer", "tool": check, "status": ran.returncode,
                              "summary": last[-1].strip("= ") if last else (ran.stderr.strip().splitlines() or [""])[-1][:200]})
    results.finish("sanitizer")
    return True


def ncu_part(options, results, deadline):
    path = tool("ncu")
    if path is None:
        results.finish("ncu", {"part": "ncu", "note": "ncu is not there"})
        return True
    with tempfile.TemporaryDirectory() as folder:
        command = [path, "--csv", "--page", "raw", "--metrics", ",".join(METRICS), "--kernel-name-base", "function", "--kernel-name",
                   f"regex:{HEADLINE}", str(options.bench), "--once", "1", "--parts", "losses,reductions", "--out", folder + "/x.jsonl"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
    results.finish("ncu", *ncu_lines(ran.stdout, ran.stderr))
    return True


def ncu_lines(text, errors):
    """One record for each kernel and grid of ncu's raw CSV page; its complaint where there is none."""
    import csv
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    seen = {}
    for row in rows:
        if row.get("Kernel Name"):
            seen.setdefault((row["Kernel Name"], row.get("Grid Size", "")), row)
    records = [{"part": "ncu", "operation": name, "grid": grid, **{metric: row.get(metric, "") for metric in METRICS}}
               for (name, grid), row in seen.items()]
    if records:
        return records
    complaint = [line for line in (text + "\n" + errors).splitlines() if "ERR" in line or "rror" in line]
    return [{"part": "ncu", "note": (complaint or ["no kernels were profiled"])[0][:200]}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results.jsonl"))
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--device", default="cuda:0", help="of the executor's part")
    parser.add_argument("--models", type=pathlib.Path, help="the folder of the executor's part; models/ beside kernels_bench")
    parser.add_argument("--python", default=sys.executable, help="the Python that has torch")
    options = parser.parse_args()
    options.bench = options.bench.resolve()
    results = Results(options.out)
    wanted = options.parts.split(",")
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"no part `{unknown[0]}`; there are: {', '.join(PARTS)}")
    deadline = time.monotonic() + options.seconds
    own = {"tests": tests_part, "executor": executor_part, "torch": torch_part, "sanitizer": sanitizer_part, "ncu": ncu_part}
    for part in wanted:
        if part in results.finished():
            continue
        left = deadline - time.monotonic()
        if left < 5 or not (own[part](options, results, deadline) if part in own else run_bench(options, results, part, left)):
            print(f"stopped in `{part}`: run it again to go on")
            return 3
    print(table.text(results.path))
    failed = results.failed()
    print(f"all done, but these parts failed: {', '.join(failed)}" if failed else "all done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
