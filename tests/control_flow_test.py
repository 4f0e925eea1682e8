"""Keeps the layout of If, Loop, Scan and SequenceMap in one place: `RegionOp` in ir/graph/region_op.h says which operand
becomes which input of a body, and which output becomes which result. No other code asks for these operators by name or
for the attributes that their layout depends on. `python3 tests/control_flow_test.py` lists what it finds."""

import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

OPERATORS = {"If", "Loop", "Scan", "SequenceMap"}
ATTRIBUTES = {"then_branch", "else_branch", "body", "num_scan_inputs", "scan_input_axes", "scan_output_axes"}
NAMES = OPERATORS | ATTRIBUTES

ROOMS = ["base", "ir", "passes", "analyzer", "runtime", "python"]
HOME = ["ir/graph/region_op.cc", "ir/graph/region_op.h"]
# The operators' entries check their own attributes; readers, writers and the builder take and make nodes as ONNX has them.
ALLOWED = [*HOME, "ir/ops/", "ir/schema/generated/", "ir/readers/", "ir/writers/", "ir/text/", "analyzer/builder/"]

LITERAL = re.compile(r'//.*|"((?:[^"\\]|\\.)*)"')


def names_in(code: str) -> Iterator[tuple[int, str]]:
    """Line and name of each string literal that is one of the names; comments and longer messages are not."""
    for number, line in enumerate(code.splitlines(), 1):
        for literal in LITERAL.finditer(line):
            if literal.group(1) in NAMES:
                yield number, literal.group(1)


def is_allowed(path: str) -> bool:
    return any(path == allowed or (allowed.endswith("/") and path.startswith(allowed)) for allowed in ALLOWED)


def found() -> Iterator[str]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".cc", ".h", ".cu", ".cuh") and not is_allowed(name):
                for line, text in names_in(path.read_text()):
                    yield f'{name}:{line}: "{text}": ask ir/graph/region_op.h'


class ControlFlow(unittest.TestCase):
    def test_one_file_knows_the_layout(self) -> None:
        self.assertEqual(list(found()), [])

    def test_that_file_knows_all_names(self) -> None:
        known = {name for path in HOME for _, name in names_in((ROOT / path).read_text())}
        self.assertEqual(known, NAMES)

    def test_what_counts(self) -> None:
        code = 'call.is("Loop");  // "If" in a comment\nfail("`body` of Scan");\n'
        self.assertEqual(list(names_in(code)), [(1, "Loop")])
        self.assertFalse(is_allowed("passes/dataflow/loops.cc"))
        self.assertFalse(is_allowed("ir/graph/region_op.cc.old"))
        self.assertTrue(is_allowed("ir/ops/entries/control_flow.cc"))


if __name__ == "__main__":
    if len(sys.argv) == 1 and (lines := list(found())):
        print("\n".join(lines))
    unittest.main()
