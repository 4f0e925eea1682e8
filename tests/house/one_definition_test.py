"""Each name has one definition in the whole program (C++20, [basic.def.odr]); a linker takes the first of several and says nothing.

Types leave no trace in objects, and inline functions may be of any size there, so the sources are asked for both: does one file define
what others can name? What each object defines for all others, an archive hides: the objects are asked for that."""

import collections
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "ir", "passes", "analyzer", "runtime", "kernels")

OPENED = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{$")
CLOSED = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:class|struct|union|enum class|enum) (?:alignas\(\w+\) |\[\[\w+\]\] )?([A-Za-z_][\w:]*)(<.*>)?(?: final)?(?= :| \{|$)(?:.*\{|[^;]*$)")
INLINE = re.compile(r"^(?:\[\[\w+\]\] )?((?:inline|constexpr|consteval) [^={]+)(?:=|\{)")


def definitions_in(text: str) -> Iterator[str]:
    """The types, and the functions and variables that several objects may have, that other files can name: those outside of unnamed
    namespaces. A type as `space::Name`, the others with their declaration, since one name may be overloaded."""
    spaces: list[str] = []
    for line in text.splitlines():
        if opened := OPENED.match(line):
            spaces.append(opened.group(1))
        elif CLOSED.match(line):
            spaces.pop()
        elif "" in spaces:
            continue
        elif found := TYPE.match(line):
            yield "::".join([*spaces, found.group(1) + (found.group(2) or "")])
        elif (found := INLINE.match(line)) and not (found.group(1).startswith("constexpr") and "(" not in found.group(1)):  # each file has its own
            yield "::".join([*spaces, found.group(1).strip()])


def defined_twice(files: Iterable[tuple[str, str]]) -> list[str]:
    places: dict[str, list[str]] = collections.defaultdict(list)
    for name, text in files:
        for each in set(definitions_in(text)):  # one file may choose between several
            places[each].append(name)
    return [f"{each} is defined in {' and '.join(where)}" for each, where in sorted(places.items()) if len(where) > 1]


def strong_symbols_defined_twice(objects: list[str]) -> list[str]:
    listing = "".join(
        subprocess.run(["nm", "-A", "--defined-only", *objects[at : at + 200]], capture_output=True, text=True, check=True).stdout for at in range(0, len(objects), 200)
    )
    places: dict[str, list[str]] = collections.defaultdict(list)
    for line in listing.splitlines():
        file, kind, name = line.rsplit(None, 2)
        if kind in "TDBR" and "tensorlint" in name:
            places[name].append(pathlib.Path(file.split(":", 1)[0]).name)
    return [f"{name} is defined in {' and '.join(files)}" for name, files in sorted(places.items()) if len(files) > 1]


class Sources(unittest.TestCase):
    def found(self, *texts: str) -> list[str]:
        return defined_twice((f"{n}.cc", f"namespace tensorlint {{\n\n{text}\n}}  // namespace tensorlint\n") for n, text in enumerate(texts))

    def test_this_program(self) -> None:
        sources = [path for room in FOLDERS for path in sorted((ROOT / room).rglob("*")) if path.suffix in (".h", ".cc", ".cuh", ".cu")]
        self.assertGreater(len(sources), 900)
        self.assertGreater(sum(1 for path in sources for _ in definitions_in(path.read_text())), 900)
        self.assertEqual(defined_twice((str(path.relative_to(ROOT)), path.read_text()) for path in sources), [])

    def test_types_in_two_files(self) -> None:
        self.assertEqual(self.found("struct Places {\n  int first;\n};", "class Places final : Base {\n};"), ["tensorlint::Places is defined in 0.cc and 1.cc"])
        self.assertEqual(self.found("enum class Kind : char { kOne };", "union Kind {\n};"), ["tensorlint::Kind is defined in 0.cc and 1.cc"])
        self.assertEqual(self.found("struct Outer::Inner {\n};", "struct Outer::Inner {\n};"), ["tensorlint::Outer::Inner is defined in 0.cc and 1.cc"])

    def test_inline_functions_in_two_files(self) -> None:
        self.assertEqual(self.found("inline int twice(int x) { return x + x; }", "inline int twice(int x) {\n  return x * 2;\n}"), ["tensorlint::inline int twice(int x) is defined in 0.cc and 1.cc"])
        self.assertEqual(self.found("inline int twice(int x) { return x + x; }", "inline double twice(double x) { return x + x; }"), [])

    def test_what_no_other_file_can_name(self) -> None:
        unnamed = "namespace {\n\nstruct Places {\n};\n\ninline int f() { return 1; }\n\n}  // namespace\n"
        self.assertEqual(self.found(unnamed, unnamed, "struct Places {\n};"), [])
        self.assertEqual(self.found("constexpr int kMost = 3;", "constexpr int kMost = 4;"), [])

    def test_declarations_and_other_namespaces(self) -> None:
        self.assertEqual(self.found("struct Places {\n};", "struct Places;", "namespace rules {\n\nstruct Places {\n};\n\n}  // namespace rules"), [])
        self.assertEqual(self.found("struct Traits<float> {\n};", "struct Traits<double> {\n};"), [])


class Objects(unittest.TestCase):
    def found(self, *texts: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            objects = []
            for n, text in enumerate(texts):
                source = pathlib.Path(folder, f"{n}.cc")
                source.write_text(f"namespace tensorlint {{\n{text}\n}}\n")
                objects.append(str(source.with_suffix(".o")))
                subprocess.run([os.environ.get("TENSORLINT_CXX", "g++"), "-std=c++20", "-O0", "-c", str(source), "-o", objects[-1]], check=True)
            return strong_symbols_defined_twice(objects)

    @unittest.skipUnless("TENSORLINT_BUILD_DIR" in os.environ, "there is no build")
    def test_this_program(self) -> None:
        build = pathlib.Path(os.environ["TENSORLINT_BUILD_DIR"])
        # Not those that another configuration has left there.
        made = set(re.findall(r"^build (\S+\.o):", (build / "build.ninja").read_text(), re.MULTILINE))
        objects = sorted(str(path) for room in FOLDERS for path in (build / room).rglob("*.o") if str(path.relative_to(build)) in made)
        self.assertGreater(len(objects), 200)
        self.assertEqual(strong_symbols_defined_twice(objects), [])

    def test_a_function_that_an_archive_would_hide(self) -> None:
        self.assertEqual(self.found("int f() { return 1; }", "int f() { return 2; }"), ["_ZN10tensorlint1fEv is defined in 0.o and 1.o"])

    def test_equal_ones_and_local_ones(self) -> None:
        shared = "inline int twice(int x) { return x + x; }\n"
        self.assertEqual(self.found(shared + "int f(int x) { return twice(x); }", shared + "namespace { int h() { return 1; } }\nint g(int x) { return twice(x) + h(); }"), [])


if __name__ == "__main__":
    unittest.main()
