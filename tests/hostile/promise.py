"""What SECURITY.md promises of a file, held against one run of each command."""

import os
import pathlib
import tempfile
import unittest

import hostile_test

LARGEST = 1 << 16


def branches_with_loops() -> str:
    """Of an If, as text: five loops of `t` iterations within each other, which join `x` with `y` and spend the allowance of an analysis; or `x`."""
    loops, last = "", "c0"
    for depth in range(5):
        carried = "x" if depth == 4 else f"c{depth + 1}"
        body = f"body=b(i{depth},q{depth},c{depth})=>(k{depth},v{depth}){{{loops}k{depth}=Identity(q{depth})v{depth}=Concat<axis=0>({last},y)}}"
        loops, last = f"w{depth}=Loop<{body}>(t,,{carried})", f"w{depth}"
    return f"then_branch=b()=>(w4){{{loops}}},else_branch=b()=>(p){{p=Identity(x)}}"


class PromiseTest(unittest.TestCase):
    #: A disk takes seconds for thousands of folders or files.
    in_memory = False

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/dev/shm" if self.in_memory and os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "m.onnx"

    def assert_kept(self, result: hostile_test.Result, size: int, *, codes: tuple[int, ...] = (0, 1), seconds: float | None = None) -> None:
        """A second for 64 KiB, and more only for larger files; `seconds` where a slow machine needs more than half of that."""
        self.assertIn(result.code, codes, result.errors[:500])
        self.assertLess(result.cpu, seconds or max(1, size / LARGEST))
        self.assertLess(result.memory, (64 << 20) + 40 * size)

    def run_within_promise(self, content: bytes, *commands: str, name: str = "m.onnx") -> None:
        """Commands may have options, with blanks between them."""
        self.assertLessEqual(len(content), LARGEST)
        path = self.folder / name
        path.write_bytes(content)
        for command in commands:
            with self.subTest(command):
                self.assert_kept(hostile_test.run([*command.split(), path]), len(content))
