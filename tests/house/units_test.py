"""What is generated and compiled names files from the root of the tree: by whole paths no compiler cache would share objects between checkouts."""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    build = pathlib.Path(os.environ.get("TENSORLINT_BUILD_DIR", ROOT / "build"))
    compiled = {pathlib.Path(entry["file"]) for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))}
    generated = sorted(path for path in compiled if path.is_relative_to(build) and not path.name.startswith("cmake_pch"))
    faults = [f"{path} has the path of this checkout" for path in generated if str(ROOT) in path.read_text(encoding="utf-8")]
    faults += [] if generated else [f"{build} generates no source: there is nothing to look at"]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
