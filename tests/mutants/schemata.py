# SPDX-License-Identifier: MIT
"""Mutant schemata (Untch, Offutt and Harrold 1993): many mutants in one build, of which an environment variable chooses one.

A function's body becomes

    { if (the chosen mutant is 17) { the body with mutant 17 } if (... 23) { ... } the body }

so that any change within one function fits, whatever it is. A change of a constant, a signature or several functions does not, nor one
in C, in a consteval function or in a file of the build: such mutants are left to a build of their own. Nor is a mutant chosen in a child
process whose environment its parent made anew: what lives here is tried again by itself.
"""
import bisect
import collections
import dataclasses
import os
import re

VARIABLE = "MUTANT"  # no name of Freehold's, which warns of its own that it does not know

# Included before all else. No library is asked, since malloc itself asks here; what is not known yet, before libc has begun, is no mutant.
SWITCH = """#pragma once
extern "C" char** environ;
namespace mutants {
[[gnu::visibility("hidden")]] inline bool is_on(int mutant) {
  static int chosen = -1;
  if (chosen < 0) {
    if (environ == nullptr) return false;
    int number = 0;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const char* text = *entry;
      const char* name = "%s=";
      while (*name != 0 && *text == *name) ++text, ++name;
      if (*name == 0)
        for (; *text >= '0' && *text <= '9'; ++text) number = 10 * number + (*text - '0');
    }
    chosen = number;
  }
  return chosen == mutant;
}
}  // namespace mutants
""" % VARIABLE

LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""",
                     re.DOTALL | re.MULTILINE | re.VERBOSE)
CONTAINER = re.compile(r"^(?:template\s*<.*>\s*)?(?:requires\b.*?\s)?(?:inline\s+)?(?:typedef\s+)?(?:namespace|class|struct|union|enum|extern)\b", re.DOTALL)
QUALIFIER = re.compile(r"(?:\)|\}|\b(?:const|noexcept|override|final|mutable|try)|->[^(){};=]*|&)\s*$")
NO_RETURN_TYPE = re.compile(r"^(?:(?:inline|constexpr|explicit|static|virtual|friend)\s+)*(?:\w+(?:<[^()]*>)?::)*~?\w+\s*$")
VOID = re.compile(r"\bvoid\s+[\w:~<>, ]+\s*$")


@dataclasses.dataclass
class Body:
    """A function's body: the offsets of its braces, and what a copy of it ends with."""
    begin: int
    end: int
    last: str


def without_literals(text):
    """The same text with blanks for comments, literals and directives, so that every brace is one."""
    return LITERAL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def bodies(text):
    """The bodies of all functions that stand in namespaces and classes, in order."""
    code = without_literals(text)
    open_braces, parens, header = [], 0, 0  # of each open brace: its offset, kind, depth of parentheses, where its header begins
    for place in re.finditer(r"[(){};]", code):
        at, what = place.start(), place[0]
        inside = open_braces[-1][1] if open_braces else "container"
        if what == "(":
            parens += 1
        elif what == ")":
            parens -= 1
        elif what == ";" and inside == "container" and parens == 0:
            header = at + 1
        elif what == "{":
            kind, before = "other", code[header:at].strip()
            before = re.sub(r"^(?:(?:public|protected|private)\s*:(?!:)\s*)+", "", before)
            before = re.sub(r"\[\[[^\]]*\]\]|alignas\([^()]*\)|__attribute__\(\([^()]*\)\)", " ", before).strip()
            if inside == "container" and parens == 0:
                if CONTAINER.match(before) and not before.endswith(")") or before in ("", 'extern "C"'):
                    kind = "container"
                elif QUALIFIER.search(before) and "(" in before:
                    kind = "body"
            open_braces.append((at, kind, parens, before))
            parens = 0
            if kind != "other":
                header = at + 1
        elif what == "}" and open_braces:
            begin, kind, parens, before = open_braces.pop()
            if kind == "body" and "consteval" not in before:
                yield Body(begin, at, end_of_copy(before))
            if kind != "other":
                header = at + 1


def end_of_copy(header):
    """A copy must not fall into the next one."""
    name = re.sub(r"^template\s*<.*?>\s*(?=[\w:]+[^<>]*\()", "", header.split("(", 1)[0] + "(", flags=re.DOTALL).rstrip("(").strip()
    is_void = NO_RETURN_TYPE.match(name) or VOID.search(name) or re.search(r"->\s*void\s*$", header)
    return " return;" if is_void and "operator" not in name.replace("operator (", "") or VOID.search(name) else " __builtin_unreachable();"


def difference(at, find, replace):
    """Without what both begin and end with, which may stand beyond the function."""
    first = len(os.path.commonprefix([find, replace]))
    find, replace = find[first:], replace[first:]
    last = len(os.path.commonprefix([find[::-1], replace[::-1]]))
    return at + first if at >= 0 else at, find[:len(find) - last], replace[:len(replace) - last]


def switched(text, mutants):
    """(text with the mutants that fit, and for each of them its lines there: (first, last, id)); mutants: (number, id, find, replace)."""
    inside = collections.defaultdict(list)
    found = sorted(bodies(text), key=lambda body: body.begin)
    begins = [body.begin for body in found]
    for number, id, find, replace in mutants:
        at, find, replace = difference(text.find(find), find, replace)
        index = bisect.bisect_right(begins, at) - 1
        if at >= 0 and index >= 0 and found[index].begin < at and at + len(find) <= found[index].end:
            inside[index].append((number, id, at, find, replace))
    result, line, places, done = [], 1, [], 0

    def add(piece):
        nonlocal line
        result.append(piece)
        line += piece.count("\n")

    for index in sorted(inside):
        body = found[index]
        add(text[done:body.begin + 1])
        add(" if (!__builtin_is_constant_evaluated()) {")
        for number, id, at, find, replace in inside[index]:
            first = line
            add(f"\n if (::mutants::is_on({number})) {{")
            add(text[body.begin + 1:at] + replace + text[at + len(find):body.end] + body.last + " }")
            places.append((first + 1, line, id))
        add("}")
        done = body.begin + 1
    add(text[done:])
    return "".join(result), places


def guilty(output, tree, places):
    """The ids of the mutants that a compiler's errors point at. places: (file, first line, last line, id)."""
    found = set()
    for block in re.split(r"\n(?=\[\d+/\d+\]|FAILED:)", output):
        if not re.search(r"\berror:", block):
            continue
        for strict in (r"error:", r"(?:error:|note:|required|in [^\n]*expansion)"):
            at = [(file.removeprefix(tree + "/"), int(line)) for file, line in re.findall(rf"^([^\s:]+):(\d+):\d+:\s+[^\n]*?{strict}", block, re.MULTILINE)]
            guilty_here = {id for name, line in at for file, first, last, id in places if name.endswith(file) and first <= line <= last}
            if guilty_here:
                found |= guilty_here
                break
    return found
