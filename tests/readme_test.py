"""The README shows what the program prints: each `$ build/bin/tensorlint ...` block there is run again and compared."""

import os
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
blocks: list[tuple[list[str], list[str]]] = []
block: tuple[list[str], list[str]] | None = None
for line in (root / "README.md").read_text().splitlines():
    if line.startswith("    $ build/bin/tensorlint "):
        block = (line.split()[2:], [])
        blocks.append(block)
    elif block is not None and (line.startswith("    ") or not line.strip()):
        block[1].append(line[4:])
    else:
        block = None

failed = not blocks
for arguments, shown in blocks:
    result = subprocess.run(
        [os.environ["TENSORLINT_BINARY"], *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    if result.stdout.strip() != "\n".join(shown).strip():
        failed = True
        print(f"tensorlint {' '.join(arguments)} prints:\n{result.stdout}{result.stderr}\nthe README shows:\n" + "\n".join(shown))
sys.exit(failed)
