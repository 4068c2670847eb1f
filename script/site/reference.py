# SPDX-License-Identifier: MIT
"""The first page of the reference: each public header with the classes and functions that it brings, and links to Doxygen's pages.

`script/check_api` says which headers are public and what is documented in them; this reads the XML that Doxygen wrote for it.
"""
import html
import importlib.machinery
import importlib.util
import pathlib
import re
import xml.etree.ElementTree

HEAD = """# Reference

All that the public headers declare, read from their docstrings by Doxygen. A header of C++ brings the classes of its part; all else below
`freehold/` is internal.

"""


def load_check_api(root):
    loader = importlib.machinery.SourceFileLoader("check_api", str(root / "script" / "check_api"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_api", loader))
    loader.exec_module(module)
    return module


def first_sentence(text):
    text = " ".join(text.split())
    return html.escape(re.split(r"(?<=[.;:]) ", text)[0].rstrip(".;:"), quote=False).replace("|", "&#124;")


def purpose(header):
    """The first sentence of the comment at the beginning of a header."""
    said = []
    for line in header.read_text(encoding="utf-8").splitlines():
        text = re.sub(r"^(//+|/\*+| \*(?!/))|\*/$", "", line).strip()
        if re.match(r"SPDX|@file", text):
            continue
        if not text or line.startswith("#"):
            break
        said.append(text)
    return re.split(r"(?<=[.:]) ", " ".join(said))[0].rstrip(".:") + "."


def table(rows):
    return "\n".join(["| name | it is |", "|---|---|", *(f"| [`{name}`](reference/{target}) | {text} |" for name, target, text in rows)]) + "\n\n"


def page(root, folder):
    api = load_check_api(root)
    public, included = api.headers(root)
    exported = api.exported_names(public, included)
    classes, functions = {}, {}
    for file in sorted(folder.glob("*.xml")):
        for compound in xml.etree.ElementTree.parse(file).getroot().findall("compounddef"):
            collect(api, compound, exported, classes, functions)
    out = [HEAD]
    for header in public:
        name = str(header.relative_to(root))
        own = {name, *api.INCLUDE.findall(header.read_text(encoding="utf-8"))} - {str(other.relative_to(root)) for other in public if other != header}
        rows = sorted(row for place in own for row in classes.get(place, [])) + sorted(row for place in own for row in functions.get(place, []))
        if rows:
            out.append(f"## {name}\n\n{purpose(header)}\n\n{table(rows)}")
    return "".join(out)


def collect(api, compound, exported, classes, functions):
    """Notes a class, or the functions of a file or a namespace, by the file that declares it."""
    name, kind = compound.findtext("compoundname"), compound.get("kind")
    location = compound.find("location")
    if kind in api.CONTAINERS or kind == "concept":
        short = name.split("::")[-1]
        if api.text_of(compound) and "<" not in name and not re.search(r"::[A-Z]\w*::", name):
            shown = f"freehold::{short}" if short in exported and name.startswith("freehold::") else name
            row = (shown, f"{compound.get('id')}.html", first_sentence("".join(compound.find("briefdescription").itertext()) or api.text_of(compound)))
            classes.setdefault(location.get("file"), []).append(row)
        return
    if kind not in ("file", "namespace"):
        return
    for member in compound.iter("memberdef"):
        if member.get("kind") == "function" and api.text_of(member):
            container, _, anchor = member.get("id").rpartition("_1")
            place = member.find("location")
            file = place.get("declfile") or place.get("file")
            text = "".join(member.find("briefdescription").itertext()) or api.text_of(member)
            row = (f"{member.findtext('name')}()", f"{container}.html#{anchor}", first_sentence(text))
            if row not in functions.setdefault(file, []):
                functions[file].append(row)


def search_entries(root, folder):
    """What the search finds of the reference: each documented class, and each documented function and member of one."""
    api = load_check_api(root)
    entries = {}
    for file in sorted(folder.glob("*.xml")):
        for compound in xml.etree.ElementTree.parse(file).getroot().findall("compounddef"):
            name = compound.findtext("compoundname")
            is_class = compound.get("kind") in api.CONTAINERS or compound.get("kind") == "concept"
            if is_class and api.text_of(compound) and "<" not in name:
                entries[f"reference/{compound.get('id')}.html"] = (name, api.text_of(compound))
            if not is_class and compound.get("kind") not in ("file", "namespace"):
                continue
            for member in compound.iter("memberdef"):
                if member.get("prot") == "public" and api.text_of(member):
                    container, _, anchor = member.get("id").rpartition("_1")
                    title = f"{name}::{member.findtext('name')}" if is_class else member.findtext("name")
                    entries[f"reference/{container}.html#{anchor}"] = (title, api.text_of(member))
    return [{"location": location, "title": title, "text": " ".join(text.split())} for location, (title, text) in entries.items()]
