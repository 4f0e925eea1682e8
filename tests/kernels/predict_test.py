"""kernels/model/predict.py on SASS written by hand: what a round of a loop costs, and which limit a shape meets."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernels" / "model"))
import predict

LOADS = [f"LDG.E.128 R{r}, desc[UR4][R2.64+{hex(4096 * i)}]" for i, r in enumerate((4, 8, 12, 16))]


def function(loop, before=3, after=4):
    """A kernel with one loop that reads, `before` instructions ahead of it and `after` until it stores."""
    body = [(None, "MOV R1, R2")] * before + [(".L_x_0", None)] + [(None, t) for t in [*LOADS, *loop, "@P0 BRA `(.L_x_0)"]]
    body += [(None, "MOV R1, R2")] * after + [(None, "STG.E desc[UR4][R2.64], R1"), (None, "EXIT")]
    return {"body": body, "registers": 32, "shared": 0}


def shape(**changes):
    base = {"name": "s", "kernel": "reduce_rows<Sum<float, Term::kValue>>", "loop": "aligned", "lanes": 256, "rows": 1, "vectors": 0, "blocks": 4224, "cluster": 1,
            "dynamic_shared": 0, "read_bytes": 2.0 ** 30, "floor_bytes": 2.0 ** 30, "l2_load_sectors": 2 ** 25, "store_sectors": 0, "atomic_sectors": 0}
    return {**base, **changes}


class Predict(unittest.TestCase):
    def test_a_round_is_the_cheapest_way_with_its_exponentials(self):
        # A rare long way, one that has the exponentials, and one that leaves them out.
        text = [(".L_x_0", None), (None, LOADS[0]), (None, "@P1 BRA `(.L_x_1)")] + [(None, "FADD R1, R1, R1")] * 50
        text += [(".L_x_1", None), (None, "@P2 BRA `(.L_x_2)"), (None, "MUFU.EX2 R1, R1"), (".L_x_2", None), (None, "@P0 BRA `(.L_x_0)"), (None, "EXIT")]
        graph = predict.Graph(text)
        (loop,) = graph.loops()
        self.assertEqual(predict.describe(graph, loop)["instructions"], 5)

    def test_a_stream_is_held_by_memory(self):
        result = predict.predict(shape(), function(["FADD R20, R4, R8"] * 8))
        self.assertEqual(result["bound"], "memory")
        self.assertAlmostEqual(result["limits"]["memory"], 2 ** 30 / predict.K["read"])
        self.assertGreater(result["share"], 0.95)
        self.assertEqual(result["per_vector"], 13 / 4)

    def test_sectors_beside_the_floor_cost_their_share(self):
        lean, fat = (predict.predict(shape(l2_load_sectors=n * 2 ** 25), function([])) for n in (1, 2))
        self.assertAlmostEqual(fat["limits"]["memory"], 2 * lean["limits"]["memory"])
        self.assertAlmostEqual(fat["moved"], 2)

    def test_many_instructions_are_held_by_issue(self):
        result = predict.predict(shape(), function(["FADD R20, R4, R8"] * 2000))
        self.assertEqual(result["bound"], "issue")
        vectors = 2 ** 30 / 16
        self.assertAlmostEqual(result["limits"]["issue"] * 132 * 4 * predict.K["clock"] / (vectors / 32 * 2005 / 4), 1, delta=0.02)

    def test_few_blocks_are_held_by_latency(self):
        crowded, lonely = (predict.predict(shape(dynamic_shared=d), function([])) for d in (0, 200 * 1024))
        self.assertEqual((crowded["resident"], lonely["resident"]), (8, 1))
        self.assertAlmostEqual(lonely["limits"]["latency"] / crowded["limits"]["latency"], 8, delta=0.1)
        self.assertLess(lonely["share"], crowded["share"])

    def test_a_block_waits_for_the_thread_that_has_most(self):
        even, uneven = (predict.predict(shape(vectors=v), function([]))["limits"]["latency"] for v in (64, 65))
        self.assertAlmostEqual((uneven - even) / even, 1 / 16, delta=0.02)  # a load alone waits as long as four

    def test_the_page_says_predicted(self):
        text = predict.page([(shape(), predict.predict(shape(), function([])))])
        self.assertIn("Predicted, not measured on a GPU", text)
        self.assertIn("| s | ", text)


if __name__ == "__main__":
    unittest.main()
