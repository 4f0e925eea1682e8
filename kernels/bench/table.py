#!/usr/bin/env python3
"""Prints the lines of kernels_bench as Markdown tables: table.py results.jsonl"""

import json
import sys


def main():
    parts = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if "part" in record:
                parts.setdefault(record.pop("part"), []).append(record)
    for part, records in parts.items():
        columns = list(dict.fromkeys(key for record in records for key in record))
        print(f"\n## {part}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
        for record in records:
            values = (record.get(column, "") for column in columns)
            print("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values) + " |")


if __name__ == "__main__":
    main()
