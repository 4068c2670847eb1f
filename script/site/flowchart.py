# SPDX-License-Identifier: MIT
"""A flowchart in Mermaid's language as SVG, drawn by Graphviz, because Mermaid itself draws in the reader's browser from the network.

Understood is what script/check_layers writes: nodes `id["text"]` and arrows `a --> b` or `a -->|"label"| b`. Anything else is a ValueError.
Lines and letters have the colour of the text around the picture.
"""
import json
import re
import subprocess

NODE = re.compile(r'(\w+)\["([^"]+)"\]$')
ARROW = re.compile(r'(\w+) -->(?:\|"([^"]+)"\|)? ?(\w+)$')
STYLE = 'bgcolor=transparent ranksep=0.45 nodesep=0.25; node [shape=box style=rounded fontname="sans-serif" fontsize=13 height=0.35]; edge [arrowsize=0.6 fontname="sans-serif" fontsize=10]'


def dot_source(block):
    lines = [line.strip() for line in block.strip().removeprefix("```mermaid").removesuffix("```").strip().splitlines()]
    if not lines or lines[0] != "flowchart TD":
        raise ValueError(f"cannot draw a Mermaid picture that begins with '{lines[0] if lines else ''}'")
    body = []
    for line in filter(None, lines[1:]):
        if node := NODE.match(line):
            body.append(f"{node[1]} [label={json.dumps(node[2])}]")
        elif arrow := ARROW.match(line):
            label = f" [label={json.dumps(arrow[2].replace(', ', chr(10)))}]" if arrow[2] else ""
            body.append(f"{arrow[1]} -> {arrow[3]}{label}")
        else:
            raise ValueError(f"cannot draw this line of a Mermaid picture: {line}")
    return "digraph { " + STYLE + "; " + "; ".join(body) + " }"


def svg(block):
    done = subprocess.run(["dot", "-Tsvg"], input=dot_source(block), stdout=subprocess.PIPE, text=True, check=True)
    picture = done.stdout[done.stdout.index("<svg"):]
    picture = re.sub(r"<title>.*?</title>\n?|<!--.*?-->\n?", "", picture, flags=re.DOTALL)
    picture = re.sub(r'(?<=stroke=")black|(?<=fill=")black', "currentColor", picture)
    return re.sub(r"<text ", '<text fill="currentColor" ', picture).strip()
