"""The program under test on many models: one process for hundreds of files."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
BATCH = 400


def show(paths):
    """{path: what `show` prints}; a model that it refuses is left out."""
    documents = {}
    paths = [str(path) for path in paths]
    for start in range(0, len(paths), BATCH):
        part = paths[start:start + BATCH]
        command = [BINARY, "show", "--format", "json", "--all-symbols", *part]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if result.returncode not in (0, 2):
            raise RuntimeError(f"show ended with {result.returncode}: {result.stderr[-2000:]}")
        if len(part) == 1:
            lines = [result.stdout] if result.stdout else []
        else:
            lines = result.stdout.splitlines()
        for line in lines:
            document = json.loads(line)
            documents[document["path"]] = document
    return documents


def check(folder, *options):
    """The report of `check` on all models in a folder."""
    command = [BINARY, "check", "--format", "json", *options, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode not in (0, 1, 2):
        raise RuntimeError(f"check ended with {result.returncode}: {result.stderr[-2000:]}")
    return json.loads(result.stdout)


def failures(folder):
    """{path: messages of what `check` says every execution fails at}, of all models in a folder.

    invalid-domain is left out: a logarithm of what is negative ends in NaN and not in a failure.
    """
    found = {}
    for finding in check(folder, "--select", "shape,graph,value", "--ignore", "invalid-domain", "--fail-on", "error")["findings"]:
        if finding["severity"] == "error" and finding["certainty"] == "must":
            found.setdefault(finding["path"], []).append(f"{finding['rule']} at {finding['node']}: {finding['message']}")
    return found
