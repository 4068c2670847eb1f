# SPDX-License-Identifier: MIT
"""What the site has beyond docs/: pages from outside that folder, example reports, the reference, pictures, and a navigation from docs/index.md.

mkdocs calls these functions. The same Markdown is read on GitHub, so that the pages hold nothing that only the site understands:
a link to a page outside docs/ is changed to where the site has that page, and a block of Mermaid becomes a picture.
"""
import os
import pathlib
import posixpath
import re
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import flowchart  # noqa: E402
import reports  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages of the repository outside docs/: where the site has them.
OUTSIDE = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "sim/README.md": "simulator.md"}
TITLES = {"overview.md": "Overview"}
REFERENCE = "reference.md"
REFERENCE_PAGE = """# Reference

All that the public headers declare, read from their docstrings by Doxygen: [classes](reference/annotated.html) and
[headers](reference/files.html). A header of C++ brings the classes of its part; all else below `freehold/` is internal.
"""
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)")


def site_path(repository_path):
    """Where the site has a file of the repository."""
    return OUTSIDE.get(repository_path) or repository_path.removeprefix("docs/")


def repository_path(page):
    return next((inside for inside, there in OUTSIDE.items() if there == page), f"docs/{page}")


def navigation(index):
    """The sections of docs/index.md, each with the pages that its tables name, and the reference behind the libraries."""
    entries = [{"Home": "index.md"}]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        pages = [site_path(posixpath.normpath(f"docs/{link}")) for link in re.findall(r"^\| \[[^\]]+\]\(([^)#]+\.md)\)", body, flags=re.MULTILINE)]
        if title == "The libraries":
            pages.append(REFERENCE)
        entries.append({title.strip(): [{TITLES[page]: page} if page in TITLES else page for page in pages]})
    return entries


def on_config(config):
    config.nav = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    return config


def on_files(files, config):
    for there in OUTSIDE.values():
        text = (ROOT / repository_path(there)).read_text(encoding="utf-8")
        files.append(File.generated(config, there, content=text))
    for file in reports.written(ROOT):
        files.append(File.generated(config, f"reports/{file.name}", abs_src_path=str(file)))
    doxygen = pathlib.Path(os.environ["FREEHOLD_DOXYGEN"])
    for file in sorted((doxygen / "html").rglob("*")):
        if file.is_file():
            files.append(File.generated(config, f"reference/{file.relative_to(doxygen / 'html').as_posix()}", abs_src_path=str(file)))
    files.append(File.generated(config, REFERENCE, content=REFERENCE_PAGE))
    files.append(File.generated(config, "site.css", abs_src_path=str(pathlib.Path(__file__).with_name("site.css"))))
    return files


def with_site_links(markdown, page):
    origin = repository_path(page)

    def moved(link):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link[2]))
        text = title(target) if re.fullmatch(r"[\w./-]+\.md", link[1]) else link[1]
        return f"[{text}]({posixpath.relpath(site_path(target), posixpath.dirname(page) or '.')}{link[3]})"

    return LINK.sub(moved, markdown)


def title(page):
    """A page's title: a reader of the site knows no files."""
    heading = re.search(r"^# (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE) if (ROOT / page).is_file() else None
    return heading[1] if heading else page


def with_picture(fence, page):
    if not fence.startswith("```mermaid\n"):
        return fence
    try:
        return f'<div class="picture">{flowchart.svg(fence)}</div>'
    except ValueError as error:
        raise PluginError(f"{page}: {error}") from error


def on_page_markdown(markdown, page, config, files):
    name = page.file.src_uri
    if name == REFERENCE:
        return markdown
    if name == "index.md":
        markdown = reports.linked(ROOT, markdown)
    parts = FENCE.split(markdown)
    return "".join(with_picture(part, name) if part.startswith("```") else with_site_links(part, name) for part in parts)


def on_page_content(html, page, config, files):
    """Tables and pictures that are wider than a telephone scroll by themselves."""
    html = re.sub(r"<p>(<img [^>]*?src=\"([^\"]+)\"[^>]*>)</p>", r'<p class="picture"><a href="\2">\1</a></p>', html)
    return html
