"""Times `tensorlint check` against onnx.checker's full check on the same models, in turn.

  check_vs_onnx.py [--pairs N] [--tool FILE] [--floor FILE] [--timeout S] [--json FILE] MODEL...      needs onnx

Each pair runs one process of either, one after the other and in changing order, so that a machine whose speed drifts
slows both.  "call" is the work alone (`--timings` of tensorlint; the checker's call on the path, without starting Python
and importing onnx); "process" is the whole process.  Ratios are taken pair by pair.  Memory is the peak resident set that
wait4 reports; it cannot fall below that of this process, which a child starts from ("least").  --floor names the program of
floor.cc, what loading costs at least; it takes its turn too, and the last ratio is tensorlint's call to its pass.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ME = os.path.abspath(__file__)


def checker_child(path):
    import onnx
    start = time.perf_counter()
    onnx.checker.check_model(path, full_check=True)
    print(json.dumps({"seconds": time.perf_counter() - start}))


def run(command, timeout):
    """Runs `command`; returns wall seconds, peak KiB, exit code (None after a timeout) and standard output."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        expired = threading.Event()

        def stop():
            expired.set()
            os.kill(pid, signal.SIGKILL)

        timer = threading.Timer(timeout, stop)
        timer.start()
        # The child stays a zombie until it is waited for, so the timer cannot hit another process before cancel().
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - start
        timer.cancel()
        timer.join()
        _, status, usage = os.wait4(pid, 0)
        output.seek(0)
        errors.seek(0)
        code = None if expired.is_set() else os.waitstatus_to_exitcode(status)
        return {"wall": wall, "peak_kib": usage.ru_maxrss, "code": code, "output": output.read(), "errors": errors.read().decode(errors="replace")}


def tensorlint(tool, path, timeout):
    result = run([tool, "check", "--format", "json", "--timings", path], timeout)
    if result["code"] in (0, 1):
        try:
            report = json.loads(result["output"])
        except ValueError:
            return result
        result["call"] = report["inputs"][0]["seconds"]["total"]
        result["phases"] = report["inputs"][0]["seconds"]
        result["summary"] = report["summary"]
    return result


def checker(path, timeout):
    result = run([sys.executable, ME, "--checker-child", path], timeout)
    if result["code"] == 0:
        result["call"] = json.loads(result["output"])["seconds"]
    return result


def floor_pass(program, path, timeout):
    result = run([program, path], timeout)
    if result["code"] == 0:
        result["call"] = float(result["output"].split()[0])
    return result


def outcome(result):
    if result["code"] is None:
        return "timed out"
    if "call" not in result:
        return f"no result, exit code {result['code']}: " + result["errors"].strip()[-200:]
    return None


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def measure(tool, floor, path, pairs, timeout):
    tools = {"tensorlint": lambda: tensorlint(tool, path, timeout), "onnx": lambda: checker(path, timeout)}
    if floor:
        tools["floor"] = lambda: floor_pass(floor, path, timeout)
    kept = {name: [] for name in tools}
    failures = {}
    for i in range(pairs):
        for name in list(tools) if i % 2 == 0 else list(tools)[::-1]:
            if name in failures:
                continue
            result = tools[name]()
            failure = outcome(result)
            if failure:
                failures[name] = failure
            else:
                kept[name].append(result)
    row = {"model": os.path.basename(path), "bytes": os.path.getsize(path), "pairs": pairs}
    for name, results in kept.items():
        if name in failures:
            row[name] = {"failure": failures[name]}
        else:
            row[name] = {"call": spread([r["call"] for r in results]), "process": spread([r["wall"] for r in results]),
                         "peak_mib": spread([r["peak_kib"] / 1024 for r in results])}
    if "tensorlint" not in failures and floor and "floor" not in failures:
        row["floor_ratio"] = spread([a["call"] / b["call"] for a, b in zip(kept["tensorlint"], kept["floor"])])
    if "tensorlint" not in failures and "onnx" not in failures:
        row["tensorlint"]["summary"] = kept["tensorlint"][0]["summary"]
        row["tensorlint"]["phases"] = {phase: statistics.median(r["phases"][phase] for r in kept["tensorlint"]) for phase in kept["tensorlint"][0]["phases"]}
        row["ratio"] = {key: spread([b[key] / a[key] for a, b in zip(kept["tensorlint"], kept["onnx"])]) for key in ("call", "wall", "peak_kib")}
    return row


def line(row):
    def cell(name, key, scale, digits):
        return "-" if "failure" in row[name] else f"{row[name][key]['median'] * scale:.{digits}f}"

    def words(figures):
        return "{median:.1f} ({least:.1f}-{most:.1f})".format(**figures) if figures else "-"

    def ratio(key):
        return words(row.get("ratio", {}).get(key))

    text = (f"{row['model']:20} {cell('tensorlint', 'call', 1e3, 2):>10} {cell('onnx', 'call', 1e3, 2):>10} {ratio('call'):>20} "
            f"{cell('tensorlint', 'process', 1e3, 1):>10} {cell('onnx', 'process', 1e3, 1):>10} {ratio('wall'):>20} "
            f"{cell('tensorlint', 'peak_mib', 1, 1):>8} {cell('onnx', 'peak_mib', 1, 1):>8} {words(row.get('floor_ratio')):>16}")
    for name in ("tensorlint", "onnx", "floor"):
        if "failure" in row.get(name, {}):
            text += f"\n  {name}: {row[name]['failure']}"
    if row["tensorlint"].get("summary", {}).get("error"):
        text += f"\n  tensorlint reports {row['tensorlint']['summary']['error']} errors: these models are valid"
    return text


def main():
    if sys.argv[1:2] == ["--checker-child"]:
        checker_child(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "tensorlint"))
    parser.add_argument("--floor", help="the program of floor.cc")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one process")
    parser.add_argument("--json", help="write the figures there")
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    if arguments.pairs < 1:
        parser.error("at least one pair")
    for path in [arguments.tool, *([arguments.floor] if arguments.floor else []), *arguments.models]:
        if not os.path.isfile(path):
            parser.error(f"no such file: {path}")

    least = run(["/bin/true"], 10)["peak_kib"] / 1024
    print(f"least that the memory figures can be: {least:.1f} MiB")
    print(f"{'':20} {'call, ms':^42} {'process, ms':^42} {'peak, MiB':^17} {'call':^16}")
    pair = f"{'tensorlint':>10} {'onnx':>10} {'onnx / tensorlint':>20}"
    print(f"{'model':20} {pair} {pair} {'tlint':>8} {'onnx':>8} {'tlint / floor':>16}")
    rows = []
    for path in arguments.models:
        rows.append(measure(os.path.abspath(arguments.tool), arguments.floor and os.path.abspath(arguments.floor), path, arguments.pairs, arguments.timeout))
        print(line(rows[-1]), flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"schema": 1, "cores": os.cpu_count(), "peak_least_mib": least, "models": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
