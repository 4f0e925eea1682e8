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
        self.path = pathlib.Path(folder.name) / "m.onnx"

    def run_within_promise(self, content: bytes, *commands: str) -> None:
        self.assertLessEqual(len(content), LARGEST)
        self.path.write_bytes(content)
        for command in commands:
            with self.subTest(command):
                result = hostile_test.run([command, self.path])
                self.assertIn(result.code, (0, 1), result.errors[:500])
                self.assertLess(result.cpu, 1)
                self.assertLess(result.memory, (64 << 20) + 40 * len(content))
