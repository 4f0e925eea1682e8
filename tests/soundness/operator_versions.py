"""Runs each version of each ONNX operator, and holds its results against the facts.

  python operator_versions.py [--only OPERATOR]     a table: what ran each version, and what was not run

A version is run by models that are valid for it: the recipes of operator_recipes.py, and ONNX's backend tests brought to its
opset. onnxruntime goes first, then ONNX's reference evaluator, then what the recipe or the backend test has as its results.
The reference evaluator takes many old versions for a newer one; recipes that say `exact` are not given to it.
"""
import argparse
import collections
import functools
import itertools
import pathlib
import sys
import tempfile
import typing

import backend_test
import execution
import numpy as np
import onnx
import operator_recipes
import program
from facts_hold import Judge, dtype_name
from onnx import defs, numpy_helper

VARIANTS = ["declared", "constants", "symbols"]
# Of each version so many cases are run first, and so many more where these did not do.
FIRST, MORE = 3, 9
NODES = 6  # of a case; models of more say less about each operator


class Version(typing.NamedTuple):
    domain: str
    name: str
    since: int

    def __str__(self):
        return f"{self.domain}{'.' if self.domain else ''}{self.name}-{self.since}"


class Case(typing.NamedTuple):
    name: str
    model: onnx.ModelProto
    feeds: dict
    recorded: dict
    exact: bool = False     # for this version alone
    brought: bool = False   # to another opset than that of the recorded results


class Coverage:
    """What ran: `engines` of each version, and which versions had results with one dtype and a known rank, among them `known`."""

    def __init__(self):
        self.judge = Judge()
        self.engines = collections.defaultdict(set)
        self.known = set()

    def operators(self):
        return {version[:2] for version in self.known}


@functools.cache
def schemas():
    """{version: schema}, sorted."""
    return dict(sorted((Version(s.domain, s.name, s.since_version), s) for s in defs.get_all_schemas_with_history()))


def domain_of(proto):
    return "" if proto.domain == "ai.onnx" else proto.domain


def opset_of(model, domain):
    return next((given.version for given in model.opset_import if domain_of(given) == domain), None)


@functools.cache
def version_of(domain, name, opset):
    """The version of an operator that an opset has; None where it has none."""
    return max((v for v in schemas() if v[:2] == (domain, name) and opset is not None and v.since <= opset), default=None)


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def at_version(case, version):
    """The case with the opset of the version; None where it is not valid there."""
    if case.exact:
        return case if opset_of(case.model, version.domain) == version.since else None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for given in model.opset_import:
        if domain_of(given) == version.domain:
            given.version = version.since
    if not is_valid(model, case.feeds, version):
        return None
    return case._replace(model=model, brought=opset_of(case.model, version.domain) != version.since)


def type_text(array):
    name = dtype_name(array)
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(name, name)})"


def is_valid(model, feeds, version):
    """Whether all nodes are as their opset has them, and those of the version have operands of types that it takes."""
    context = onnx.checker.DEFAULT_CONTEXT
    imports, context.opset_imports = context.opset_imports, {domain_of(given): given.version for given in model.opset_import}
    arrays = {**{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}, **feeds}
    try:
        for node in model.graph.node:
            if not any(attribute.HasField("g") for attribute in node.attribute):
                onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError:
        return False
    finally:
        context.opset_imports = imports
    for node in nodes_of(model.graph):
        schema = schemas().get(version_of(domain_of(node), node.op_type, opset_of(model, domain_of(node))))
        if schema is None or schema.deprecated:
            return False
        for i, name in enumerate(node.input):
            array, formal = arrays.get(name), schema.inputs[min(i, len(schema.inputs) - 1)]
            # Before opset 7 operands broadcast only where `broadcast` says so; the reference evaluator knows nothing of that.
            spread = any(attribute.name == "broadcast" for attribute in node.attribute)
            if "broadcast" in schema.attributes and not spread and getattr(array, "shape", ()) != getattr(arrays.get(node.input[0]), "shape", ()):
                return False
            if isinstance(array, np.ndarray) and not {type_text(array), f"optional({type_text(array)})"} & formal.types:
                return False
    return True


def cases_of_versions(cases):
    """{version: cases brought to it}, the recipes and then others, from all over the list"""
    by_operator = collections.defaultdict(list)
    for case in cases:
        if len(case.model.graph.node) > NODES:
            continue
        for operator in dict.fromkeys((domain_of(node), node.op_type) for node in nodes_of(case.model.graph)):
            by_operator[operator].append(case)
    found = {}
    for version in schemas():
        recipes = [case for case in by_operator[version[:2]] if case.name.startswith("recipe")]
        others = [case for case in by_operator[version[:2]] if not case.name.startswith("recipe")]
        # `step` and the number of cases have no common divisor, so all are reached, neighbours late.
        step = next(step for step in (7, 11, 13, 17) if len(others) % step) if len(others) > 1 else 1
        mixed = [others[i * step % len(others)] for i in range(len(others))]
        brought = filter(None, (at_version(case, version) for case in recipes + mixed))
        found[version] = list(itertools.islice(brought, FIRST + MORE))
    return found


def execute(cases):
    """For each case (engine, visits), or None. An engine whose results do not look like the recorded ones does not count."""
    def usable(visits, case):
        return visits is not None and all(backend_test.looks_like(dict(visits)[""][name], value) for name, value in case.recorded.items())

    done = []
    for case, visits in zip(cases, execution.all_by_runtime([(case.model, case.feeds) for case in cases])):
        engine = "onnxruntime"
        if not usable(visits, case):
            engine, visits = "reference", None
            try:
                visits = None if case.exact else execution.by_reference(case.model, case.feeds)
            except Exception:  # engines lack operators, opsets and types, each in a way of its own
                visits = None
        if not usable(visits, case):
            engine, visits = "recorded", None if case.brought or not case.recorded else [("", {**case.feeds, **case.recorded})]
        done.append(None if visits is None else (engine, visits))
    return done


def results_known(document, model, version):
    """Whether results of the version have one dtype and a known rank each."""
    names = [name for node in model.graph.node if (domain_of(node), node.op_type) == version[:2] for name in node.output if name]
    facts = [document["values"].get(name) for name in names] or [None]
    return all(fact is not None and ("element" in fact or fact.get("kind") == "map" or len(fact["dtype"]) == 1 and fact.get("shape") is not None) for fact in facts)


def hold(pairs, coverage):
    """Runs pairs of a version and a case of it, and holds the results against the facts."""
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for i, ((version, case), done) in enumerate(zip(pairs, execute([case for _, case in pairs]))):
            for variant in VARIANTS if done else []:
                written = backend_test.variant_of(case.model, case.feeds, variant)
                if written is not None:
                    path = pathlib.Path(folder) / f"{i}-{variant}.onnx"
                    path.write_bytes(written.SerializeToString())
                    files[str(path)] = (version, case, variant, *done)
        for path, document in program.show(files).items():
            version, case, variant, engine, visits = files[path]
            coverage.judge.run(document, visits, f"{version} by {engine} in {case.name} ({variant})", case.feeds)
            coverage.engines[version].add(engine)
            if results_known(document, case.model, version):
                coverage.known.add(version)


def measure(cases):
    """Coverage of all versions by the cases."""
    coverage, found = Coverage(), cases_of_versions(cases)
    hold([(version, case) for version, brought in found.items() for case in brought[:FIRST]], coverage)
    hold([(version, case) for version, brought in found.items() if version not in coverage.known for case in brought[FIRST:]], coverage)
    return coverage


def recipes():
    return [Case(f"recipe of {recipe.name}-{recipe.version}", operator_recipes.model_of(recipe), operator_recipes.feeds_of(recipe),
                    operator_recipes.results_of(recipe), recipe.exact) for recipe in operator_recipes.recipes()]


def all_cases():
    return recipes() + [Case(name, model, feeds, outputs) for name, model, feeds, outputs in backend_test.load_cases()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="this operator alone")
    arguments = parser.parse_args()
    cases = [case for case in all_cases() if not arguments.only or arguments.only in {node.op_type for node in nodes_of(case.model.graph)}]
    coverage = measure(cases)
    wanted = [version for version in schemas() if arguments.only in ("", version.name)]
    for version in wanted:
        if version not in coverage.known or arguments.only:
            print(f"{version}: {', '.join(sorted(coverage.engines[version])) or 'not run'}{'' if version in coverage.known else ', results unknown'}")
    for problem in coverage.judge.problems:
        print(problem)
    print(f"{len(coverage.known)} of {len(wanted)} versions, {len(coverage.operators())} of {len({v[:2] for v in wanted})} operators: {coverage.judge.summary()}")
    return 1 if coverage.judge.problems else 0


if __name__ == "__main__":
    sys.exit(main())
