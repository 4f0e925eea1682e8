"""Operators that work element by element, against numpy: broadcasting, dtypes, rounding, old opsets, strings."""

import itertools
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

RUN = os.path.join(os.path.dirname(os.environ["TENSORLINT_BINARY"]), "tensorlint-run")


def run_all(nodes, constants, opset):
    """The results of nodes over constants, all in one model; nodes name their one result."""
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "model.onnx").write_bytes(model.SerializeToString())
        result = subprocess.run([RUN, f"--model={root / 'model.onnx'}", f"--outputs={root}"], capture_output=True, text=True, timeout=60)
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        values = []
        for i in range(len(nodes)):
            tensor = TensorProto()
            tensor.ParseFromString((root / f"output_{i}.pb").read_bytes())
            values.append(numpy_helper.to_array(tensor))
        return values


def numbers(random, dtype, shape, least=-40, most=40):
    if np.dtype(dtype).kind in "iu":
        return random.integers(0 if np.dtype(dtype).kind == "u" else least, most, shape).astype(dtype)
    return random.uniform(least, most, shape).astype(dtype)


def old_shape(array, rank, axis):
    """B as it meets A until opset 6."""
    return array.reshape(array.shape + (1,) * (rank - axis - array.ndim))


SHAPES = [
    ((), ()),
    ((3,), ()),
    ((2, 3, 4), (3, 1)),
    ((2, 1, 4), (3, 1)),
    ((5, 1000), (5, 1)),
    ((1, 7), (6, 1)),
    ((700, 3), (3,)),
    ((2, 3, 1, 5), (1, 3, 9, 5)),
    ((0, 3), (3,)),
    ((4, 1, 2, 1), (4, 3, 2, 50)),
    ((2049,), (2049,)),
    ((1, 1), (1, 1, 3)),
]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Less": np.less, "GreaterOrEqual": np.greater_equal, "Equal": np.equal, "Max": np.maximum, "Min": np.minimum}


class Broadcasting(unittest.TestCase):
    def test_shapes_and_dtypes(self):
        random = np.random.default_rng(1)
        nodes, constants, expected = [], {}, []
        for n, ((a, b), dtype) in enumerate(itertools.product(SHAPES, DTYPES)):
            x, y = numbers(random, dtype, a), numbers(random, dtype, b)
            constants[f"x{n}"], constants[f"y{n}"] = x, y
            for name, function in BINARY.items():
                nodes.append(helper.make_node(name, [f"x{n}", f"y{n}"], [f"{name}{n}"]))
                with np.errstate(all="ignore"):
                    # Arithmetic in float64 and one rounding is correctly rounded.
                    wide = x.dtype.kind not in "iu"
                    value = function(x.astype(np.float64), y.astype(np.float64)) if wide else function(x, y)
                expected.append(value if value.dtype == bool else value.astype(dtype))
        for node, got, want in zip(nodes, run_all(nodes, constants, 18), expected, strict=True):
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), node.output[0])
            np.testing.assert_array_equal(got, want, err_msg=node.output[0])

    def test_where_and_many_operands(self):
        random = np.random.default_rng(2)
        c, x, y = random.random((4, 1, 6)) < 0.5, numbers(random, np.float32, (5, 6)), numbers(random, np.float32, (4, 1, 1))
        s = np.array([["a", "b"], ["c", "d"]], dtype=object)
        constants = {"c": c, "x": x, "y": y, "s": s, "t": np.array(["z"], dtype=object), "d": np.array([True, False])}
        nodes = [
            helper.make_node("Where", ["c", "x", "y"], ["w"]),
            helper.make_node("Where", ["d", "s", "t"], ["strings"]),
            helper.make_node("Sum", ["x", "y", "x"], ["sum"]),
            helper.make_node("Mean", ["x", "y", "x", "x"], ["mean"]),
            helper.make_node("Max", ["x", "y", "x"], ["max"]),
        ]
        chosen, strings, total, mean, largest = run_all(nodes, constants, 18)
        np.testing.assert_array_equal(chosen, np.where(c, x, y))
        self.assertEqual(strings.tolist(), [[b"a", b"z"], [b"c", b"z"]] if isinstance(strings[0, 0], bytes) else [["a", "z"], ["c", "z"]])
        wide, other = x.astype(np.float64), y.astype(np.float64)
        np.testing.assert_array_equal(total, ((wide + other) + wide).astype(np.float32))
        np.testing.assert_array_equal(mean, ((wide + other + wide + wide) / 4).astype(np.float32))
        np.testing.assert_array_equal(largest, np.maximum(np.maximum(x, y), x))

    def test_axis_of_old_opsets(self):
        random = np.random.default_rng(3)
        a = numbers(random, np.float32, (2, 3, 4, 5))
        nodes, constants, expected = [], {"a": a}, []
        for n, (axis, shape) in enumerate([(1, (3, 4)), (0, (2,)), (2, (4, 5)), (-2, (4,)), (1, (1, 1))]):
            b = numbers(random, np.float32, shape)
            constants[f"b{n}"] = b
            nodes.append(helper.make_node("Mul", ["a", f"b{n}"], [f"y{n}"], axis=axis, broadcast=1))
            expected.append(a * old_shape(b, 4, axis % 4))
        for got, want in zip(run_all(nodes, constants, 6), expected, strict=True):
            np.testing.assert_array_equal(got, want)


class Integers(unittest.TestCase):
    def test_ends_of_ranges(self):
        top = np.iinfo(np.uint64).max
        u, v = np.array([top, top - 1, 1 << 63, 7], np.uint64), np.array([3, top, 2, 1 << 63], np.uint64)
        i, j = np.array([-(1 << 63), -7, 7, -7], np.int64), np.array([-1, 2, -2, -2], np.int64)
        names = ["Div", "Max", "Less", "Mod"]
        nodes = [helper.make_node(name, pair, [name + pair[0]]) for name in names for pair in (["u", "v"], ["i", "j"])]
        nodes.append(helper.make_node("Mod", ["i", "j"], ["fmod"], fmod=1))
        got = run_all(nodes, {"u": u, "v": v, "i": i, "j": j}, 18)
        np.testing.assert_array_equal(got[0], u // v)
        np.testing.assert_array_equal(got[1], [-(1 << 63), -3, -3, 3])
        np.testing.assert_array_equal(got[2], np.maximum(u, v))
        np.testing.assert_array_equal(got[4], u < v)
        np.testing.assert_array_equal(got[6], u % v)
        np.testing.assert_array_equal(got[7], [0, 1, -1, -1])
        np.testing.assert_array_equal(got[8], [0, -1, 1, -1])

    def test_division_by_zero_ends_the_run(self):
        for name in ("Div", "Mod"):
            with self.assertRaisesRegex(AssertionError, "divide"):
                run_all([helper.make_node(name, ["x", "y"], ["z"])], {"x": np.ones(99, np.int32), "y": np.zeros(99, np.int32)}, 18)

    def test_shifts_and_powers(self):
        x, y = np.array([200, 1, 255, 3], np.uint8), np.array([1, 9, 7, 0], np.uint8)
        nodes = [
            helper.make_node("BitShift", ["x", "y"], ["l"], direction="LEFT"),
            helper.make_node("BitShift", ["x", "y"], ["r"], direction="RIGHT"),
            helper.make_node("Pow", ["b", "e"], ["p"]),
        ]
        left, right, power = run_all(nodes, {"x": x, "y": y, "b": np.array([3, -1, 2, -2], np.int64), "e": np.array([39, -3, -1, 63], np.int64)}, 18)
        np.testing.assert_array_equal(left, [144, 0, 128, 3])
        np.testing.assert_array_equal(right, [100, 0, 1, 3])
        np.testing.assert_array_equal(power, [3**39, -1, 0, -(1 << 63)])


def erf(x):
    return np.array([math.erf(v) for v in x])


def softplus(x):
    return np.logaddexp(0, x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "Exp": np.exp,
    "Tanh": np.tanh,
    "Erf": erf,
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Sin": np.sin,
    "Atan": np.arctan,
    "Sqrt": np.sqrt,
    "Log": np.log,
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Round": np.rint,
    "Floor": np.floor,
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: np.maximum(x, 0),
    "Sinh": np.sinh,
    "Asinh": np.arcsinh,
    "Gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
}


class Functions(unittest.TestCase):
    def test_are_correctly_rounded_nearly_always(self):
        random = np.random.default_rng(4)
        x = np.concatenate([random.uniform(-12, 12, 6000), random.normal(0, 1, 6000), np.exp(random.uniform(-40, 4, 6000)) * random.choice([-1, 1], 6000)])
        single = x.astype(np.float32)
        nodes = [helper.make_node(name, [operand], [name + operand]) for name in FUNCTIONS for operand in ("s", "d")]
        results = run_all(nodes, {"s": single, "d": x}, 22)
        for n, (name, function) in enumerate(FUNCTIONS.items()):
            with np.errstate(all="ignore"):
                wanted = function(single.astype(np.float64)).astype(np.float32)
                wide = function(x)
            # Ties of rounding that 4e-16 decides: 1 element in some 10^7.
            wrong = np.count_nonzero(~((results[2 * n] == wanted) | (np.isnan(wanted) & np.isnan(results[2 * n]))))
            self.assertLessEqual(wrong, 1, name)
            scale = np.maximum(np.abs(wide), np.abs(x) * 0.5) if name in ("Gelu", "HardSwish") else np.abs(wide)  # 1 + erf cancels
            with np.errstate(all="ignore"):
                error = np.nanmax(np.where(np.isfinite(wide) & (wide != 0), np.abs(results[2 * n + 1] - wide) / scale, 0))
            self.assertLess(error, 1.1e-15, name)

    def test_ends(self):
        x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-310, -1e-310, 800, -800, 1e308], np.float64)
        names = ["Exp", "Log", "Tanh", "Erf", "Sigmoid", "Softplus"]
        results = run_all([helper.make_node(name, ["x"], [name]) for name in names], {"x": x}, 22)
        for name, got in zip(names, results, strict=True):
            with np.errstate(all="ignore"):
                want = np.where(np.isnan(x), x, softplus(np.nan_to_num(x))) if name == "Softplus" else FUNCTIONS[name](x)
            if name == "Softplus":
                want[:2] = [np.inf, 0]
            np.testing.assert_allclose(got, want, rtol=1e-14, atol=0, err_msg=name)

    def test_clip_of_integers(self):
        x = np.array([0, 5, np.iinfo(np.uint64).max], np.uint64)
        constants = {"x": x, "lo": np.array(3, np.uint64), "hi": np.array(1 << 63, np.uint64), "i": np.arange(-4, 4, dtype=np.int8), "h": np.array(2, np.int8)}
        clipped, narrow = run_all([helper.make_node("Clip", ["x", "lo", "hi"], ["y"]), helper.make_node("Clip", ["i", "", "h"], ["z"])], constants, 18)
        np.testing.assert_array_equal(clipped, [3, 5, 1 << 63])
        np.testing.assert_array_equal(narrow, [-4, -3, -2, -1, 0, 1, 2, 2])


class Casts(unittest.TestCase):
    def test_between_numbers(self):
        random = np.random.default_rng(5)
        nodes, constants, expected = [], {}, []
        for n, source in enumerate(DTYPES):
            x = numbers(random, source, (300,), -100, 100) if np.dtype(source).kind == "i" else numbers(random, source, (300,), 0, 120)
            constants[f"x{n}"] = x
            for target in (*DTYPES, bool):
                code = helper.np_dtype_to_tensor_dtype(np.dtype(target))
                nodes.append(helper.make_node("Cast", [f"x{n}"], [f"{np.dtype(source)}_{np.dtype(target)}"], to=code))
                expected.append(x.astype(target))
        for node, got, want in zip(nodes, run_all(nodes, constants, 21), expected, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=node.output[0])

    def test_large_integers_round_once(self):
        x = np.array([(1 << 53) + 1, (1 << 60) + (1 << 36) + 1, (1 << 60) + (1 << 36), -(1 << 60) - (1 << 36) - 1, (1 << 63) - 1], np.int64)
        u = np.array([(1 << 64) - 1, (1 << 63) + (1 << 39) + 1, (1 << 63) + (1 << 39)], np.uint64)
        nodes = [helper.make_node("Cast", [v], [f"{v}{to}"], to=to) for v in ("x", "u") for to in (TensorProto.FLOAT, TensorProto.DOUBLE)]
        results = run_all(nodes, {"x": x, "u": u}, 21)
        for got, want in zip(results, [x.astype(np.float32), x.astype(np.float64), u.astype(np.float32), u.astype(np.float64)], strict=True):
            np.testing.assert_array_equal(got, want)

    def test_nan_is_above_no_threshold(self):
        x = np.array([np.nan, -1, 0.5, 2, np.inf], np.float32)
        result, = run_all([helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=1.0)], {"x": x}, 22)
        np.testing.assert_array_equal(result, [0, 0, 0, 2, np.inf])

    def test_text(self):
        x = np.array([0.1, 5, 1e-5, 1e16, 123456.789, np.nan, -np.inf, 0], np.float32)
        s = np.array(["1.5", " -2e3 ", "INF", "NaN", "+7", "1e-400"], dtype=object)
        nodes = [
            helper.make_node("Cast", ["x"], ["a"], to=TensorProto.STRING),
            helper.make_node("Cast", ["h"], ["b"], to=TensorProto.STRING),
            helper.make_node("Cast", ["s"], ["c"], to=TensorProto.DOUBLE),
            helper.make_node("Cast", ["i"], ["d"], to=TensorProto.UINT64),
        ]
        h = np.array([0.1, 1.5], np.float16)
        texts, halves, back, large = run_all(nodes, {"x": x, "h": h, "s": s, "i": np.array(["18446744073709551615"], dtype=object)}, 21)
        as_text = [t.decode() if isinstance(t, bytes) else t for t in texts.tolist()]
        self.assertEqual(as_text, x.astype(np.str_).tolist())
        self.assertEqual([t.decode() if isinstance(t, bytes) else t for t in halves.tolist()], h.astype(np.str_).tolist())
        np.testing.assert_array_equal(back, [1.5, -2000, np.inf, np.nan, 7, 0])
        self.assertEqual(large[0], (1 << 64) - 1)
        with self.assertRaisesRegex(AssertionError, "`abc` is not a number"):
            run_all([helper.make_node("Cast", ["s"], ["c"], to=TensorProto.FLOAT)], {"s": np.array(["abc"], dtype=object)}, 21)


class Quantisation(unittest.TestCase):
    def test_axis_and_blocks(self):
        random = np.random.default_rng(6)
        x = numbers(random, np.float32, (4, 7, 3))
        scale, zero = random.uniform(0.1, 1, 7).astype(np.float32), random.integers(-9, 9, 7).astype(np.int8)
        blocks = random.uniform(0.1, 1, (4, 4, 3)).astype(np.float32)  # blocks of 2, the last of 1
        constants = {"x": x, "s": scale, "z": zero, "b": blocks}
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=-2),
            helper.make_node("QuantizeLinear", ["x", "b"], ["p"], axis=1, block_size=2, output_dtype=TensorProto.INT16),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=1),
        ]
        q, p, d = run_all(nodes, constants, 21)
        s, z = scale[:, None], zero[:, None].astype(np.int32)
        np.testing.assert_array_equal(q, np.clip(np.rint(x / s) + z, -128, 127))
        np.testing.assert_array_equal(p, np.rint(x / np.repeat(blocks, 2, axis=1)[:, :7]))
        np.testing.assert_array_equal(d, ((q.astype(np.int32) - z) * s.astype(np.float64)).astype(np.float32))


class Strings(unittest.TestCase):
    def matches(self, pattern, *texts):
        constants = {"x": np.array(texts, dtype=object)}
        return run_all([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], constants, 20)[0].tolist()

    def test_regular_expressions(self):
        cases = [
            ("a{2,4}", ["a", "aa", "aaaa", "aaaaa"], [0, 1, 1, 0]),
            ("(?:a|bc)*?d+", ["d", "abcad", "abd"], [1, 1, 0]),
            (r"[^a-c\d]+", ["xyz", "xaz", "x1"], [1, 0, 0]),
            (r"(?i)straSSe[\w.]*", ["STRASSE.x", "stra"], [1, 0]),
            (r"\bfoo\b.bar$", ["foo bar", "foo_bar"], [1, 0]),
            ("(?s).*", ["a\nb", ""], [1, 1]),
            (".", ["\n", "é", "ab"], [0, 1, 0]),
            (r"\x41[[:digit:]]{3}", ["A123", "A12"], [1, 0]),
            ("a{,2}", ["a{,2}", "aa"], [1, 0]),
            (r"(x*)*y", ["x" * 3000 + "y", "x" * 3000], [1, 0]),
            ("()|a", ["", "a", "b"], [1, 1, 0]),
            (r"\Qa.b\E+", ["a.bb", "axb"], [1, 0]),
            (r"(?i)\p{Greek}+É", ["αβγé", "abé"], [1, 0]),
        ]
        for pattern, texts, want in cases:
            self.assertEqual(self.matches(pattern, *texts), [bool(w) for w in want], pattern)

    def test_malformed_patterns(self):
        for pattern in ("(", "a**", "[a", r"(a)\1", "a{1001}", "*", ")", r"\p{Greec}", "[z-a]", "((((a{1000}){1000}){1000}){1000})", "(" * 500):
            with self.assertRaisesRegex(AssertionError, "regular expression|pattern"):
                self.matches(pattern, "a")
        self.assertEqual(self.matches("(" * 500 + ")" * 500, ""), [True])

    def test_normalizer_and_split(self):
        constants = {"x": np.array(["Über", "the", "END", "The"], dtype=object), "t": np.array([" a  b c ", ""], dtype=object), "u": np.array(["a--b-", "--"], dtype=object)}
        nodes = [
            helper.make_node("StringNormalizer", ["x"], ["n"], case_change_action="UPPER", is_case_sensitive=0, stopwords=["THE"]),
            helper.make_node("StringSplit", ["t"], ["s", "c"], maxsplit=1),
            helper.make_node("StringSplit", ["u"], ["r", "k"], delimiter="-"),
        ]
        words, parts, others = ([[w.decode() if isinstance(w, bytes) else w for w in row] for row in np.atleast_2d(r).tolist()] for r in run_all(nodes, constants, 20))
        self.assertEqual(words, [["ÜBER", "END"]])
        self.assertEqual(parts, [["a", "b c "], ["", ""]])
        self.assertEqual(others, [["a", "", "b", ""], ["", "", "", ""]])


class Generators(unittest.TestCase):
    def test_are_those_of_numpy(self):
        nodes = [
            helper.make_node("RandomUniform", [], ["u"], shape=[5, 1000], seed=7.0, low=-1.0, high=3.0),
            helper.make_node("RandomNormal", [], ["n"], shape=[3, 333], seed=8.0, mean=1.0, scale=2.0, dtype=TensorProto.DOUBLE),
            helper.make_node("RandomUniform", [], ["a"], shape=[100]),
            helper.make_node("RandomUniform", [], ["b"], shape=[100]),
        ]
        uniform, normal, first, second = run_all(nodes, {}, 22)
        np.testing.assert_array_equal(uniform, np.random.RandomState(7).uniform(-1, 3, (5, 1000)).astype(np.float32))
        np.testing.assert_allclose(normal, np.random.RandomState(8).randn(3, 333) * 2 + 1, rtol=1e-14)
        self.assertFalse(np.array_equal(first, second), "calls without a seed draw the same numbers")


if __name__ == "__main__":
    unittest.main()
