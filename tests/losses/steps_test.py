"""Exported training steps, with and without a mistake: the mistakes are reported, by the rule that knows them, and correct steps get no error and no warning."""

import json
import os
import subprocess
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
MODELS = Path(__file__).resolve().parents[1] / "models"
INDEX = json.loads((MODELS / "steps.json").read_text())["models"]


def findings_of(files: list[str]) -> dict[str, set[str]]:
    """The rules of errors and warnings, by file."""
    paths = {str(MODELS / file): file for file in files}
    result = subprocess.run([TOOL, "check", "--format", "json", *paths], capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(result.stdout)
    found: dict[str, set[str]] = {file: set() for file in files}
    for entry in report["findings"]:
        if entry["severity"] != "info":
            found[paths[entry["path"]]].add(entry["rule"])
    return found


class StepsTest(unittest.TestCase):
    found: dict[str, set[str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.found = findings_of([entry["file"] for entry in INDEX])

    def test_mistakes_are_reported(self) -> None:
        for entry in INDEX:
            if entry["rules"]:
                with self.subTest(entry["file"]):
                    self.assertTrue(self.found[entry["file"]] & set(entry["rules"]), self.found[entry["file"]])

    def test_correct_steps_get_nothing(self) -> None:
        for entry in INDEX:
            if not entry["rules"]:
                with self.subTest(entry["file"]):
                    self.assertEqual(self.found[entry["file"]], set())


if __name__ == "__main__":
    unittest.main()
