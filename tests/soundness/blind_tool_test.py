"""The soundness tests fail for a program that knows nothing, and for one that knows nothing of one aspect.

The program under test is replaced by one that asks it and takes facts out of its answers.
"""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

import program

HERE = pathlib.Path(__file__).resolve().parent
# Small parts of each: what is asked is whether they fail.
SCRIPTS = [["backend_test.py", "--kinds", "pytorch-operator", "simple"], ["random_graphs_test.py", "--count", "50"],
           ["operator_versions_test.py", "--recipes"], ["coverage_test.py"]]

STUB = '''#!{python}
import json, os, subprocess, sys

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "string", "complex64", "complex128",
          "int4", "uint4", "int2", "uint2", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1"]
FORGET = os.environ["BLIND_TO"]


def blind(fact):
    if "element" in fact:
        fact["element"] = blind(fact["element"])
    if "dtype" in fact and FORGET in ("dtypes", "everything"):
        fact["dtype"] = DTYPES
    if FORGET in ("dims", "everything"):
        for key in ("length", "shape"):
            if fact.get(key) is not None:
                fact[key] = None
    if FORGET in ("elements", "everything"):
        fact.pop("contents", None)
    if FORGET in ("bounds", "everything") and "range" in fact:
        fact["range"] = [None, None]
        fact.pop("nan", None)
    return fact


done = subprocess.run([{binary!r}, *sys.argv[1:]], capture_output=True, text=True)
if sys.argv[1] != "show":
    print(done.stdout, end="")
    sys.exit(done.returncode)
for text in done.stdout.splitlines() if done.stdout.count("\\n{{") else [done.stdout]:
    document = json.loads(text)
    for graph in [document, *document["graphs"]]:
        graph["values"] = {{}} if FORGET == "values" else {{name: blind(fact) for name, fact in graph["values"].items()}}
    print(json.dumps(document))
sys.exit(done.returncode)
'''


class BlindTool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stub = pathlib.Path(folder.name) / "tensorlint"
        self.stub.write_text(STUB.format(python=sys.executable, binary=program.BINARY))
        self.stub.chmod(self.stub.stat().st_mode | stat.S_IXUSR)

    def run_blind(self, script, aspect):
        environment = {**os.environ, "TENSORLINT_BINARY": str(self.stub), "BLIND_TO": aspect}
        return subprocess.run([sys.executable, str(HERE / script[0]), *script[1:]], env=environment, capture_output=True, text=True, timeout=300, check=False)

    def expect_failure(self, script, aspect, says):
        with self.subTest(script=script[0], aspect=aspect):
            done = self.run_blind(script, aspect)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertRegex(done.stdout, says)
            self.assertNotIn("Traceback", done.stderr)

    def test_values(self):
        for script in SCRIPTS:
            self.expect_failure(script, "values", "only 0 values compared|: 0 values, ")

    def test_everything(self):
        for script in SCRIPTS:
            self.expect_failure(script, "everything", "only 0 dims compared|[1-9][0-9]* without rank")

    def test_each_aspect(self):
        for aspect in ("dtypes", "dims", "elements", "bounds"):
            self.expect_failure(SCRIPTS[1], aspect, f"only 0 {aspect} compared")

    def test_every_script_is_here(self):
        # This one, the judge's own test, and one that asks for findings instead of facts.
        others = {pathlib.Path(__file__).name, "facts_hold_test.py", "unrun_bodies_test.py"}
        self.assertEqual({path.name for path in HERE.glob("*_test.py")} - others, {script[0] for script in SCRIPTS})


if __name__ == "__main__":
    unittest.main()
