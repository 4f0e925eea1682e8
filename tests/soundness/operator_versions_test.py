"""Each version of each ONNX operator is run, and its results lie inside the facts: operator_versions.py says how.

  operator_versions_test.py [--recipes]     --recipes: without ONNX's backend tests, which take seconds to make; not all versions
"""
import sys

import operator_versions

# Versions that are not run against facts, or whose results have no known dtype and rank.
DEPRECATED = "deprecated in this version: onnx.checker refuses it, `check` reports it, and nothing is inferred"
NOT_COVERED = {
    "GroupNormalization-18": DEPRECATED,
    "Scatter-11": DEPRECATED,
    "Upsample-10": DEPRECATED,
    "ai.onnx.ml.TreeEnsembleClassifier-5": DEPRECATED,
    "ai.onnx.ml.TreeEnsembleRegressor-5": DEPRECATED,
    "ai.onnx.ml.CastMap-1": "the specification gives no shape",
    "ai.onnx.ml.DictVectorizer-1": "a vector by the specification, a row of a matrix by onnxruntime",
}
OPERATORS, VERSIONS = 227, 659  # of onnx 1.23
FLOORS = {"values": 5_000, "dtypes": 70, "dims": 110, "elements": 30, "bounds": 20, "expressions": 40}


def main():
    part = sys.argv[1:] == ["--recipes"]
    coverage = operator_versions.measure(operator_versions.recipes() if part else operator_versions.all_cases())
    versions = {str(version): version for version in operator_versions.schemas()}
    faults = list(coverage.judge.problems) + list(coverage.judge.below(FLOORS, 0.1 if part else 1))
    faults += [] if part else [f"{name} is not covered: {', '.join(sorted(coverage.engines[version])) or 'nothing runs it'}"
               for name, version in versions.items() if version not in coverage.known and name not in NOT_COVERED]
    faults += [f"{name} is covered, but listed as not covered" for name in NOT_COVERED if versions[name] in coverage.known]
    if len(versions) < VERSIONS or len({version[:2] for version in versions.values()}) < OPERATORS:
        faults.append(f"only {len(versions)} versions in the onnx package, at least {VERSIONS} expected")
    for fault in faults[:60]:
        print(fault)
    engines = [engine for by in coverage.engines.values() for engine in by]
    print(f"{len(coverage.known)} of {len(versions)} versions, {len(coverage.operators())} operators; "
          + ", ".join(f"{engines.count(engine)} versions by {engine}" for engine in sorted(set(engines))))
    print(coverage.judge.summary())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
