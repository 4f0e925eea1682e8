"""Networks in ONNX text, by dtype (`float`, `float16`, `bfloat16`), for the tests of `tensorlint compare`: every node has
a name, and weights are inputs, so that each seed draws others."""

HEAD = '<ir_version: 10, opset_import: ["": {opset}]>\n'

MLP = """g (T[8, 96] x, T[96, 128] w1, T[128] b1, T[128] scale, T[128] shift, T[128, 64] w2, T[64] b2) => (T[8, 64] y) {
  [first] p = MatMul (x, w1)
  [first_bias] h = Add (p, b1)
  [norm] n = LayerNormalization <axis = -1, epsilon = 1e-5> (h, scale, shift)
  [act] a = Gelu (n)
  [second] q = Gemm <alpha = 0.5, beta = 1.0> (a, w2, b2)
  [residual] r = Tanh (q)
  [soft] s = Softmax <axis = -1> (r)
  [log] l = LogSoftmax <axis = -1> (r)
  [mixed] m = Mul (s, l)
  [total] t = ReduceSum <keepdims = 1> (m, axes)
  [out] y = Sub (r, t)
}
"""

CNN = """g (T[2, 6, 20, 20] x, T[12, 6, 3, 3] w1, T[12] b1, T[12] g1, T[12] s1, T[12] m1, T[12] v0, T[8, 12, 1, 1] w2, T[8, 4, 3, 3] w3, T[8, 10] fc, T[10] fb) => (T[2, 10] y) {
  [conv] c = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
  [var] v1 = Abs (v0)
  [bn] b = BatchNormalization <epsilon = 1e-5> (c, g1, s1, m1, v1)
  [relu] r = Relu (b)
  [max] m = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
  [point] p = Conv (m, w2)
  [clip] k = HardSigmoid (p)
  [avg] a = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (k)
  [group] d = Conv <group = 2, pads = [0, 1, 1, 0]> (m2, w3)
  [sum] e = Add (a, d)
  [mean] f = GlobalAveragePool (e)
  [flat] h = Flatten (f)
  [fc] y = Gemm (h, fc, fb)
}
"""

ATTENTION = """g (T[2, 7, 32] x, T[32, 96] w, T[96] b, T[32, 32] wo, T[32] gamma, T[32] beta, T factor) => (T[2, 7, 32] y) {
  [qkv] a = MatMul (x, w)
  [qkv_bias] c = Add (a, b)
  [split] q, k, v = Split <axis = -1, num_outputs = 3> (c)
  [q_heads] q4 = Reshape (q, heads)
  [k_heads] k4 = Reshape (k, heads)
  [v_heads] v4 = Reshape (v, heads)
  [q_turn] qt = Transpose <perm = [0, 2, 1, 3]> (q4)
  [k_turn] kt = Transpose <perm = [0, 2, 3, 1]> (k4)
  [v_turn] vt = Transpose <perm = [0, 2, 1, 3]> (v4)
  [scores] s = MatMul (qt, kt)
  [scaled] z = Mul (s, factor)
  [soft] p = Softmax <axis = -1> (z)
  [mixed] o = MatMul (p, vt)
  [turn_back] ot = Transpose <perm = [0, 2, 1, 3]> (o)
  [merge] om = Reshape (ot, merged)
  [project] r = MatMul (om, wo)
  [residual] t = Add (r, x)
  [norm] n = LayerNormalization <axis = -1, epsilon = 1e-5> (t, gamma, beta)
  [sigmoid] g1 = Sigmoid (n)
  [gate] y = Mul (n, g1)
}
"""

RECURRENT = """g (T[5, 3, 10] x, T[1, 64, 10] w, T[1, 64, 16] r, T[1, 128] b, T[1, 48, 16] w2, T[1, 48, 16] r2, T[1, 96] b2) => (T[5, 3, 16] y) {
  [lstm] h, hn, cn = LSTM <hidden_size = 16> (x, w, r, b)
  [squeeze] s = Squeeze (h, one)
  [gru] k, kn = GRU <hidden_size = 16> (s, w2, r2, b2)
  [squeeze2] u = Squeeze (k, one)
  [cum] c = CumSum (u, zero)
  [exp] e = Exp (c)
  [log] l = Log (e)
  [erf] f = Erf (l)
  [sqrt] q = Sqrt (e)
  [div] d = Div (f, q)
  [rms] y = LpNormalization <axis = -1, p = 2> (d)
}
"""

LOSSES = """g (T[16, 12] x, T[16, 12] t, int64[16] labels, T[12] weight) => (T y) {
  [ce] a = SoftmaxCrossEntropyLoss <reduction = "mean"> (x, labels, weight)
  [logp] l = LogSoftmax <axis = 1> (x)
  [nll] b = NegativeLogLikelihoodLoss <reduction = "sum"> (l, labels)
  [off] d = Sub (x, t)
  [square] q = Mul (d, d)
  [mse] m = ReduceMean <keepdims = 0> (q)
  [abs] e = Abs (d)
  [l1] n = ReduceL1 <keepdims = 0> (e)
  [lse] s = ReduceLogSumExp <keepdims = 0> (x)
  [sums] u = Sum (a, b, m, n, s)
  [soft] v = Softplus (u)
  [y] y = Mul (v, u)
}
"""

SHAPES = """g (T[2, 3, 12, 12] x, T[2, 3, 24, 24] z, T[3] s, T[3] b) => (T[2, 3, 24, 24] y) {
  [up] u = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , scales)
  [pad] p = Pad (u, pads)
  [slice] c = Slice (p, starts, ends, axes2)
  [instance] i = InstanceNormalization <epsilon = 1e-5> (c, s, b)
  [lrn] l = LRN <size = 3, alpha = 1e-2> (i)
  [pick] k = ArgMax <axis = 1, keepdims = 1> (l)
  [gather] g1 = GatherElements <axis = 1> (l, k)
  [less] w = Less (l, g1)
  [where] h = Where (w, l, z)
  [concat] o = Concat <axis = 1> (h, z)
  [reduce] y0 = ReduceMax <keepdims = 1> (o, axes1)
  [mean] y1 = ReduceMean <keepdims = 1> (o, axes1)
  [y] y = Add (h, y1)
}
"""

CONSTANTS = {
    "MLP": "int64[1] axes = {-1}",
    "CNN": "",
    "ATTENTION": "int64[4] heads = {0, 0, 4, 8}, int64[3] merged = {0, 0, 32}",
    "RECURRENT": "int64[1] one = {1}, int64 zero = {0}",
    "LOSSES": "",
    "SHAPES": "float[4] scales = {1, 1, 2, 2}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, int64[2] starts = {1, 1}, int64[2] ends = {25, 25}, int64[2] axes2 = {2, 3}, int64[1] axes1 = {1}",
}

TEXTS = {"MLP": MLP, "CNN": CNN.replace("[group] d = Conv <group = 2, pads = [0, 1, 1, 0]> (m2, w3)", "[group] d = Conv <group = 2, pads = [0, 1, 1, 0], strides = [2, 2]> (p, w3)"),
         "ATTENTION": ATTENTION, "RECURRENT": RECURRENT, "LOSSES": LOSSES, "SHAPES": SHAPES}


def network(name: str, dtype: str = "float", opset: int = 21) -> str:
    """The text of a network; `T` is the dtype."""
    text = TEXTS[name]
    if CONSTANTS[name]:
        at = text.index(") {", text.index("=>")) + 1
        text = f"{text[:at]}\n<{CONSTANTS[name]}>{text[at:]}"
    for before in ("(", " ", "<"):
        text = text.replace(f"{before}T[", f"{before}{dtype}[").replace(f"{before}T ", f"{before}{dtype} ")
    return HEAD.format(opset=opset) + text
