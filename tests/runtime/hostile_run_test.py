"""Operands, attributes and shapes that no sane model has: each run ends with results or with an error that says why."""

import os
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(os.environ["TENSORLINT_BINARY"]).with_name("tensorlint-run")
LEAST, MOST = -(2**63), 2**63 - 1
LOOP = "Loop <body = b (int64 i, bool c, {0} v) => (bool go, {0} w) {{ go = Identity (c) w = {1} }}> (n, , s)"

# {k} is an extreme number: name, inputs, body.
BY_NUMBER = [
    ("TopK", "float[2,3] x", "k = Constant <value_ints = [{k}]> () y, i = TopK (x, k)"),
    ("OneHot", "int64[3] i, float[2] v", "d = Constant <value_int = {k}> () y = OneHot (i, d, v)"),
    ("ConstantOfShape", "float x", "k = Constant <value_ints = [{k}, 0, {k}]> () y = ConstantOfShape (k)"),
    ("Tile", "float[2,3] x", "k = Constant <value_ints = [{k}, {k}]> () y = Tile (x, k)"),
    ("Expand", "float[2,3] x", "k = Constant <value_ints = [{k}, 2, 3]> () y = Expand (x, k)"),
    ("PadConstant", "float[2,3] x", "k = Constant <value_ints = [{k}, 0, 0, {k}]> () y = Pad (x, k)"),
    ("PadWrap", "float[2,3] x", 'k = Constant <value_ints = [{k}, 0, 0, {k}]> () y = Pad <mode = "wrap"> (x, k)'),
    ("PadReflect", "float[2,3] x", 'k = Constant <value_ints = [{k}, 0, 3, 0]> () y = Pad <mode = "reflect"> (x, k)'),
    ("Slice", "float[2,3] x", "k = Constant <value_ints = [{k}]> () y = Slice (x, k, k, k, k)"),
    ("Gather", "float[2,3] x", "k = Constant <value_ints = [{k}]> () y = Gather (x, k)"),
    ("GatherND", "float[2,3] x", "k = Constant <value_ints = [{k}, {k}]> () y = GatherND (x, k)"),
    ("ScatterElements", "float[2] x, float[1] u", "k = Constant <value_ints = [{k}]> () y = ScatterElements (x, k, u)"),
    ("TensorScatter", "float[1,4,2] x, float[1,2,2] u", "k = Constant <value_ints = [{k}]> () y = TensorScatter (x, u, k)"),
    ("ReverseSequence", "float[3,1] x", "k = Constant <value_ints = [{k}]> () y = ReverseSequence (x, k)"),
    ("SequenceAt", "float x", "k = Constant <value_int = {k}> () s = SequenceConstruct (x, x) y = SequenceAt (s, k)"),
    ("DFT", "float[1,4,1] x", "k = Constant <value_int = {k}> () y = DFT (x, k)"),
    ("DFTAxis", "float[1,4,1] x", "k = Constant <value_int = {k}> () y = DFT (x, , k)"),
    ("STFT", "float[1,8,1] x", "k = Constant <value_int = {k}> () y = STFT (x, k, , k)"),
    ("MelWeightMatrix", "float l, float h", "k = Constant <value_int = {k}> () f = Constant <value_int = 4> () y = MelWeightMatrix (f, f, k, l, h)"),
    ("Softmax", "float[2,3] x", "y = Softmax <axis = {k}> (x)"),
    ("DepthToSpace", "float[1,4,2,2] x", "y = DepthToSpace <blocksize = {k}> (x)"),
    ("SpaceToDepth", "float[1,4,2,2] x", "y = SpaceToDepth <blocksize = {k}> (x)"),
    ("MaxPool", "float[1,1,4] x", "y = MaxPool <kernel_shape = [{k}], pads = [{k}, 0]> (x)"),
    ("MaxPoolDilation", "float[1,1,4] x", 'y = MaxPool <kernel_shape = [2], dilations = [{k}], auto_pad = "SAME_UPPER"> (x)'),
    ("Conv", "float[1,1,4] x", "y = Conv <pads = [{k}, 0], strides = [{k}]> (x, x)"),
    ("ConvTranspose", "float[1,1,4] x", "y = ConvTranspose <output_padding = [{k}]> (x, x)"),
    ("MaxUnpool", "float[1,1,2] x, int64[1,1,2] i", "y = MaxUnpool <kernel_shape = [{k}], strides = [{k}]> (x, i)"),
    ("Col2Im", "float[1,4,4] x", "k = Constant <value_ints = [{k}, 3]> () b = Constant <value_ints = [2, 2]> () y = Col2Im (x, k, b)"),
    ("Col2ImBlock", "float[1,4,4] x", "b = Constant <value_ints = [{k}, 1]> () k = Constant <value_ints = [2, 2]> () y = Col2Im (x, k, b)"),
    ("RoiAlign", "float[1,1,4,4] x, float[1,4] r", "b = Constant <value_ints = [0]> () y = RoiAlign <sampling_ratio = {k}> (x, r, b)"),
    ("Resize", "float[2,3] x", "k = Constant <value_ints = [{k}, {k}]> () y = Resize (x, , , k)"),
    ("NegativeLogLikelihoodLoss", "float[1,3] x", "k = Constant <value_ints = [{k}]> () y = NegativeLogLikelihoodLoss (x, k)"),
    ("SplitToSequence", "float[{n}, 0] x", "s = SplitToSequence (x) y = SequenceLength (s)"),
    ("Softmax0", "float[{n}, 4, 0] x", "y = Softmax <axis = 1> (x)"),
    ("ReduceSum0", "float[{n}, 0] x", "y = ReduceSum (x)"),
]

# {f} is a number that is not finite, or extreme.
BY_FLOAT = [
    ("GridSample", 'y = GridSample <mode = "cubic", padding_mode = "reflection"> (x, g) ', "1, 2, 2, 2", "float[1,1,3,3] x"),
    ("Crop", 't = Constant <value_ints = [2, 2]> () y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> (x, g, , t)', "4", "float[2,3] x"),
    ("Scales", 'y = Resize <mode = "cubic", antialias = 1> (x, , g)', "2", "float[2,3] x"),
    ("RoiAlign", "b = Constant <value_ints = [0]> () y = RoiAlign (x, g, b)", "1, 4", "float[1,1,3,3] x"),
    ("MaxRoiPool", "y = MaxRoiPool <pooled_shape = [2, 2]> (x, g)", "1, 5", "float[1,1,3,3] x"),
    ("DeformConv", "y = DeformConv (x, w, g)", "1, 8, 2, 2", "float[1,1,3,3] x, float[1,1,2,2] w"),
    ("Exp", "y = Exp (g)", "9", "float x"),
    ("Cast", "y = Cast <to = 7> (g)", "9", "float x"),
    ("Range", "z = Constant <value_float = 0.0> () o = Constant <value_float = 1.0> () r = ReduceMax (g) y = Range (z, r, o)", "2", "float x"),
]

# Operands that fit no operator: each would be a read or a write past an end, or a division by 0.
MISFIT = [
    ("rotary_embedding_dim", "float[1,2,3,4] x, float[3,50] c, int64[1,3] p", "y = RotaryEmbedding <rotary_embedding_dim = 100> (x, c, c, p)"),
    ("rows of the caches", "float[1,2,3,4] x, float[3,2] c, float[1,2] s", "p = Constant <value = int64[1,3] {0, 1, 2}> () y = RotaryEmbedding (x, c, s, p)"),
    ("0 key heads", "float[1,2,3,4] q, float[1,0,3,4] k", "y = Attention (q, k, k)"),
    ("it has to have shape [3]", "float[3,2,3,4] q", "n = Constant <value_ints = [1]> () y = Attention (q, q, q, , , , n)"),
    ("6 keys and 18 values", "float[2,3,4,8] q, float[2,3,6,8] k, float[2,3,12,8] p", "y, a, b, c = Attention (q, k, k, , , p)"),
    ("outside 0 to 3", "float[1,2,3,4] q", "n = Constant <value_ints = [-9223372036854775808]> () y = Attention (q, q, q, , , , n)"),
    ("a kernel of 0 elements", "float[1,2,5] x, float[2,1,0] w", "y, p = CausalConvWithState (x, w)"),
    ("is not the number of", "float[1,2,3,4] q", "y = ai.onnx.preview.FlexAttention <softmax_precision = 1234> (q, q, q)"),
    ("it has to have one element", "uint8[1,1,4,4] x, uint8[1,1,2,2] w, uint8[20] z", "y = ConvInteger (x, w, z)"),
    ("length of the window", "float[1,8,1] x, float[0] w", "k = Constant <value_int = 2> () y = STFT (x, k, w)"),
    ("length of the signal", "float[1,0,1] x", "k = Constant <value_int = 2> () y = STFT (x, k)"),
    ("one a row", "uint8[2,0] a, float[2,0] s, uint8 z, uint8[0,3] b, float r", "y = QLinearMatMul (a, s, z, b, r, z, r, z)"),
    ("one a row", "uint8[4,2] a, uint8[2,3] b, uint8[2,1] z", "y = MatMulInteger (a, b, z)"),
    ("not the number of a floating dtype", "float[3,4] x, float s", "y = QuantizeLinear <precision = 2> (x, s)"),
    ("numbers a step", "float[2,0,4] q, float[2,0,3] d, float[2,2,2,2] p", 'o, y = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "gated"> (q, q, q, p, d)'),
]

# Results without elements, or states without steps.
EMPTY = [
    ("MaxPool", "float[1,1,0,5] x", "y = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x)"),
    ("MaxPoolCeil", "float[1,1,0,6] x", "y = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2], strides = [2, 2], ceil_mode = 1> (x)"),
    ("LinearAttention", "float[2,0,4] q, float[2,0,2] d, float[2,2,2,2] p", 'o, y = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "gated"> (q, q, q, p, d)'),
    ("AttentionScores", "float[1,2,3,4] q, float[1,2,3,0] v", "o, k, w, y = Attention (q, q, v)"),
]

# What is refused, and how.
REFUSED = [
    (
        "12 needed",
        '<ir_version: 10, opset_import: ["": 6]>\n'
        + "g (float[2,3,4] x, float[3] s) => (y) { y = BatchNormalization <spatial = 0, is_test = 1> (x, s, s, s, s) }",
    ),
    (
        "nested too deep",
        "g (float x) => (y) { s = SequenceConstruct (x) o = SequenceConstruct (x) n = Constant <value_int = 1000000> () q = Loop (n, , s) "
        + "<body = b (int64 i, bool c, v) => (bool g, w) { g = Identity (c) w = SequenceMap <body = k (e) => (v) { }> (o) }> y = SequenceLength (q) }",
    ),
    (
        "a condition is not one element of dtype bool",
        "g (float x) => (float y) { y = If <then_branch = t () => (float a) { a = Identity (x) }, else_branch = e () => (float b) { b = Identity (x) }> (x) }",
    ),
    ("the trip count is not one element", "g (int64[0] n, float s) => (float y) { y = " + LOOP.format("float", "Add (v, v)") + " }"),
    (
        "the limit is 67108864",
        'g (float x) => (string[1] y) { s = Constant <value_strings = ["aaaaaaaaaaaaaaaa"]> () n = Constant <value_int = 60> () y = '
        + LOOP.format("string[1]", "StringConcat (v, v)")
        + " }",
    ),
    ("bad repetition operator: {1}{1}", 'g (float x) => (bool[1] y) { s = Constant <value_strings = ["a"]> () y = RegexFullMatch <pattern = "a' + "{1}" * 5000 + '"> (s) }'),
    ("invalid repetition size: {100}", 'g (float x) => (bool[1] y) { s = Constant <value_strings = ["a"]> () y = RegexFullMatch <pattern = "((((ab){100}){100}){100}){100}"> (s) }'),
    ("the limit is 67108864", 'g (float[4096] x) => (float y) { y = Einsum <equation = "i,j,i,j->"> (x, x, x, x) }'),
    ("the limit is 67108864", "g (int8[4096, 4096] x, int8[4096, 1] v) => (int32[4096, 1] y) { y = MatMulInteger (x, v) }"),
]

# What operators note down beside their results, beyond the limit.
LISTS = [
    ("NonZero", "k = Constant <value_ints = [5000000]> () t = ConstantOfShape <value = int8[1] {1}> (k) y = NonZero (t)"),
    ("Unique", "k = Constant <value_ints = [4000000]> () t = ConstantOfShape <value = int8[1] {1}> (k) y = Unique (t)"),
    ("Compress", "k = Constant <value_ints = [5000000]> () t = ConstantOfShape <value = bool[1] {1}> (k) y = Compress (t, t)"),
    ("RoiAlign", "k = Constant <value_ints = [1, 1, 2, 2]> () t = ConstantOfShape (k) r = Constant <value = float[1,4] {0, 0, 1, 1}> () b = Constant <value_ints = [0]> () y = RoiAlign <sampling_ratio = 1000, output_height = 2, output_width = 2> (t, r, b)"),
    ("SplitToSequence", "k = Constant <value_ints = [200000]> () t = ConstantOfShape <value = int8[1] {1}> (k) s = SplitToSequence (t) y = SequenceLength (s)"),
]

# Strings beyond the limit, from `s`, which holds one of a thousand characters.
STRINGS = [
    ("Tile", "k = Constant <value_ints = [1000000]> () y = Tile (s, k)"),
    ("Expand", "k = Constant <value_ints = [1000000]> () y = Expand (s, k)"),
    ("Gather", "k = Constant <value_ints = [1000000]> () f = ConstantOfShape (k) i = Cast <to = 7> (f) y = Gather (s, i)"),
    ("Where", "k = Constant <value_ints = [1000000]> () f = ConstantOfShape (k) c = Cast <to = 9> (f) y = Where (c, s, s)"),
    ("Pad", 'k = Constant <value_ints = [0, 1000000]> () y = Pad <mode = "edge"> (s, k)'),
    ("Concat", "n = Constant <value_int = 30> () y = " + LOOP.format("string[N]", "Concat <axis = 0> (v, v)")),
    ("StringConcat", "n = Constant <value_int = 30> () y = " + LOOP.format("string[1]", "StringConcat (v, v)")),
    ("SequenceInsert", "n = Constant <value_int = 1000> () k = Constant <value_ints = [1000]> () q = SequenceEmpty <dtype = 8> () "
     + "t = Loop <body = b (int64 i, bool c, v) => (bool go, w) { go = Identity (c) e = Tile (s, k) w = SequenceInsert (v, e) }> (n, , q) y = SequenceLength (t)"),
    ("ScanOutputs", "n = Constant <value_int = 1000000> () "
     + "u, y = Loop <body = b (int64 i, bool c, string[1] v) => (bool go, string[1] w, string[1] o) { go = Identity (c) w = Identity (v) o = Identity (v) }> (n, , s)"),
    ("StringNormalizer", 'k = Constant <value_ints = [40000]> () t = Tile (s, k) y = StringNormalizer <case_change_action = "UPPER"> (t)'),
    ("Unique", "k = Constant <value_ints = [40000]> () t = Tile (s, k) y = Unique (t)"),
    ("StringSplit", 'k = Constant <value_ints = [4000]> () t = Tile (s, k) y, z = StringSplit <delimiter = "x"> (t)'),
    ("Cast", "k = Constant <value_ints = [2000000]> () f = ConstantOfShape (k) y = Cast <to = 8> (f)"),
]


class HostileRunTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = Path(folder.name) / "m.onnxtxt"

    def run_graph(self, graph: str) -> str:
        """What it says; fails unless it gives results or refuses."""
        self.model.write_text(graph if graph.startswith("<") else f'<ir_version: 10, opset_import: ["": 27, "ai.onnx.preview": 1]>\n{graph}')
        limits = ["--memory-limit=67108864", "--time-limit=20", "--seed=1", "--check-facts=1"]
        result = subprocess.run([str(RUNNER), f"--model={self.model}", "--text=1", *limits], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn(result.returncode, (0, 2), result.stderr + result.stdout)
        for word in ("internal", "bug", "time limit", "no memory"):
            self.assertNotIn(word, result.stderr)
        return result.stderr

    def test_extreme_numbers(self) -> None:
        for name, inputs, body in BY_NUMBER:
            for k in (0, -1, 2**40, MOST, LEAST):
                with self.subTest(name, k=k):
                    text = body.format(k=k)
                    self.run_graph(f"g ({inputs.format(n=max(k, 0))}) => (y) {{ {text} }}")

    def test_extreme_floats(self) -> None:
        for name, body, shape, inputs in BY_FLOAT:
            for numerator, denominator in (("0.0", "0.0"), ("1.0", "0.0"), ("-1.0", "0.0"), ("1e30", "1.0"), ("1e-30", "1.0")):
                with self.subTest(name, number=f"{numerator} / {denominator}"):
                    given = f"a = Constant <value_float = {numerator}> () b0 = Constant <value_float = {denominator}> () f = Div (a, b0) "
                    given += f"o = Constant <value_ints = [{shape}]> () g = Expand (f, o) "
                    self.run_graph(f"g ({inputs}) => (y) {{ {given} {body} }}")

    def test_operands_that_do_not_fit(self) -> None:
        for why, inputs, body in MISFIT:
            with self.subTest(why):
                self.assertIn(why, self.run_graph(f"g ({inputs}) => (y) {{ {body} }}"))

    def test_operands_without_elements(self) -> None:
        for name, inputs, body in EMPTY:
            with self.subTest(name):
                self.assertEqual(self.run_graph(f"g ({inputs}) => (y) {{ {body} }}"), "")

    def outcome(self, graph: str, *options: str) -> subprocess.CompletedProcess[str]:
        self.model.write_text(f'<ir_version: 10, opset_import: ["": 22]>\n{graph}')
        command = [os.environ["TENSORLINT_BINARY"], "run", str(self.model), "--seed", "1", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_integers_that_float64_does_not_hold_are_sampled(self) -> None:
        grid = "g = Constant <value = float[1,1,3,2] {-0.6667, 0.0, 0.0, 0.0, 0.6667, 0.0}> ()"
        for dtype, elements in (("int64", [2**53 + 1, MOST, LEAST]), ("uint64", [2**53 + 1, 2**64 - 1, 2**63])):
            with self.subTest(dtype):
                text = ", ".join(map(str, elements))
                result = self.outcome(f'g () => ({dtype}[1,1,1,3] y) {{ x = Constant <value = {dtype}[1,1,1,3] {{{text}}}> () {grid} y = GridSample <mode = "nearest"> (x, g) }}')
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"[{text}]", result.stdout)
        # Between such numbers there are some that no element has: the last one is as near as the dtype comes.
        result = self.outcome(f"g () => (int64[1,1,1,3] y) {{ x = Constant <value = int64[1,1,1,3] {{{MOST}, {MOST}, {MOST}}}> () {grid} y = GridSample (x, g) }}")
        self.assertNotIn("-", result.stdout)

    def test_sizes_that_keep_no_aspect_ratio(self) -> None:
        for shape, sizes, policy in (("1,1000", [2**62, 1], "not_smaller"), ("1,1000", [2**55, 1], "not_smaller"), ("0,10", [5, 5], "not_smaller"), ("0,10", [0, 5], "not_larger")):
            with self.subTest(shape, sizes=sizes):
                resize = f's = Constant <value_ints = {sizes}> () y = Resize <keep_aspect_ratio_policy = "{policy}"> (x, , , s)'
                result = self.outcome(f"g (float[{shape}] x) => (y) {{ {resize} }}", "--force")
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertRegex(result.stderr, r"axis \d cannot be resized by")

    def test_windows_of_extents_beyond_int64(self) -> None:
        for strides in (2**62, MOST):
            text = f"k = Constant <value_ints = [1, 1, 3]> () y = MaxUnpool <kernel_shape = [2], strides = [{strides}]> (x, i, k)"
            result = self.outcome(f"g (float[1,1,4] x, int64[1,1,4] i) => (y) {{ {text} }}", "--force")
            self.assertEqual(result.returncode, 2, result.stdout)

    def test_blocks_that_are_longer_than_any_axis(self) -> None:
        quantized = f"x = Constant <value = int8[4,4] {{{','.join('1' * 16)}}}> () y = DequantizeLinear <axis = 1, block_size = {MOST}> (x, s)"
        for blocks, code in ((0, 2), (1, 0), (2, 2)):
            scale = ",".join(["1"] * 4 * blocks)
            result = self.outcome(f"g () => (y) {{ s = Constant <value = float[4,{blocks}] {{{scale}}}> () {quantized} }}", "--force")
            self.assertEqual(result.returncode, code, result.stderr)

    def test_bounds_that_are_no_numbers(self) -> None:
        for operands, made in (("x, , m", "5"), ("x, m", "-5"), ("x, m, m", "1")):
            clip = f"z = Constant <value_float = -1.0> () m = Sqrt (z) x = Constant <value_float = {made}.0> () y = Clip ({operands})"
            result = self.outcome(f"g () => (y) {{ {clip} }}", "--check-facts", "--force")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_windows_that_see_little_of_the_image(self) -> None:
        """Padding is not multiplied: what the filters see is one element, and the result is what it is with few filters."""
        made = "s = Constant <value_ints = [{0}, 1, 128, 128]> () w = ConstantOfShape <value = float[1] {{2}}> (s) x = Constant <value = float[1,1,1,1] {{3}}> ()"
        results = []
        for filters in (1, 8):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            result = self.outcome(f"g () => (z) {{ {made.format(filters)} y = Conv <pads = [127, 127, 127, 127]> (x, w) z = ReduceMean <keepdims = 0> (y) }}")
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertLess(used.ru_utime - before.ru_utime, 1)
            results.append(result.stdout)
        self.assertEqual(results[0], results[1])

    def test_padding_of_a_result_that_is_no_padding(self) -> None:
        made = "x = Constant <value = float[1,1,3,3] {1,1,1,1,1,1,1,1,1}> ()"
        for padding, code in (([0, -1], 2), ([LEAST, 0], 2), ([MOST, MOST], 2), ([0, 1], 0)):
            result = self.outcome(f"g () => (y) {{ {made} y = ConvTranspose <output_padding = {padding}, output_shape = [5, 5]> (x, x) }}", "--force")
            self.assertEqual(result.returncode, code, result.stderr)

    def test_integers_at_the_end_of_what_float64_counts(self) -> None:
        number = f"k = Constant <value_int = {2**53 + 1}> () one = Constant <value_int = 1> () m = Neg (k)"
        for body in ("a = Max (x, k) b = Min (a, k) y = Sub (b, one)", "a = Min (x, m) b = Max (a, m) y = Add (b, one)"):
            result = self.outcome(f"g (int64 x) => (y) {{ {number} {body} }}", "--check-facts")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_windows_over_nothing_but_padding(self) -> None:
        for shape, kernel, pads in (([1, 1, 0], [2], [1, 1]), ([1, 1, 0, 4], [2, 1], [1, 0, 1, 0]), ([1, 1, 4, 0], [1, 2], [0, 1, 0, 1])):
            made = f"s = Constant <value_ints = {shape}> () x = ConstantOfShape (s)"
            result = self.outcome(f"g () => (y, i) {{ {made} y, i = MaxPool <kernel_shape = {kernel}, pads = {pads}, storage_order = 1> (x) }}", "--force")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_sizes_that_are_no_list(self) -> None:
        """ONNX Runtime reads the elements in their order: as many as there are axes."""
        for shape, elements, code in (("1,1", "2", 2), ("2,2", "1,1,8,8", 0), ("1,2", "2,2", 2)):
            sizes = f"s = Constant <value = int64[{shape}] {{{elements}}}> ()"
            result = self.outcome(f"g (float[1,1,4,4] x) => (y) {{ {sizes} y = Resize (x, , , s) }}")
            self.assertEqual(result.returncode, code, result.stderr)

    def test_axes_that_are_longer_than_int64_in_all(self) -> None:
        operands = ", ".join(["x"] * 300)
        sequence = f"q = SequenceConstruct ({operands}) y = ConcatFromSequence <axis = 1> (q)"
        result = self.outcome(f"g () => (y) {{ s = Constant <value_ints = [0, {2**55}]> () x = ConstantOfShape (s) {sequence} }}", "--force")
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("more elements in all than int64 holds", result.stderr)

    def test_graphs_that_a_call_gives(self) -> None:
        head = '<ir_version: 10, opset_import: ["": 21, "f": 1, "ai.onnx.preview": 1]>'
        attention = """
        <domain: "f", opset_import: ["": 21, "ai.onnx.preview": 1]> F <m> (q, k, v) => (y) { y = ai.onnx.preview.FlexAttention <score_mod: graph = @m> (q, k, v) }"""
        given = "<m: graph = mod (float[1,1,2,2] s) => (float[1,1,2,2] o) { o = Neg (s) }>"
        again = "<m: graph = mod (float[1,1,2,2] s) => (float[1,1,2,2] o) { o = f.F <m: graph = inner (float[1,1,2,2] t) => (float[1,1,2,2] u) { u = Neg (t) }> (s, s, s) }>"
        for attributes, code, why in ((given, 0, ""), (again, 2, "the function is called within itself")):
            self.model.write_text(f"{head} g (float[1,1,2,2] x) => (float[1,1,2,2] y) {{ y = f.F {attributes} (x, x, x) }}{attention}")
            command = [os.environ["TENSORLINT_BINARY"], "run", str(self.model), "--seed", "1"]
            for options in ([], ["--check-facts"], ["--force", "--device", "emulated:0"]):
                result = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(why, result.stderr)

    def test_functions_in_graphs_that_nobody_follows(self) -> None:
        """What is known of a function's values has to hold in its calls there, too."""
        text = """<ir_version: 10, opset_import: ["": 21, "f": 1, "ai.onnx.preview": 1]>
        g (float[1,2,3,8] x) => (float[1,2,3,8] y) {
          z = f.G (x)
          y = ai.onnx.preview.FlexAttention <score_mod: graph = m (float[1,2,3,3] s) => (float[1,2,3,3] o) { o = f.G (s) }> (z, x, x)
        }
        <domain: "f", opset_import: ["": 21]> G (a) => (b) { b = Neg (a) }"""
        self.model.write_text(text)
        for options in (["--check-facts"], ["--device", "emulated:0"]):
            result = subprocess.run([os.environ["TENSORLINT_BINARY"], "run", str(self.model), "--seed", "1", *options], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_scan_outputs_of_no_iteration_whose_body_declares_names(self) -> None:
        for declared in ("[N, M]", "[N, 4]", "[3, 4]", "[]"):
            body = f"<body = b (int64 i, bool c) => (bool d, float{declared} o) {{ d = Identity (c) o = Identity (x) }}>"
            result = self.outcome(f"g (int64 k, float[3,4] x) => (y) {{ n = Sub (k, k) go = Constant <value = bool {{1}}> () y = Loop {body} (n, go) }}", "--check-facts")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("float32[0, 3, 4]", result.stdout)

    def test_a_fifo_where_results_are_to_be_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(Path(folder) / "output_0.pb")
            result = self.outcome("g () => (y) { y = Constant <value_int = 1> () }", "--outputs", folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("output_0.pb: what is there is no file", result.stderr)

    def test_refusals_say_why(self) -> None:
        for why, graph in REFUSED:
            with self.subTest(why):
                self.assertIn(why, self.run_graph(graph))

    def test_lists_of_operators_are_in_the_account(self) -> None:
        for name, body in LISTS:
            with self.subTest(name):
                self.assertIn("the limit is 67108864 (--memory-limit)", self.run_graph(f"g (float x) => (y) {{ {body} }}"))

    def test_what_strings_hold_is_in_the_account(self) -> None:
        for name, body in STRINGS:
            with self.subTest(name):
                given = f'g (float x) => (y) {{ s = Constant <value_strings = ["{"x" * 1000}"]> () {body} }}'
                self.assertIn("the limit is 67108864 (--memory-limit)", self.run_graph(given))
        # The account may be short of what the heap takes, but not by much.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, 192 << 20)


if __name__ == "__main__":
    unittest.main()
