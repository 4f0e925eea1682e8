"""`./dev bench [NAME...]`: generates the models in .cache/bench once and measures them; NAME as in generate_models.py."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(HERE), ".cache", "bench")
DEFAULT = ["decoder_1k", "decoder_10k", "decoder_100k", "nested_8", "siblings_2k", "doubling_14", "fanout_10k"]


def main():
    names = sys.argv[1:] or DEFAULT
    paths = [os.path.join(FOLDER, name + ".onnx") for name in names]
    missing = [name for name, path in zip(names, paths) if not os.path.exists(path)]
    if missing and subprocess.call([sys.executable, os.path.join(HERE, "generate_models.py"), FOLDER, *missing]):
        return 2
    tool = os.environ.get("TENSORLINT_BINARY")
    command = [sys.executable, os.path.join(HERE, "check_vs_onnx.py"), "--json", os.path.join(FOLDER, "figures.json")]
    floor = os.environ.get("TENSORLINT_FLOOR")
    return subprocess.call(command + (["--tool", tool] if tool else []) + (["--floor", floor] if floor else []) + paths)


if __name__ == "__main__":
    sys.exit(main())
