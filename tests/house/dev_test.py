"""`./dev` ends with 2, and says what failed, where a build fails: also where it builds out of sight."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Configures everything, builds nothing.
CMAKE = '#!/bin/sh\nfor word; do if [ "$word" = --build ]; then echo "broken.cc: error"; exit 1; fi; done\n'


def main():
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        shutil.copy(ROOT / "dev", tree)
        tools = tree / "tools"
        tools.mkdir()
        for name in ("cmake", "ninja", "g++"):
            (tools / name).write_text(CMAKE if name == "cmake" else "#!/bin/sh\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TENSORLINT_PYTHON": sys.executable}
        for words, code in ((["build"], 1), (["ops"], 2), (["show", "model.onnx"], 2)):
            run = subprocess.run([tree / "dev", *words], capture_output=True, text=True, env=environment, check=False)
            if run.returncode != code or "broken.cc: error" not in run.stdout + run.stderr:
                faults.append(f"./dev {' '.join(words)} ended with {run.returncode}, not {code}:\n{run.stdout}{run.stderr}")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
