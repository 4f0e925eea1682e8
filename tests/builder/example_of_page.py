"""Writes the C++ program that a page shows: its ```cpp blocks, one after the other."""

import re
import sys
from pathlib import Path

page, out = map(Path, sys.argv[1:])
blocks = re.findall(r"(?s)```cpp\n(.*?)```\n", page.read_text())
if not blocks:
    sys.exit(f"{page} shows no C++")
out.write_text("\n".join(blocks))
