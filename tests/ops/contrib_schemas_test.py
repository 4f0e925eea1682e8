"""The committed table of contrib schemas is the one that the generator makes from the pinned onnxruntime."""

import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
sys.exit(subprocess.call([sys.executable, str(root / "ir/schema/tools/generate_contrib_schemas.py"), "--check"]))
