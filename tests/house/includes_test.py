"""Each room includes only from the rooms that its target links to, and no two rooms include from each other; no rule reads a file.

The links are read from the `tensorlint_room(...)` calls of the CMake files, so that there is one list.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The folder of each room. Entries of operators and rules are object files of rooms that have a folder already.
FOLDERS = {
    "base": "base",
    "types": "ir/types",
    "facts": "ir/facts",
    "schema": "ir/schema",
    "constants": "ir/constants",
    "call": "ir/call",
    "inference": "ir/ops",
    "ops": "ir/ops/entries",
    "graph": "ir/graph",
    "recording": "ir/recording",
    "text": "ir/text",
    "onnx": "ir/readers",
    "onnx_writer": "ir/writers",
    "dataflow": "passes/dataflow",
    "structure": "passes/structure",
    "losses": "passes/losses",
    "placement": "passes/placement",
    "contract": "passes/contract",
    "results": "passes/results",
    "findings": "analyzer/findings",
    "fixes": "analyzer/fixes",
    "rule_engine": "analyzer/rules",
    "rules": "analyzer/rules/*",
    "pipeline": "analyzer/pipeline",
    "config": "analyzer/config",
    "reports": "analyzer/reports",
    "report_formats": "analyzer/reports/formats",
    "builder": "analyzer/builder",
    "values": "runtime/values",
    "interpreter": "runtime/interpreter",
    "device": "runtime/device",
    "executor": "runtime/executor",
    "evaluators": "runtime/interpreter/ops",
    "value_files": "runtime/files",
    "compare": "runtime/compare",
}
# They see all rooms.
TOP = ("analyzer/cli", "analyzer/builder", "ir/ops/tools", "runtime/run")
# For the rooms named here, and for nobody else. kernels/ builds alone, and what runs on devices speaks its requests.
SHARED = {"ir/protobuf": ("onnx", "onnx_writer"), "kernels": ("device", "executor")}

ROOM_CALL = re.compile(r"tensorlint_room\((\w+)([^)]*)\)")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# What reads files. Rules get what passes found out about files.
READS_FILES = re.compile(r'#include (?:"(?:ir/(?:readers|writers|text)/|base/\w*file)[^"]*"|<(?:fstream|filesystem|cstdio|fcntl\.h|unistd\.h)>)|\b(?:open_external_file|check_external_data)\(')


def declared_links() -> dict[str, set[str]]:
    links: dict[str, set[str]] = {}
    for folder in ("base", "ir", "passes", "analyzer", "analyzer/builder", "runtime"):
        text = (ROOT / folder / "CMakeLists.txt").read_text()
        for name, arguments in ROOM_CALL.findall(text):
            linked = re.search(r"LINKS ([\w ]+)", arguments)
            words = set(linked.group(1).split()) if linked else set()
            links[name] = words - {"SYSTEM_INCLUDES", "OBJECT"}
    return links


def reachable(links: dict[str, set[str]], room: str) -> set[str]:
    found: set[str] = set()
    waiting = [room]
    while waiting:
        for other in links.get(waiting.pop(), set()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def room_of(path: str) -> str | None:
    best: tuple[int, str] | None = None
    for room, folder in FOLDERS.items():
        prefix = folder.removesuffix("*")
        matches = path.startswith(prefix.rstrip("/") + "/")
        if folder.endswith("*"):
            matches = matches and path.count("/") > folder.count("/")
        if matches and (best is None or len(folder) > best[0]):
            best = (len(folder), room)
    return best[1] if best else None


def faults(links: dict[str, set[str]]) -> list[str]:
    found = [f"the room {room} links to itself through others" for room in links if room in reachable(links, room)]
    for top in ("base", "ir", "passes", "analyzer", "runtime"):
        for path in sorted((ROOT / top).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".h", ".cc") or name.startswith(TOP):
                continue
            room = room_of(name)
            if room is None:
                if not any(name.startswith(folder) for folder in SHARED):
                    found.append(f"{name}: belongs to no room")
                continue
            allowed = reachable(links, room) | {room}
            for included in INCLUDE.findall(path.read_text()):
                shared = [rooms for folder, rooms in SHARED.items() if included.startswith(folder)]
                if shared:
                    if room not in shared[0]:
                        found.append(f"{name}: includes {included}, which is for {', '.join(shared[0])} alone")
                    continue
                if not (ROOT / included).exists():
                    continue
                other = room_of(included)
                if other is None or other not in allowed:
                    found.append(f"{name}: includes {included}, which {room} does not link to")
    return found


def rules_that_read_files() -> list[str]:
    sources = [path for path in sorted((ROOT / "analyzer/rules").rglob("*")) if path.suffix in (".h", ".cc")]
    return [f"{path.relative_to(ROOT)}: {found[0]}, and rules open no files" for path in sources if (found := READS_FILES.search(path.read_text()))]


def main() -> int:
    links = declared_links()
    missing = sorted(set(links) ^ set(FOLDERS))
    if missing:
        print(f"rooms without a folder here, or folders without a room: {', '.join(missing)}")
        return 1
    # The check sees what it is for: with the links turned round nearly every include is a fault.
    upside_down = {room: {other for other, below in links.items() if room in below} for room in links}
    if len(faults(upside_down)) < 100:
        print("the check finds no fault where the links are turned round")
        return 1
    if not READS_FILES.search((ROOT / "ir/readers/onnx/external_data.cc").read_text()):
        print("the check does not find what reads files")
        return 1
    problems = faults(links) + rules_that_read_files()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
