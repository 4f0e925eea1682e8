"""What kernels_bench times, by torch: torch_part.py RESULTS SECONDS. Eager and torch.compile, medians of 20 runs after 3 (compiling
apart), inputs rotated beyond the L2. Each operation is a line and is noted as finished; exit 3 when the time is up before the last."""

import json
import sys
import time

import torch
import torch.nn.functional as F


def time_of(run):
    for _ in range(3):
        run()
    times = []
    for _ in range(20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[10]


def both(function, inputs):
    """Milliseconds of eager and compiled `function` over `inputs`, a list of argument tuples."""
    def timed(callee):
        turn = [0]

        def run():
            turn[0] += 1
            callee(*inputs[turn[0] % len(inputs)])
        return time_of(run)

    eager = timed(function)
    torch._dynamo.reset()
    try:
        compiled = timed(torch.compile(function))
    except Exception as error:  # a compiler that is not there is a result too
        return eager, None, f"{type(error).__name__}: {error}"[:200]
    return eager, compiled, ""


def values(count, dtype):
    """As kernels_bench fills: of about 1 in size, either sign."""
    sign = torch.randint(0, 2, (count,), device="cuda", dtype=torch.int8) * 2 - 1
    return (torch.rand(count, device="cuda") * 0.5 + 0.5).mul_(sign).to(dtype)


REDUCTIONS = [("sum float32", torch.float32, torch.sum), ("sum bfloat16", torch.bfloat16, torch.sum), ("max float32", torch.float32, torch.amax),
              ("argmax bfloat16", torch.bfloat16, torch.argmax),
              ("log_sum_exp bfloat16", torch.bfloat16, torch.logsumexp),
              ("l2 float32", torch.float32, lambda x, dim: torch.linalg.vector_norm(x, dim=dim)),
              ("product float32", torch.float32, torch.prod)]
SHAPES = [("full", lambda n: (n,), 0), ("rows of 4096", lambda n: (n // 4096, 4096), 1), ("columns of 256", lambda n: (n // 256, 256), 0),
          ("columns of 3", lambda n: (n // 3, 3), 0)]


def reduction_cases():
    for name, dtype, function in REDUCTIONS:
        for size in (64 << 20, 1 << 30):
            for shape, extents, dim in SHAPES:
                def case(dtype=dtype, function=function, size=size, extents=extents, dim=dim):
                    count = size // dtype.itemsize
                    shaped = extents(count)
                    inputs = [(values(count, dtype)[:shaped[0] * (shaped[1] if len(shaped) > 1 else 1)].view(shaped),) for _ in range(5 if size <= 64 << 20 else 3)]
                    return both(lambda x: function(x, dim=dim), inputs)
                yield {"operation": name, "shape": shape, "bytes": float(size)}, case


def loss_cases():
    for rows, classes, inner in ((8192, 131072, 1), (8192, 32000, 1), (8192, 49152, 1), (8192, 50257, 1), (4096, 262144, 1), (65536, 4096, 1),
                                 (1 << 20, 256, 1), (16, 21, 1 << 18)):
        def case(rows=rows, classes=classes, inner=inner):
            shape = (rows, classes) if inner == 1 else (rows, classes, inner)
            logits = values(rows * classes * inner, torch.bfloat16).view(shape).requires_grad_()
            labels = torch.randint(0, classes, (rows,) if inner == 1 else (rows, inner), device="cuda")

            def step(x, t):
                return torch.autograd.grad(F.cross_entropy(x, t), x)
            return both(step, [(logits, labels)])
        yield {"operation": f"cross entropy bfloat16 {rows}x{classes}x{inner}", "shape": "", "bytes": 0.0}, case
    pointwise = {"squared": F.mse_loss, "absolute": F.l1_loss, "huber": F.huber_loss, "binary logits": F.binary_cross_entropy_with_logits,
                 "kl divergence log": lambda x, t: F.kl_div(x, t, log_target=True)}
    for name, function in pointwise.items():
        def pointwise_case(function=function):
            x = values(256 << 20, torch.bfloat16).requires_grad_()
            t = values(256 << 20, torch.bfloat16)

            def step(x, t):
                return torch.autograd.grad(function(x, t), x)
            return both(step, [(x, t)])
        yield {"operation": f"{name} bfloat16", "shape": "", "bytes": 0.0}, pointwise_case


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    deadline = time.monotonic() + seconds
    with open(path, encoding="utf-8") as file:
        done = {json.loads(line).get("finished") for line in file}
    for case, run in [*loss_cases(), *reduction_cases()]:  # the dearest comparisons first
        name = f"torch {case['operation']} {case['shape']} {case['bytes']}"
        if name in done:
            continue
        if time.monotonic() > deadline - 45:  # a compile takes its time
            return 3
        record = {"part": "torch", **case}
        try:
            record["eager_ms"], record["compiled_ms"], note = run()
        except torch.cuda.OutOfMemoryError:
            note = "out of memory"
        if note:
            record["note"] = note
        torch.cuda.empty_cache()
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n" + json.dumps({"finished": name}) + "\n")
        print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
