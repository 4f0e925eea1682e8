"""Shapes of whole models are known: those of onnx's own topologies, and a decoder's of dynamic batch and sequence."""
import pathlib
import sys
import tempfile

import coverage
import onnx
import onnx.parser
import program
from onnx.backend.test.loader import DATA_DIR

# One block as torch exports it: shapes by Shape, Gather, Concat and Reshape, positions as x[:, -sequence:], and a branch
# that is never taken.
DECODER = """<ir_version: 9, opset_import: ["": 17]>
decoder (int64[batch, sequence] ids, int64[batch, total] mask, float[100, 32] table, float[32, 96] weights) => (float[] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {9223372036854775807}, int64[1] heads = {4}, int64[1] width = {8}, int64[1] size = {32}, bool yes = {1}>
{
  x = Gather(table, ids)
  shape = Shape(x)
  b = Gather(shape, zero)
  s = Gather(shape, one)
  qkv = MatMul(x, weights)
  q0, k0, v0 = Split <axis = 2> (qkv)
  split = Concat <axis = 0> (b, s, heads, width)
  q1 = Reshape(q0, split)
  k1 = Reshape(k0, split)
  v1 = Reshape(v0, split)
  q = Transpose <perm = [0, 2, 1, 3]> (q1)
  k = Transpose <perm = [0, 2, 3, 1]> (k1)
  v = Transpose <perm = [0, 2, 1, 3]> (v1)
  start = Neg(s)
  cut = Slice(mask, start, last, one, one)
  seen = Cast <to = 1> (cut)
  seen3 = Unsqueeze(seen, one)
  seen4 = Unsqueeze(seen3, one)
  scores = MatMul(q, k)
  masked = Add(scores, seen4)
  weighted = Softmax <axis = -1> (masked)
  mixed = MatMul(weighted, v)
  turned = Transpose <perm = [0, 2, 1, 3]> (mixed)
  joined = Concat <axis = 0> (b, s, size)
  flat = Reshape(turned, joined)
  y = If (yes) <then_branch = t () => (float[] a) { a = Identity(flat) }, else_branch = e () => (float[] c) { c = Squeeze(flat) }>
}
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        decoder = pathlib.Path(folder) / "decoder.onnx"
        model = onnx.parser.parse_model(DECODER)
        model.graph.output[0].type.tensor_type.ClearField("shape")  # a declaration would be believed
        onnx.save(model, decoder)
        models = [decoder, *sorted(pathlib.Path(DATA_DIR, "light").glob("*.onnx"))]
        bad = 0
        for path in models:
            count = coverage.measure(program.BINARY, str(path), 20)
            print(f"{path.name}: {count['values']} values, {count['no rank']} without rank, {count['unknown dims']} of {count['dims']} dims unknown")
            bad += count["values"] == 0 or count["no rank"] + count["unknown dims"] > 0
    print(f"{len(models)} models, {bad} of them not fully known")
    return 1 if bad or len(models) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
