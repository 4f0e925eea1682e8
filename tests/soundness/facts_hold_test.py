"""The judge of the soundness tests finds what lies outside a fact, and lets pass what lies inside."""
import unittest

import numpy as np
from facts_hold import Judge, parse, value_of


def problems(facts, values):
    judge = Judge()
    judge.run({"values": facts, "graphs": []}, [("", values)], "test")
    return judge.problems


def tensor(dtype="float32", shape=None, bounds=(None, None), **more):
    return {"dtype": [dtype], "shape": shape, "range": list(bounds), **more}


class Expressions(unittest.TestCase):
    def test_values(self):
        for text, value in [("2*N + 1", 9), ("-N + 3", -1), ("floor((N + 2)/3)", 2), ("mod(N, 3)", 1), ("min(N, 2)*N", 8), ("max(N - 9, 0)", 0),
                            ("broadcast(N, M)", 4), ("broadcast(M, N, M)", 4), ("min(N, 3, M + 1)", 2), ("N*M - 2", 2), ("floor(N/(M + 1))", 2), ("?7 + 1", 6)]:
            self.assertEqual(value_of(parse(text), {"N": 4, "M": 1, "?7": 5}), value, text)


class Outside(unittest.TestCase):
    def check(self, fact, inside, outside):
        self.assertEqual(problems({"v": fact}, {"v": inside}), [])
        self.assertEqual(len(problems({"v": fact}, {"v": outside})), 1)

    def test_each_aspect(self):
        zeros = np.zeros
        self.check(tensor(), zeros(2, np.float32), zeros(2, np.float64))
        self.check(tensor(shape=[2, None]), zeros((2, 5), np.float32), zeros(2, np.float32))
        self.check(tensor(shape=[2]), zeros(2, np.float32), zeros(3, np.float32))
        self.check(tensor(shape=["N", "N"]), zeros((3, 3), np.float32), zeros((3, 4), np.float32))
        self.check(tensor("int64", [2], (0, 5)), np.array([0, 5]), np.array([0, 6]))
        self.check(tensor("int64", [2], contents=[3, None]), np.array([3, 9]), np.array([4, 9]))
        self.check(tensor(contents=[0.5]), np.array([0.5], np.float32), np.array([0.6], np.float32))
        self.check(tensor(nan=False), np.array([np.inf], np.float32), np.array([np.nan], np.float32))
        pair = [zeros(1, np.float32), zeros(1, np.float32)]
        self.check({"kind": "sequence", "length": 2, "element": tensor(shape=[1])}, pair, pair[:1])
        self.check({"kind": "sequence", "length": None, "element": tensor(shape=[1])}, pair, [zeros(2, np.float32)])
        self.check({"kind": "optional", "element": tensor()}, None, zeros(1, np.int64))
        self.check(tensor(shape=[]), zeros((), np.float32), pair)

    def test_symbols_hold_over_values(self):
        facts = {"x": tensor(shape=["N"]), "y": tensor(shape=["2*N"])}
        self.assertEqual(problems(facts, {"x": np.zeros(2, np.float32), "y": np.zeros(4, np.float32)}), [])
        self.assertEqual(len(problems(facts, {"x": np.zeros(2, np.float32), "y": np.zeros(5, np.float32)})), 1)


if __name__ == "__main__":
    unittest.main()
