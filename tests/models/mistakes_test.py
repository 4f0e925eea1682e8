"""Models in text with one mistake each, written without looking at the rules, and without it, and models that only look wrong.

`mistakes/index.json` says of each model what is wrong, at which node, and what says so: `check` with a rule, `contract` with a requirement
of the inputs, or nothing. `kind`: fails (a runtime or the specification refuses it), may (fails for some inputs), silent (runs, and
computes something else than is meant), ok. `mistakes/fixed` has the corrected models.
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

TOOL = os.environ["TENSORLINT_BINARY"]
FOLDER = Path(__file__).with_name("mistakes")
INDEX = json.loads((FOLDER / "index.json").read_text())

# Corrected models that are reported all the same.
FALSE_ALARMS = {"background_shift": "an index of -1 whose row is multiplied by 0 afterwards"}

# The least number that is found. Of those that fail for some inputs: what may be found of a value is not followed that far.
LEAST = {"fails": 73, "may": 35, "silent": 68}


def run(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, check=False)


def check(paths):
    """What is reported of each file, but for remarks."""
    report = json.loads(run("check", "--format", "json", *paths).stdout)
    found = {Path(path).name: [] for path in paths}
    for part in report["inputs"]:
        assert not part.get("error"), part
    for finding in report["findings"]:
        if finding["severity"] != "info":
            found[Path(finding["path"]).name].append(finding)
    return found


class MistakesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = check(sorted(FOLDER.glob("*.onnxtxt")))

    def test_each_model_is_listed(self):
        self.assertEqual({f"{entry['name']}.onnxtxt" for entry in INDEX}, set(self.found))

    def test_what_check_finds(self):
        for entry in INDEX:
            if entry.get("by") != "check":
                continue
            with self.subTest(entry["name"]):
                rules = {finding["rule"] for finding in self.found[f"{entry['name']}.onnxtxt"]}
                self.assertLessEqual(set(entry["rules"]), rules, entry["why"])

    def test_what_the_contract_says(self):
        for entry in INDEX:
            if entry.get("by") != "contract":
                continue
            with self.subTest(entry["name"]):
                contract = json.loads(run("contract", "--format", "json", FOLDER / f"{entry['name']}.onnxtxt").stdout)
                self.assertIn(entry["node"], [requirement["node"] for requirement in contract["requirements"]], entry["why"])

    def test_as_many_as_before(self):
        for kind, least in LEAST.items():
            self.assertGreaterEqual(sum(entry["kind"] == kind and entry.get("by") is not None for entry in INDEX), least, kind)

    def test_models_that_only_look_wrong(self):
        for entry in INDEX:
            if entry["kind"] == "ok":
                self.assertEqual(self.found[f"{entry['name']}.onnxtxt"], [], entry["why"])

    def test_corrected_models(self):
        for name, findings in check(sorted((FOLDER / "fixed").glob("*.onnxtxt"))).items():
            if name.removesuffix(".onnxtxt") not in FALSE_ALARMS:
                self.assertEqual(findings, [], name)


if __name__ == "__main__":
    unittest.main()
