"""What checking a large file reads and keeps in memory: its weights do not count. No times: bench/files.py measures them."""
import ctypes
import json
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from files import evict, weights_model

BINARY = os.environ.get("TENSORLINT_BINARY", str(ROOT / "build/bin/tensorlint"))
PAGE = mmap.PAGESIZE


def resident(path):
    """Bytes of the file that lie in the system's cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    size = path.stat().st_size
    pages = (ctypes.c_ubyte * ((size + PAGE - 1) // PAGE))()
    with path.open("rb") as file:
        place = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if libc.mincore(place, size, pages) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        libc.munmap(place, size)
    return sum(page & 1 for page in pages) * PAGE


def check(path):
    result = subprocess.run([BINARY, "check", "--format", "json", "--timings", path], capture_output=True, text=True, timeout=120, check=False)
    return result, json.loads(result.stdout)["inputs"][0]


class FilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=ROOT)
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name) / "weights.onnx"
        cls.path.write_bytes(weights_model(45_000_000, 40))

    def test_memory_is_not_taken_for_weights(self):
        check(self.path)
        result, report = check(self.path)
        self.assertEqual((result.returncode, report["nodes"]), (0, 120))
        # 52 MB where the file is read, 23 MB where its pages in the cache are huge and come along whole.
        self.assertLess(report["peak_rss_bytes"], 14_000_000)

    def test_weights_are_not_read_from_the_disk(self):
        evict(self.path)
        if resident(self.path) > 1_000_000:
            self.skipTest("this file system keeps all files in memory")
        check(self.path)
        # All of it where the system reads around each touched page.
        self.assertLess(resident(self.path), 6_000_000)

    def test_a_folder_of_mapped_files(self):
        """Mapped files hold a descriptor each, but only while they are checked."""
        with tempfile.TemporaryDirectory() as folder:
            small = weights_model(1_200_000, 3)
            for number in range(100):
                (pathlib.Path(folder) / f"m{number}.onnx").write_bytes(small)
            result = subprocess.run(["bash", "-c", f'ulimit -n 20 && "{BINARY}" check "{folder}" --jobs 4'], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("100 checked files", result.stdout)


if __name__ == "__main__":
    unittest.main()
