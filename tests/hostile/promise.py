"""What SECURITY.md promises of a file, held against one run of each command."""

import pathlib
import tempfile
import unittest

import hostile_test

LARGEST = 1 << 16


class PromiseTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
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
