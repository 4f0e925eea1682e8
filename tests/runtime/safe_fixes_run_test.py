"""Safe fixes change no value: each model of the fixtures and samples to which one applies gives the same bytes before and after."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
RUNNER = Path(TOOL).with_name("tensorlint-run")
ROOT = Path(__file__).resolve().parents[2]


def outputs(model: Path, seed: int, folder: Path) -> dict[str, bytes] | None:
    """By file; None where the model does not run."""
    text = ["--text="] if model.suffix == ".onnxtxt" else []
    command = [str(RUNNER), f"--model={model}", f"--seed={seed}", f"--outputs={folder}", "--time-limit=20", *text]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode == 2:
        return None
    if result.returncode != 0:
        raise AssertionError(f"{model}: exit code {result.returncode}: {result.stderr}")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class SafeFixesTest(unittest.TestCase):
    def test_values_stay(self) -> None:
        models = [path for path in sorted((ROOT / "tests").rglob("*.onnxtxt")) if ".fixed." not in path.name]
        models += sorted((ROOT / "samples").glob("*.onnx"))
        compared = 0
        for model in models:
            with self.subTest(model.relative_to(ROOT)), tempfile.TemporaryDirectory() as root:
                fixed = Path(root) / f"fixed{model.suffix}"
                subprocess.run([TOOL, "fix", str(model), "-o", str(fixed)], capture_output=True, timeout=60, check=False)
                if not fixed.exists() or fixed.read_bytes() == model.read_bytes():
                    continue
                for seed in (1, 2, 3):
                    before = outputs(model, seed, Path(root) / f"before{seed}")
                    if before is None:
                        continue
                    compared += 1
                    self.assertEqual(before, outputs(fixed, seed, Path(root) / f"after{seed}"), f"seed {seed}")
        self.assertGreater(compared, 10)


if __name__ == "__main__":
    unittest.main()
