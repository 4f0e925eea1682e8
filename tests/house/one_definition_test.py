"""What one_definition.py calls two definitions of one name."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import one_definition

HEADER = "namespace tensorlint {\n\n"
FOOTER = "\n}  // namespace tensorlint\n"


class Types(unittest.TestCase):
    def found(self, *texts: str) -> list[str]:
        return one_definition.types_defined_twice((f"{n}.cc", HEADER + text + FOOTER) for n, text in enumerate(texts))

    def test_two_files_define_one(self) -> None:
        self.assertEqual(self.found("struct Places {\n  int first;\n};", "class Places final : Base {\n};"), ["tensorlint::Places is defined in 0.cc and 1.cc"])
        self.assertEqual(self.found("enum class Kind : char { kOne };", "union Kind {\n};"), ["tensorlint::Kind is defined in 0.cc and 1.cc"])
        self.assertEqual(self.found("struct Outer::Inner {\n};", "struct Outer::Inner {\n};"), ["tensorlint::Outer::Inner is defined in 0.cc and 1.cc"])

    def test_no_other_file_can_name_it(self) -> None:
        unnamed = "namespace {\n\nstruct Places {\n};\n\n}  // namespace\n"
        self.assertEqual(self.found(unnamed, unnamed, "struct Places {\n};"), [])

    def test_declarations_and_other_namespaces(self) -> None:
        self.assertEqual(self.found("struct Places {\n};", "struct Places;", "namespace rules {\n\nstruct Places {\n};\n\n}  // namespace rules"), [])
        self.assertEqual(self.found("struct Traits<float> {\n};", "struct Traits<double> {\n};"), [])


class Objects(unittest.TestCase):
    def found(self, *texts: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            objects = []
            for n, text in enumerate(texts):
                source = pathlib.Path(folder, f"{n}.cc")
                source.write_text(HEADER + text + FOOTER)
                objects.append(str(source.with_suffix(".o")))
                subprocess.run([os.environ.get("TENSORLINT_CXX", "g++"), "-std=c++20", "-O0", "-c", str(source), "-o", objects[-1]], check=True)
            listing = subprocess.run(["nm", "-A", "-S", "--defined-only", *objects], capture_output=True, text=True, check=True).stdout
            return [re.sub(re.escape(folder) + "/", "", each) for each in one_definition.definitions_that_differ(listing)]

    def test_inline_functions_that_differ(self) -> None:
        one = "inline int twice(int x) { return x + x; }\nint f(int x) { return twice(x); }"
        other = "inline int twice(int x) { return x > 5 ? x * 7 : x + x; }\nint g(int x) { return twice(x); }"
        (found,) = self.found(one, other)
        self.assertRegex(found, r"^_ZN10tensorlint5twiceEi has \d+ bytes in \d.o and \d+ bytes in \d.o$")

    def test_types_without_a_name_in_common(self) -> None:
        one = "struct Places {\n  ~Places() { delete first; }\n  int* first = nullptr;\n};\nint f() { return Places().first == nullptr; }"
        other = "struct Places {\n  ~Places() { delete first; delete second; }\n  int *first = nullptr, *second = nullptr;\n};\nint g() { return Places().first == nullptr; }"
        self.assertTrue(self.found(one, other))

    def test_a_function_that_an_archive_would_hide(self) -> None:
        self.assertEqual(self.found("int f() { return 1; }", "int f() { return 2; }"), ["_ZN10tensorlint1fEv is defined in 0.o and 1.o"])

    def test_equal_ones_and_local_ones(self) -> None:
        shared = "inline int twice(int x) { return x + x; }\n"
        self.assertEqual(self.found(shared + "int f(int x) { return twice(x); }", shared + "namespace { int h() { return 1; } }\nint g(int x) { return twice(x) + h(); }"), [])


if __name__ == "__main__":
    unittest.main()
