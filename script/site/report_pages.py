# SPDX-License-Identifier: MIT
"""The example reports: docs/reports has what differs between them, and the pages of cli/report the rest.

put_together() makes a page of both, byte by byte as the command writes it (cli/report/page.cpp); take_apart() is its inverse. A
stored report is JSON: which page, its three titles, and the data, whose lines are broken between values only.
"""
import json
import re

MARK = re.compile(r"/\*\{([\w.]+)\}\*/|\{(\w+)\}")
TITLES = ("title", "brand", "question")
DATA, END = '\n"data": ', "\n}\n"  # before the data, and behind


class Page:
    """A page of cli/report, by its name there: the shell, and what stands in place of its marks but for titles and data."""

    def __init__(self, root, name):
        def text(path):
            return (root / path).read_text(encoding="utf-8")

        report = "cli/report"
        self.texts = {
            "uplot.css": text("third_party/uplot/uPlot.min.css"), "uplot.js": text("third_party/uplot/uPlot.iife.min.js"),
            "page.css": text(f"{report}/page.css"), "plots.js": text(f"{report}/plots.js"),
            "sections": text(f"{report}/{name}.html"), "page.js": text(f"{report}/{name}.js"),
        }
        self.shell = text(f"{report}/shell.html")

    def filled(self, own):
        texts = {**self.texts, **own}
        return MARK.sub(lambda mark: texts[mark[1] or mark[2]], self.shell)

    def own_texts(self, page):
        """What the page has for titles and data, or None if the rest is not this page's."""
        pattern, end = "", 0
        for mark in MARK.finditer(self.shell):
            name = mark[1] or mark[2]
            pattern += re.escape(self.shell[end:mark.start()]) + (re.escape(self.texts[name]) if name in self.texts else f"(?P<{name}>[^\n]*?)")
            end = mark.end()
        found = re.fullmatch(pattern + re.escape(self.shell[end:]), page)
        return found and found.groupdict()


def names(root):
    return sorted(file.stem for file in (root / "cli" / "report").glob("*.html") if file.stem != "shell")


def broken(data, depth=3):
    """JSON of one line, in lines: a value of the outermost `depth` levels has its own."""
    out, level = [], 0
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[^"]', data):
        level -= token in ("]", "}")
        out.append(token)
        level += token in ("[", "{")
        if token == "," and level <= depth:
            out.append("\n")
    return "".join(out)


def take_apart(root, page):
    """What docs/reports keeps of a page that a command wrote; ValueError if the page is not one of this tree."""
    for name in names(root):
        own = Page(root, name).own_texts(page)
        if own:
            head = json.dumps({"page": name, **{title: own[title] for title in TITLES}}, ensure_ascii=False, indent=0)
            return head.removesuffix("\n}") + "," + DATA + broken(own["data"]) + END
    raise ValueError("its page is not one of cli/report: the build is older than this tree, or newer")


def put_together(root, stored):
    """The page of what take_apart() returned; ValueError if it is nothing of that kind."""
    try:
        head = json.loads(stored)
        data = stored[stored.index(DATA) + len(DATA):].removesuffix(END).replace("\n", "")
        if json.loads(data) != head["data"] or head["page"] not in names(root):
            raise ValueError
        return Page(root, head["page"]).filled({**{title: head[title] for title in TITLES}, "data": data})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("it is no report; script/docs --reports writes them") from error
