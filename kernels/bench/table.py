"""Prints the lines of kernels_bench and run.py as Markdown: the goals with what was measured, then every part. table.py results.jsonl"""

import json
import sys

NOT_MEASURED = "not measured"


def read(path):
    """Part -> records."""
    parts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if "part" in record:
                parts.setdefault(record.pop("part"), []).append(record)
    return parts


def ratio_to_torch(parts, ours, column, wanted):
    """torch's milliseconds over ours, for the records of part `ours` that `wanted` takes."""
    theirs = {(r["operation"], r["shape"], r["bytes"]): r.get(column) for r in parts.get("torch", []) if "operation" in r}
    ratios = []
    for record in filter(wanted, parts.get(ours, [])):
        other = theirs.get((record["operation"], record.get("shape", ""), float(record.get("bytes", 0))))
        if other:
            ratios.append(other / record["ms"])
    return ratios


def goals(parts):
    """(goal, measured) pairs; the worst of the records that a goal is about."""
    large = [r for r in parts.get("reductions", []) if r["bytes"] >= 64 << 20]
    headline = [r for r in parts.get("losses", []) if r["operation"] == "cross entropy bfloat16 8192x131072x1"]

    def of(*shapes):
        return [r["share_of_read"] for r in large if r["shape"] in shapes and r["share_of_read"] is not None]

    def is_headline(r):
        return r["operation"] == "cross entropy bfloat16 8192x131072x1"

    def is_pointwise(r):
        return not r["operation"].startswith("cross entropy")

    def is_sum(r):
        return r["operation"].startswith("sum") and r["shape"] in ("full", "rows of 4096") and r in large

    def shown(numbers, pick, form):
        return form.format(pick(numbers)) if numbers else NOT_MEASURED

    return [
        ("reductions of 64 MB and more, full and by rows: at least 0.93 of a read stream of that size", shown(of("full", "rows of 4096"), min, "{:.3f}")),
        ("the same by columns of 256 and 3: at least 0.93", shown(of("columns of 256", "columns of 3"), min, "{:.3f}")),
        ("the same by odd and short rows and by channels: at least 0.93", shown(of("rows of 4099", "rows of 256", "channels of 3136"), min, "{:.3f}")),
        ("sums of 64 MB and more: at least 0.98 times torch.sum's speed", shown(ratio_to_torch(parts, "reductions", "eager_ms", is_sum), min, "{:.2f}")),
        ("cross entropy bf16 8192 x 131072, both passes: at most 1.15 times the byte floor", shown([r["over_byte_floor"] for r in headline], max, "{:.3f}")),
        ("cross entropy of every other shape: at most 1.3 times the byte floor", shown([r["over_byte_floor"] for r in parts.get("losses", [])
            if not is_pointwise(r) and not is_headline(r)], max, "{:.3f}")),
        ("the headline: at least 3 times torch eager's speed", shown(ratio_to_torch(parts, "losses", "eager_ms", is_headline), min, "{:.2f}")),
        ("the headline: at least 1.5 times torch.compile's speed", shown(ratio_to_torch(parts, "losses", "compiled_ms", is_headline), min, "{:.2f}")),
        ("pointwise losses: at most 1.15 times the byte floor", shown([r["over_byte_floor"] for r in parts.get("losses", []) if is_pointwise(r)], max, "{:.3f}")),
        ("pointwise losses: at least 2 times torch eager's speed; eager moves 2.3 times the bytes",
         shown(ratio_to_torch(parts, "losses", "eager_ms", is_pointwise), min, "{:.2f}")),
        ("one set of bits in 1000 runs", shown([r["different"] for r in parts.get("determinism", [])], max, "{:.0f} at most")),
        ("error over bound: at most 1", shown([r["worst_error_over_bound"] if r["worst_error_over_bound"] is not None else float("inf")
                                               for r in parts.get("correctness", [])], max, "{:.3f}")),
    ]


def text(path):
    parts = read(path)
    lines = ["", "| goal | measured |", "| --- | --- |", *(f"| {goal} | {measured} |" for goal, measured in goals(parts))]
    for part, records in parts.items():
        columns = list(dict.fromkeys(key for record in records for key in record))
        lines += ["", f"## {part}", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        for record in records:
            values = (record.get(column, "") for column in columns)
            lines.append("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(text(sys.argv[1]))
