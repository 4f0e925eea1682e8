"""Seeds for the fuzz targets: corpus.py FOLDER [--few]

Writes FOLDER/binary (the models of ONNX's backend tests, small ones, the samples of this repository), FOLDER/text (its
fixtures, and the backend models as text) and FOLDER/values (arrays of numpy). --few: one model of each operator and one fixture of each folder,
for the tests.
"""
import argparse
import hashlib
import io
import pathlib
import shutil
import sys
import warnings
import zipfile

import numpy as np
import onnx
import onnx.parser
import onnx.printer
from onnx.backend.test.case.node import collect_testcases

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = 4096


def write(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def write_values(folder):
    arrays = {"floats": np.linspace(-2, 2, 60, dtype=np.float32).reshape(3, 4, 5), "columns": np.asfortranarray(np.eye(7, dtype=np.float16)), "swapped": np.arange(9, dtype=">i8"),
              "bfloat16": np.arange(6, dtype=np.uint16).view("V2"), "truths": np.array([True, False]), "scalar": np.array(3.5), "none": np.zeros((0, 4), np.int32), "objects": np.array([{}], object)}
    for name, array in arrays.items():
        bytes_ = io.BytesIO()
        np.lib.format.write_array(bytes_, array, version=(1, 0) if name != "scalar" else (3, 0), allow_pickle=True)
        write(folder, f"{name}.npy", bytes_.getvalue())
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        bytes_ = io.BytesIO()
        with zipfile.ZipFile(bytes_, "w", method) as archive:
            for member in arrays:
                with archive.open(f"{member}.npy", "w", force_zip64=member == "floats") as file:
                    file.write((folder / f"{member}.npy").read_bytes())
        write(folder, f"{name}.npz", bytes_.getvalue())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--few", action="store_true")
    arguments = parser.parse_args()
    stamp = arguments.folder / f"made-with-values-and-onnx-{onnx.__version__}{'-one-of-each' if arguments.few else ''}"
    if stamp.exists():
        return 0
    shutil.rmtree(arguments.folder, ignore_errors=True)
    binary, text = arguments.folder / "binary", arguments.folder / "text"

    warnings.simplefilter("ignore")  # of numpy, while onnx computes the expected outputs
    seen = set()
    for case in sorted(collect_testcases(None), key=lambda case: case.name):
        content = case.model.SerializeToString(deterministic=True)
        key = tuple(sorted({node.op_type for node in case.model.graph.node})) if arguments.few else hashlib.sha1(content).digest()
        if len(content) > LARGEST or key in seen:
            continue
        seen.add(key)
        write(binary, case.name + ".onnx", content)
        if not arguments.few:
            write(text, case.name + ".onnxtxt", onnx.printer.to_text(case.model).encode())
    folders = set()
    for fixture in sorted((ROOT / "tests").rglob("*.onnxtxt")):
        name = f"{fixture.parent.name}-{fixture.name}"
        if fixture.stat().st_size > LARGEST or (arguments.few and fixture.parent in folders):
            continue
        folders.add(fixture.parent)
        write(text, name, fixture.read_bytes())
        try:
            model = onnx.parser.parse_model(fixture.read_text())
        except Exception:  # our text has more than onnx.parser takes: such a fixture is a seed as text only
            continue
        write(binary, name.removesuffix("txt"), model.SerializeToString(deterministic=True))
    if not arguments.few:
        for sample in sorted((ROOT / "samples").glob("*.onnx")):
            write(binary, sample.name, sample.read_bytes())
    write_values(arguments.folder / "values")
    stamp.touch()
    print(f"{len(list(binary.iterdir()))} binary and {len(list(text.iterdir()))} text models in {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
