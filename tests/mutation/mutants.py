"""Finds the places where one token of a C++ source can change, and rewrites the source so that each such mutant is a choice at run
time (switch.h). The sources are laid out by clang-format, which tells operators from template brackets, pointers and references: a
binary operator has blanks on both sides. What does not compile after all, mutate.py drops.

Each mutant keeps its source's lines, so that an error of the compiler names the line of the mutant.
"""

import bisect
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

NAMESPACE = "tensorlint_mutants"
MUTANT_BITS = 12  # of a number count the mutants of a file, the other 20 are of its path

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
      |(?P<text>R"(?P<mark>[^(]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
      |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<mark_>->\*|<=>|<<=|>>=|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\w\s])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

# Precedence of binary operators, loosest first.
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<=>"], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
LEVEL = {operator: level for level, operators in enumerate(LEVELS, 2) for operator in operators}
CONDITION = 1  # level of `? :` and of assignments, which end each operand
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
ENDS = {";", ",", "?", ":", *ASSIGNMENTS}
KEYWORDS = {"return", "case", "else", "do", "throw", "co_return", "co_yield", "new", "delete", "if", "while", "for", "switch", "goto", "typename"}
OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}

CALLS = {  # operator -> function of switch.h, what the active mutant does instead
    "<": ("less", ["<=", ">="]),
    "<=": ("less_equal", ["<", ">"]),
    ">": ("greater", [">=", "<="]),
    ">=": ("greater_equal", [">", "<"]),
    "==": ("equal", ["!="]),
    "!=": ("not_equal", ["=="]),
    "+": ("add", ["-"]),
    "-": ("subtract", ["+"]),
    "*": ("multiply", ["+"]),
    "/": ("divide", ["*"]),
    "%": ("remainder", ["/"]),
    "+=": ("add_assign", ["-="]),
    "-=": ("subtract_assign", ["+="]),
}
SWAPS = {"min": "max", "max": "min", "all_of": "any_of", "any_of": "all_of"}


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    mate: int = -1  # index of the bracket that belongs to this one
    template: bool = False  # < or > around template arguments
    binary: bool = False


@dataclass
class Mutant:
    id: int
    line: int
    column: int
    kind: str
    before: str
    after: str


@dataclass
class Site:
    """One rewriting with the mutants that it offers: texts put around spans, and in place of tokens."""

    mutants: list[Mutant]
    around: list[tuple[int, int, str, str]] = field(default_factory=list)
    outside: list[tuple[int, int, str, str]] = field(default_factory=list)  # the same, outside those of the same span
    instead: list[tuple[int, int, str]] = field(default_factory=list)


def tokens_of(source: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            raise ValueError(f"no token at offset {at}: {source[at:at + 20]!r}")
        at = match.end()
        kind = str(match.lastgroup).rstrip("_")
        if kind != "skip":
            found.append(Token("text" if kind == "mark" and match.group("text") else kind, match.group(), match.start(), at))
    split_brackets(source, found)
    return found


def blank(source: str, at: int) -> bool:
    return at < 0 or at >= len(source) or source[at].isspace()


def split_brackets(source: str, tokens: list[Token]) -> None:
    """Pairs the brackets, and tells which operators are binary."""
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        spaced = blank(source, token.start - 1) and blank(source, token.end)
        before = tokens[i - 1] if i else None
        if token.text == "<" and before and (before.text == "template" or (not spaced and before.kind == "word" and before.text != "operator")):
            token.template = True
        if token.text == ">" and stack and tokens[stack[-1]].template and not (spaced and tokens[stack[-1]].text != "<"):
            token.template = True
        if token.text in "([{" or (token.text == "<" and token.template):
            stack.append(i)
        elif (token.text in ")]}" or (token.text == ">" and token.template)) and stack:
            token.mate = stack.pop()
            tokens[token.mate].mate = i
        elif token.text in LEVEL or token.text in ASSIGNMENTS:
            operand = before is not None and (before.kind in ("number", "text") or before.text in (")", "]", "}") or (before.kind == "word" and before.text not in KEYWORDS) or before.template)
            token.binary = spaced and operand


class Finder:
    """The sites of one source."""

    def __init__(self, source: str, first_id: int) -> None:
        self.source = source
        self.tokens = tokens_of(source)
        self.lines = [0, *(m.end() for m in re.finditer("\n", source))]
        self.next_id = first_id
        self.sites: list[Site] = []
        self.closed = self.constant_spans()

    # ---- where nothing may change

    def constant_spans(self) -> list[bool]:
        """Per token: it lies in what the compiler needs as a constant."""
        closed = [False] * len(self.tokens)

        def close(first: int, last: int) -> None:
            closed[first : last + 1] = [True] * (last + 1 - first)

        for i, token in enumerate(self.tokens):
            following = self.tokens[i + 1] if i + 1 < len(self.tokens) else None
            if token.template and token.text == "<":
                close(i, token.mate)
            elif token.text in ("static_assert", "constexpr", "consteval", "constinit", "using", "concept", "requires", "noexcept") and following:
                close(i, following.mate if following.text == "(" and token.text != "static_assert" else self.end_of_declaration(i))
            elif token.text == "enum" or token.text == "case":
                close(i, self.end_of_label(i))
            elif token.text == "operator":
                close(i, i + 1)
        return closed

    def end_of_declaration(self, i: int) -> int:
        """The `;` of a declaration, or the head of a function: what a constexpr function computes may be needed as a constant."""
        while i < len(self.tokens) - 1:
            token = self.tokens[i]
            if token.text == ";" or (token.text == "}" and self.tokens[i + 1].text not in (";", ",", ".")):
                return i
            i = token.mate if token.text in "([{" and token.mate > i else i + 1
        return i

    def end_of_label(self, i: int) -> int:
        while i < len(self.tokens) - 1 and self.tokens[i].text not in (":", ";", "}"):
            i = self.tokens[i].mate if self.tokens[i].text == "{" else i + 1
        return i

    # ---- operands

    def ends_operand(self, i: int, level: int, forward: bool) -> bool:
        token = self.tokens[i]
        if token.kind == "word":
            return token.text in KEYWORDS
        if token.kind != "mark" or token.template:
            return False
        if token.text in ENDS:
            # What is assigned may be a choice.
            return not (forward and level == CONDITION and token.text in ("?", ":"))
        if token.binary and token.text in LEVEL:
            return LEVEL[token.text] < level + (1 if forward else 0)
        return False

    def left(self, i: int, level: int) -> int:
        """Index of the first token of the operand before token i."""
        first = i
        while first > 0:
            token, after = self.tokens[first - 1], self.tokens[first]
            if self.ends_operand(first - 1, level, False):
                break
            if token.kind == "mark" and not token.template and token.text in "([{":
                break
            # `if (x) y += 1`: what follows a bracket without an operator begins a statement.
            if token.text in (")", "}", "]") and after.kind in ("word", "number", "text") and first != i:
                break
            if token.kind == "word" and after.kind in ("word", "number", "text") and first != i:
                break
            if token.text == "}" and first == i and self.tokens[token.mate - 1].text in (")", ";", "{", "}", "else"):
                break
            first = token.mate if token.mate >= 0 and token.mate < first - 1 else first - 1
        return first

    def right(self, i: int, level: int) -> int:
        """Index of the last token of the operand behind token i."""
        last = i + 1
        while last < len(self.tokens):
            token = self.tokens[last]
            if last > i + 1 and self.ends_operand(last, level, True):
                break
            if token.kind == "mark" and not token.template and token.text in ")]}":
                break
            last = token.mate + 1 if token.mate > last else last + 1
        return last - 1

    def unary_end(self, i: int) -> int:
        """Index of the last token of what a prefix operator at i applies to."""
        last = i + 1
        while self.tokens[last].text in ("!", "*", "-", "&"):
            last += 1
        while last + 1 < len(self.tokens):
            token, following = self.tokens[last], self.tokens[last + 1]
            if token.mate > last:
                last = token.mate
            elif token.text in ("::", ".", "->") or following.text in ("::", ".", "->", "(", "[", "{") or (following.text == "<" and following.template):
                last += 1
            else:
                break
        return last

    # ---- sites

    def add(self, kind: str, at: int, before: str, after: list[str]) -> Site:
        line = bisect.bisect_right(self.lines, at)
        made = [Mutant(self.next_id + n, line, at - self.lines[line - 1] + 1, kind, before, text) for n, text in enumerate(after)]
        self.next_id += len(made)
        site = Site(made)
        self.sites.append(site)
        return site

    def span(self, first: int, last: int) -> tuple[int, int]:
        return self.tokens[first].start, self.tokens[last].end

    def find(self) -> list[Site]:
        depth_words = self.tokens
        for i, token in enumerate(depth_words):
            if self.closed[i]:
                continue
            if token.binary:
                self.binary(i)
            elif token.kind == "number":
                self.integer(i)
            elif token.text in ("true", "false"):
                site = self.add("truth", token.start, token.text, ["false" if token.text == "true" else "true"])
                site.instead.append((token.start, token.end, f"({'!' if token.text == 'true' else ''}{NAMESPACE}::on({site.mutants[0].id}))"))
            elif token.text == "!" and token.kind == "mark":
                site = self.add("negation", token.start, "!", ["nothing"])
                start, end = self.span(i, self.unary_end(i))
                site.around.append((start, end, f"({NAMESPACE}::on({site.mutants[0].id}) != static_cast<bool>(", "))"))
            elif token.text in ("if", "while") and self.tokens[i + 1].text == "(":
                self.condition(i + 1)
            elif token.text in ("continue", "break", "return"):
                self.jump(i)
            elif token.text in SWAPS:
                self.swap(i)
        return self.sites

    def binary(self, i: int) -> None:
        token = self.tokens[i]
        level = LEVEL.get(token.text, CONDITION)
        first, last = self.left(i, level), self.right(i, level)
        if first == i or last == i:
            return
        whole = self.span(first, last)
        if token.text in ("&&", "||"):
            site = self.add("logical", token.start, token.text, ["||" if token.text == "&&" else "&&"])
            # De Morgan: with all three negated, and is or, and the second operand is still evaluated only where it counts.
            opening = f"({NAMESPACE}::on({site.mutants[0].id}) != static_cast<bool>("
            site.around.append((*whole, opening, "))"))
            site.outside += [(*self.span(first, i - 1), opening, "))"), (*self.span(i + 1, last), opening, "))")]
        elif token.text in CALLS:
            name, others = CALLS[token.text]
            kind = "comparison" if level in (LEVEL["<"], LEVEL["=="]) else "arithmetic"
            site = self.add(kind, token.start, token.text, others)
            site.around.append((*whole, f"{NAMESPACE}::{name}({site.mutants[0].id}, ", ")"))
            site.instead.append((token.start, token.end, ","))

    def integer(self, i: int) -> None:
        token = self.tokens[i]
        if not re.fullmatch(r"(0[xX][0-9a-fA-F']+|[\d']+)[uUlLzZ]*", token.text):
            return
        value = int(re.sub(r"['uUlLzZ]", "", token.text), 0) if not re.fullmatch(r"0\d+", token.text) else 0
        after = [f"{value + 1}"] + ([f"{value - 1}"] if value else [])
        site = self.add("constant", token.start, token.text, after)
        if len(after) == 1:
            site.instead.append((token.start, token.end, f"({token.text} + {NAMESPACE}::on({site.mutants[0].id}))"))
        else:
            site.instead.append((token.start, token.end, f"{NAMESPACE}::number({site.mutants[0].id}, {token.text})"))

    def condition(self, opening: int) -> None:
        """if (c) -> if (!c), where no other mutant does the same."""
        first, last = opening + 1, self.tokens[opening].mate - 1
        for i in range(opening + 1, last + 1):
            if self.tokens[i].text == ";" and self.depth_is(opening, i):
                first = i + 1
        inner = self.tokens[first : last + 1]
        if first > last or any(t.text == "=" and t.binary for t in inner) or self.tokens[first].text == "!":
            return
        if any(t.binary and t.text in CALLS and CALLS[t.text][0] in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal") for t in self.outermost(first, last)):
            return
        site = self.add("negation", self.tokens[first].start, self.source[slice(*self.span(first, last))], ["!(...)"])
        site.outside.append((*self.span(first, last), f"({NAMESPACE}::on({site.mutants[0].id}) != static_cast<bool>(", "))"))

    def depth_is(self, opening: int, i: int) -> bool:
        at = opening + 1
        while at < i:
            at = self.tokens[at].mate + 1 if self.tokens[at].mate > at else at + 1
        return at == i

    def outermost(self, first: int, last: int) -> Iterator[Token]:
        """The operators that decide a condition: those outside brackets, unless there are && or || among them."""
        found = []
        at = first
        while at <= last:
            found.append(self.tokens[at])
            at = self.tokens[at].mate + 1 if self.tokens[at].mate > at else at + 1
        if not any(t.binary and t.text in ("&&", "||") for t in found):
            yield from found

    def jump(self, i: int) -> None:
        """continue, break or an early return, left out."""
        end = i
        while self.tokens[end].text != ";":
            end = self.tokens[end].mate if self.tokens[end].mate > end else end + 1
        word = self.tokens[i].text
        if word == "return" and not self.flows_on(end):
            return
        if word == "continue" and self.tokens[end + 1].text == "}" and self.ends_loop(end + 1):
            return
        if word == "break" and self.in_switch(i):
            return
        site = self.add("jump", self.tokens[i].start, word, ["nothing"])
        site.around.append((*self.span(i, end), f"{{ if (!{NAMESPACE}::on({site.mutants[0].id})) ", " }"))

    def owner(self, closing: int) -> str:
        """What a block belongs to: if, else, for, while, switch, or other (a function, a class, ...)."""
        before = self.tokens[closing].mate - 1
        if self.tokens[before].text == ")":
            head = self.tokens[self.tokens[before].mate - 1].text
            return head if head in ("if", "for", "while", "switch") else "other"
        return "else" if self.tokens[before].text == "else" else "other"

    def flows_on(self, end: int) -> bool:
        """Behind the `;` there is something else of the function to run."""
        at = end + 1
        while self.tokens[at].text == "}":
            owner = self.owner(at)
            if owner in ("for", "while"):
                return True
            if owner not in ("if", "else"):
                return False
            at += 1
        return self.tokens[at].text not in ("else", "case", "default")

    def ends_loop(self, closing: int) -> bool:
        return self.owner(closing) in ("for", "while")

    def in_switch(self, i: int) -> bool:
        at = i
        while at > 0:
            at -= 1
            if self.tokens[at].text == "}":
                at = self.tokens[at].mate
            elif self.tokens[at].text == "{":
                owner = self.owner(self.tokens[at].mate)
                if owner in ("switch", "for", "while"):
                    return owner == "switch"
        return False

    def swap(self, i: int) -> None:
        """std::min and std::max, std::all_of and std::any_of, also those of std::ranges."""
        word = self.tokens[i].text
        first = i
        while first >= 2 and self.tokens[first - 1].text == "::":
            first -= 2
        if self.source[self.tokens[first].start : self.tokens[i].end] not in (f"std::{word}", f"std::ranges::{word}") or self.tokens[i + 1].text not in ("(", "<"):
            return
        site = self.add("swap", self.tokens[i].start, word, [SWAPS[word]])
        site.instead.append((*self.span(first, i), f"{NAMESPACE}::Swap{{{site.mutants[0].id}}}.{word}"))


def sites_of(source: str, first_id: int) -> list[Site]:
    return Finder(source, first_id).find()


def number_base(path: str) -> int:
    """The number before a file's first mutant: files keep their numbers, and their objects, when others change."""
    return (zlib.crc32(path.encode()) & 0xFFFFF) << MUTANT_BITS


def instrumented(source: str, sites: list[Site]) -> str:
    """The source with every site rewritten."""
    opening: dict[int, list[tuple[int, int, str]]] = {}
    closing: dict[int, list[tuple[int, int, str]]] = {}
    instead = {start: (end, text) for site in sites for start, end, text in site.instead}
    spans = [span for site in sites for span in site.outside] + [span for site in sites for span in site.around]
    for order, (start, end, before, after) in enumerate(spans):
        opening.setdefault(start, []).append((-end, order, before))
        closing.setdefault(end, []).append((-start, -order, after))
    pieces: list[str] = []
    at = 0
    for position in sorted({*opening, *closing, *instead}):
        if position > at:
            pieces.append(source[at:position])
            at = position
        pieces += [text for _, _, text in sorted(closing.get(position, []))]
        pieces += [text for _, _, text in sorted(opening.get(position, []))]
        if position in instead:
            at, text = instead[position]
            pieces.append(text)
    return "".join(pieces) + source[at:]
