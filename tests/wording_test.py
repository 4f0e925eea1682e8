"""Keeps phrases that are not idiomatic English out of the messages of the program and out of its documentation.

Checked are the string literals of the C++ sources that users see messages of, and the pages. `python3 tests/wording_test.py`
lists what it finds; `./dev check` runs it too."""

import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Pattern, and what to write instead. Word by word translations for the most part.
PHRASES: list[tuple[str, str]] = [
    (r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b|such\b|different\b|better\b|worse\b|shorter\b|larger\b)", '"is not a ..."'),
    (r"\bwanted\b", '"expected ..."'),
    (r"\bwants\b", '"needs", "requires", "expects"'),
    (r"\bbehind (?:the|a|an|it|that|which|point|Identity)\b", '"after", "following"'),
    (r"\btold apart\b|\btells? .{0,30}\bapart\b", '"distinguished"'),
    (r"\bin one another\b", '"nested"'),
    (r"\bstands? (?:on|at|in|for nothing|above|before|below|behind|outside|here|once)\b", '"is on", "comes before", "occurs"'),
    (r"\bhands? (?:out|on)\b", '"yields", "returns", "passes"'),
    (r"\bthat (?:is|are) none\b", '"that is invalid"'),
    (r"\bthe point is (?:lost|dropped)\b|\bbehind the point\b", '"truncates the fraction"'),
    (r"\bgoes? on in\b", '"continues in", "becomes"'),
    (r"\bwhat is no\b|\bthat (?:is|are) no\b", '"that is not a ..."'),
    (r"\bmended?\b", '"repaired", "fixed"'),
    (r"\btold\b|\btells?\b", '"reported", "declares", "shows"'),
    (r"\b(?:takes?|taken|took) away\b", '"removed"'),
    (r"\b(?:goes?|gone|going) on\b", '"continues"'),
    (r"\bby the letter\b", '"literally"'),
    (r"\b(?:the )?dearest\b", '"most expensive"'),
    (r"\bfor want of\b", '"because ... is missing"'),
    (r"\bwithout a word\b", '"silently"'),
    (r"\bof one's own\b", '"your own"'),
    (r"\bbelongs? into\b", '"belongs in"'),
    (r"\blook(?:s|ed)? at\b", '"examined", "read"'),
    (r"\bmakes? of (?:it|them)\b", '"derives from"'),
    (r"\b(?:stays?|left|leaves?) open\b", '"is not determined"'),
    (r"\b(?:nothing|all) but\b", '"only", "everything except"'),
    (r"\bmeanwhile\b", '"in the meantime"'),
    (r"\b(?:thing|way|place) of its own kind\b|\bwhat it is called\b", '"its name"'),
]

SOURCES = ["analyzer", "base", "passes", "ir", "runtime"]
PAGES = ["docs", "README.md", "SECURITY.md", "CONTRIBUTING.md"]
# A string literal, with its escapes; comments are not looked at.
LITERAL = re.compile(r'//.*|"((?:[^"\\]|\\.)*)"')


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each literal; adjacent ones of one message are searched one by one."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.lstrip().startswith("#include"):
            for literal in LITERAL.finditer(line):
                if literal.group(1):
                    yield number, literal.group(1)


def paragraphs(path: Path) -> Iterator[tuple[int, str]]:
    """Line of the beginning, and text."""
    fenced = False
    begin, text = 0, ""
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        is_fence = line.startswith("```")
        if is_fence or fenced or not line.strip() or line.startswith("    "):  # what other programs print is quoted as it is
            if text:
                yield begin, re.sub(r"`[^`]*`", "``", text)  # names in the code are what they are
            text = ""
        else:
            begin, text = (begin, f"{text} {line.strip()}") if text else (number, line)
        fenced ^= is_fence


def texts() -> Iterator[tuple[Path, int, str]]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h") and "generated" not in path.parts:
                for number, text in messages(path):
                    yield path, number, text
    for number, line in enumerate((ROOT / "dev").read_text().splitlines(), 1):
        if said := re.search(r'\b(?:fail|say) "(.*)"', line):
            yield ROOT / "dev", number, said.group(1)
    for name in PAGES:
        for path in [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*.md")):
            for number, text in paragraphs(path):
                yield path, number, text


def found() -> tuple[int, list[str]]:
    count, bad = 0, []
    for path, number, text in texts():
        count += 1
        bad += [f"{path.relative_to(ROOT)}:{number}: {match.group(0)!r}: write {instead}" for pattern, instead in PHRASES if (match := re.search(pattern, text))]
    return count, bad


class WordingTest(unittest.TestCase):
    def test_texts_are_idiomatic(self) -> None:
        count, bad = found()
        self.assertEqual(bad, [])
        self.assertGreater(count, 5000)

    def test_each_phrase_is_found(self) -> None:
        cases = ["text is wanted here", "this is no dtype", "ONNX wants nodes", "what is behind the point", "to be told apart", "graphs in one another",
                 "stands on the cycle", "a body hands out nothing", "a declared type that is none", "goes on in float64", "the fix is mended",
                 "operands are told", "what was copied is taken away", "the chain goes on", "the dearest run", "fails for want of extents", "labels belong into a loss",
                 "only names are looked at", "a model of one's own", "inputs that stay open", "nothing but regular files", "it is read whatever it is called: what it is called"]
        for case in cases:
            with self.subTest(case):
                self.assertTrue(any(re.search(pattern, case) for pattern, _ in PHRASES))
        for good in ["there are no more", "no parameter is trained", "a hand-written loss", "stands for any text", "is not a dtype", "the chain continues", "intolerable", "your own operators"]:
            with self.subTest(good):
                self.assertFalse(any(re.search(pattern, good) for pattern, _ in PHRASES))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--list":
        faults = found()[1]
        print("\n".join(faults))
        sys.exit(1 if faults else 0)
    unittest.main()
