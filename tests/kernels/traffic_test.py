"""kernels/model/traffic.py: what its gate refuses."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "model"))
import traffic


def shape(name, sectors, stores=0, atomics=0, floor=1000):
    return {"name": name, "floor_bytes": 32 * floor, "load_requests": 1, "load_sectors": sectors * 2, "l2_load_sectors": sectors,
            "store_requests": 1, "store_sectors": stores, "atomic_sectors": atomics}


NAME, BOUND = next(iter(traffic.KNOWN.items()))
KNOWN = [shape(name, round(bound * 1000)) for name, bound in traffic.KNOWN.items()]


class Traffic(unittest.TestCase):
    def test_moved_sectors_are_held_to_the_floor_and_requested_ones_are_not(self):
        self.assertEqual(traffic.failures([shape("a", 900, 100, 50), *KNOWN]), [])
        self.assertEqual(traffic.failures([shape("a", 900, 100, 51), *KNOWN]), ["a: 1.051 times the byte floor moved, 1.05 allowed"])

    def test_an_exception_has_its_own_bound_and_is_needed(self):
        self.assertEqual(traffic.failures([shape(NAME, round(BOUND * 1000) + 1), *KNOWN[1:]]), [f"{NAME}: {BOUND + 0.001:.3f} times the byte floor moved, {BOUND} allowed"])
        self.assertIn("needs no exception", traffic.failures([shape(NAME, 1000), *KNOWN[1:]])[0])
        self.assertIn("not there", traffic.failures([])[0])

    def test_the_page_has_a_row_for_each_shape(self):
        self.assertIn("| a | 0.0 MiB | 1.800 | 0.100 | 1.900 | 1.000 | 0.00 M |", traffic.page([shape("a", 900, 100)]))


if __name__ == "__main__":
    unittest.main()
