"""kernels/gates/gates.py over SASS written by hand: which loops count, what their elements are, and that each gate fails where it should."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "gates"))
import gates

LOADS = [f"LDG.E.128 R{r}, desc[UR4][R2.64+{16 * i}]" for i, r in enumerate((4, 8, 12, 16))]
USES = [f"FADD R20, R20, R{r}" for r in (4, 8, 12, 16)]
STORES = [f"STG.E.128 desc[UR4][R30.64+{16 * i}], R40" for i in range(4)]


def body(*instructions):
    """A function with these in one loop, between a prologue and an exit."""
    text = ["MOV R1, c[0x0][0x28]"]
    loop = [*instructions, "@P0 BRA `(.L_x_0)"]
    return [(None, t) for t in text] + [(".L_x_0", None)] + [(None, t) for t in loop] + [(None, "EXIT")]


class Gates(unittest.TestCase):
    def failures(self, name, *loops):
        m = {"loops": [loop for instructions in loops for loop in gates.measure(name, body(*instructions))["loops"]]}
        return gates.loop_gates(name, m)

    def test_adjacent_loads_and_whole_stores_pass(self):
        self.assertEqual(self.failures("softmax_gradient<float>", LOADS + USES, LOADS + USES + STORES), [])

    def test_a_use_between_the_loads_fails(self):
        mixed = [LOADS[0], USES[0], *LOADS[1:], *USES[1:]]
        self.assertEqual(self.failures("reduce_rows<Sum<float, Term::kValue>>", mixed),
                         ["reduce_rows<Sum<float, Term::kValue>>: 1 loads under way before the first use, 4 expected"])

    def test_an_address_that_was_loaded_is_a_use(self):
        chained = [LOADS[0], "LDG.E.128 R8, desc[UR4][R6.64]", *LOADS[2:], *USES]
        self.assertEqual(gates.in_flight(chained), 1)

    def test_a_register_pair_is_a_use_of_both(self):
        self.assertEqual(gates.in_flight([*LOADS[:2], "DADD R30, R30, R10.64", *LOADS[2:]]), 2)

    def test_an_exception_that_no_longer_is_one_fails(self):
        name = "class_rows<ClassTask::kProbabilities, float>"
        self.assertIn("4 loads under way before the first use, 2 expected", self.failures(name, LOADS + USES)[0])
        self.assertEqual(self.failures(name, [*LOADS[:2], USES[0], *LOADS[2:], *USES[1:]]), [])

    def test_a_split_store_fails(self):
        split = STORES[:3] + [f"STG.E desc[UR4][R30.64+{4 * i}], R4{i}" for i in range(4)]
        self.assertEqual(self.failures("softmax_gradient<float>", LOADS + USES + split),
                         ["softmax_gradient<float>: 4 stores of less than 16 bytes in a loop with 4 128-bit loads"])

    def test_stores_of_a_loop_without_batches_are_its_own_business(self):
        self.assertEqual(self.failures("softmax_gradient<Half>", [LOADS[0], USES[0], "STG.E.U16 desc[UR4][R30.64], R40"]), [])

    def test_elements_of_a_pointwise_loop_are_those_of_its_input(self):
        # Two vectors of input, target and upstream each: 16 elements of two bytes.
        six = [f"LDG.E.128 R{4 * i}, desc[UR4][R60.64+{16 * i}]" for i in range(6)]
        m = gates.measure("pointwise_loss<SquaredOp, BFloat16>", body(*six, *["FMUL R50, R51, R52"] * 25))
        self.assertEqual(m["loops"][0]["per_element"], 32 / 16)

    def test_a_vector_of_two_loads_is_one_vector(self):
        pairs = [f"LDG.E.128 R{4 * i}, desc[UR4][R{60 + i // 2}.64{'+0x10' if i % 2 else ''}]" for i in range(8)]
        self.assertEqual(gates.spliced_loads(pairs), (4, 4))
        self.assertEqual(gates.spliced_loads([pairs[0], "LDG.E.64 R8, desc[UR4][R60.64+0x10]"]), (1, 0))
        self.assertEqual(gates.spliced_loads(LOADS[:1] + ["LDG.E.128 R8, desc[UR4][R2.64+0x20]", "LDS.128 R8, [R2+0x10]"]), (0, 0))
        m = gates.measure("reduce_rows<Sum<float, Term::kValue>>", body(*pairs, *["FADD R50, R51, R52"] * 23))
        self.assertEqual(m["loops"][0]["per_element"], 32 / 16)
        self.assertEqual(gates.loop_gates("reduce_rows<Sum<float, Term::kValue>>", m), [])

    def test_spliced_vectors_have_a_budget_and_two_pairs_under_way(self):
        name = "reduce_rows<Sum<BFloat16, Term::kValue>>"
        pairs = [f"LDG.E.128 R{4 * i}, desc[UR4][R{60 + i // 2}.64{'+0x10' if i % 2 else ''}]" for i in range(8)]
        self.assertIn("budget", self.failures(name, [*pairs, *["FADD R50, R51, R52"] * 320])[0])
        early = [pairs[0], "FADD R20, R20, R0", *pairs[1:]]
        self.assertIn("1 loads under way", self.failures(name, early)[0])

    def test_figures_are_of_both_passes_from_the_shortest_to_the_longest(self):
        name = "class_columns<ClassTask::kIndices, BFloat16>"
        loops = [LOADS + USES, LOADS + USES + ["FMUL R50, R51, R52"] * 32, LOADS + USES + STORES]
        m = {"loops": [loop for instructions in loops for loop in gates.measure(name, body(*instructions))["loops"]]}
        self.assertEqual(gates.main_passes(name, m), (9 / 32 + 13 / 32, 41 / 32 + 13 / 32))
        self.assertIsNone(gates.main_passes(name, {"loops": m["loops"][:2]}))  # nothing writes

    def test_tiles_are_held_to_multiply_adds_and_wide_loads(self):
        name = "multiply_matrices<float, 1>"
        shared = ["LDS.128 R40, [R50]", "LDS.128 R44, [R51]"]
        good = [*LOADS[:2], *shared, *["FFMA R60, R40, R44, R60"] * 10]
        self.assertEqual(self.failures(name, good), [])
        m = gates.measure(name, body(*good))
        self.assertEqual(gates.main_passes(name, m), (1.5, 1.5))
        self.assertIn("3.50 instructions per multiply-add, budget 2.5", self.failures(name, [*good, *["IADD3 R1, R1, R2"] * 20])[0])
        self.assertIn("1 loads of less than 16 bytes from shared memory", self.failures(name, [*good, "LDS R40, [R50]"])[0])
        self.assertIn("1 128-bit loads from global memory", self.failures(name, [LOADS[0], *good[2:]])[0])
        self.assertIn("no loop with multiply-adds", self.failures(name, LOADS)[0])

    def test_attention_is_held_in_both_of_its_products(self):
        name = "attend_tiles<Half, 2>"
        shared = ["LDS.128 R40, [R50]", "LDS.128 R44, [R51]"]
        good = [*shared, *["FFMA R60, R40, R44, R60"] * 64]

        def failures(*loops, wide=6):
            m = {"loops": [found for loop in loops for found in gates.measure(name, body(*loop))["loops"]], "wide_loads": wide}
            return gates.loop_gates(name, m)

        self.assertEqual(failures(good, good), [])
        self.assertIn("1 loops with multiply-adds", failures(good)[0])
        self.assertIn("1.61 instructions per multiply-add, budget 1.4", failures(good, [*good, *["IADD3 R1, R1, R2"] * 36])[0])
        self.assertIn("1 loads of less than 16 bytes from shared memory", failures([*good, "LDS R40, [R50]"], good)[0])
        self.assertIn("5 128-bit loads from global memory, 6 wanted", failures(good, good, wide=5)[0])

    def test_a_loop_inside_a_loop_is_the_one_that_counts(self):
        text = [(".L_x_1", None), (None, "MOV R1, R2"), *body(*LOADS, *USES)[1:-1], (None, "@P1 BRA `(.L_x_1)"), (None, "EXIT")]
        self.assertEqual([len(loop) for loop in gates.loops_of(text)], [9])


if __name__ == "__main__":
    unittest.main()
