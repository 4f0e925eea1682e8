"""Each kind of mistake about axes that the pass finds is worded by a rule: rules leave kinds of other rules alone, so one that nobody words is never reported."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    header = (ROOT / "passes/losses/axis_mistakes.h").read_text()
    kinds = re.findall(r"^ *(k\w+),", header[header.index("enum class Kind") : header.index("};", header.index("enum class Kind"))], re.MULTILINE)
    rules = [text for text in (path.read_text() for path in (ROOT / "analyzer/rules").rglob("*.cc")) if "AxisMistake" in text]
    worded = {kind for text in rules for kind in re.findall(r"\bKind::(k\w+)", text)}
    unworded = [kind for kind in kinds if kind not in worded]
    for kind in unworded:
        print(f"passes/losses/axis_mistakes.h has {kind}, which no rule words")
    if len(kinds) < 50:
        print(f"only {len(kinds)} kinds were found")
        return 1
    return 1 if unworded else 0


if __name__ == "__main__":
    sys.exit(main())
