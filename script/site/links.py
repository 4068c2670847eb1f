# SPDX-License-Identifier: MIT
"""Checks the built site: every link leads to a file and an anchor of it, and no page fetches anything from the network."""
import functools
import html.parser
import pathlib
import urllib.parse

FETCHING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(html.parser.HTMLParser):
    """The anchors of a page, its links with their lines, and what it loads."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.loaded = {"", "top"}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append((self.getpos()[0], values["href"]))
        target = values.get(FETCHING.get(tag, ""))
        if target and not (tag == "link" and values.get("rel") in ("canonical", "next", "prev")):
            self.loaded.append((self.getpos()[0], target))


@functools.cache
def read(file):
    return Page(file.read_text(encoding="utf-8", errors="replace"))


def complaint(site, file, link):
    """Why the link leads nowhere, or None."""
    address = urllib.parse.urlsplit(link)
    if address.scheme or address.netloc:
        return None
    path = urllib.parse.unquote(address.path)
    target = (file.parent / path).resolve() if path else file
    if target.is_dir():
        target /= "index.html"
    if path.startswith("/") or not target.is_relative_to(site):
        return "leaves the site"
    if not target.is_file():
        return "does not exist"
    if target.suffix == ".html" and urllib.parse.unquote(address.fragment) not in read(target).anchors:
        return "has no such anchor"
    return None


def complaints(site):
    site = pathlib.Path(site).resolve()
    found = []
    for file in sorted(site.rglob("*.html")):
        page = read(file)
        for line, link in page.loaded:
            if urllib.parse.urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                found.append(f"{file.relative_to(site)}:{line}: fetches {link} from the network")
        found += [f"{file.relative_to(site)}:{line}: {link}: {why}" for line, link in page.links + page.loaded
                  if not link.startswith(("data:", "javascript:", "mailto:")) and file.name != "404.html" and (why := complaint(site, file, link))]
    read.cache_clear()
    return found
