# SPDX-License-Identifier: MIT
"""packaging/ci/check_scaling on stored reports: a freehold that hands them out and compares as the real one does, a gh that keeps what
it is told, and a GitLab on this machine.

  check_scaling.py TREE COMMAND
"""
import copy
import http.server
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import zipfile

TREE, COMMAND = map(os.path.abspath, sys.argv[1:])
SCRIPT = pathlib.Path(TREE, "packaging/ci/check_scaling")

FREEHOLD = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys
here, words = pathlib.Path(sys.argv[0]).parent, sys.argv[1:]
if "--" not in words or "--json" not in words:
    os.execv({command!r}, ["freehold", *words])
options = words[1:words.index("--")]
if any(name in os.environ for name in ("GH_TOKEN", "FREEHOLD_GITLAB_TOKEN")): sys.exit("the program under review would see a token")
with open(here / "examined", "a") as log: log.write(" ".join(words[words.index("--"):]) + "\\n")
reports = sorted(here.glob("next.*"))
os.replace(reports[0], options[options.index("--json") + 1])
gates = [word for at, word in enumerate(options) if word == "--fail-on" or options[at - 1] == "--fail-on"]
asked = subprocess.run([{command!r}, "doctor", *gates, "--", here / "missing"], capture_output=True, text=True)
if asked.returncode == 2: sys.exit(print(asked.stderr) or 2)
cause = json.loads(pathlib.Path(options[options.index("--json") + 1]).read_text())["verdict"]["cause"]
pathlib.Path(options[options.index("--summary") + 1]).write_text("## freehold doctor: " + cause + "\\n")
sys.exit(bool(gates) and cause in gates[1].split(","))
"""

GH = """#!/usr/bin/env python3
import json, pathlib, sys
here, words = pathlib.Path(sys.argv[0]).parent, sys.argv[1:]
if (here / "gh_fails").exists(): sys.exit("gh: HTTP 403: Resource not accessible by integration")
assert words.pop(0) == "api", words
path = next(word for word in words if word.startswith("repos/o/r/"))
if "POST" in words or "PATCH" in words:
    body = json.load(sys.stdin)["body"]
    comments = json.loads((here / "comments").read_text())
    if "POST" in words: comments.append({{"id": len(comments) + 7, "body": body}})
    else: next(one for one in comments if str(one["id"]) == path.rsplit("/", 1)[1])["body"] = body
    (here / "comments").write_text(json.dumps(comments))
elif path.endswith("/zip"): sys.stdout.buffer.write((here / "artifact.zip").read_bytes())
elif "/artifacts?name=freehold-scaling&" in path:
    page = int(path.rsplit("page=", 1)[1])
    print(json.dumps({{"artifacts": json.loads((here / "artifacts").read_text())[100 * page - 100:100 * page]}}))
elif path == "repos/o/r/issues/12/comments":
    for one in json.loads((here / "comments").read_text()): print(json.dumps(one))
else: sys.exit("gh: unknown: " + path)
"""

OURS = {"id": 5, "expired": False, "workflow_run": {"head_branch": "main", "head_repository_id": 1, "repository_id": 1}}


def real_report():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "r.json")
        example = pathlib.Path(COMMAND).parent / "freehold-doctor-example"
        subprocess.run([COMMAND, "doctor", "--repeat", "3", "--allocators", "freehold", "--json", file, "--", example, "20000"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = json.loads(file.read_text())
    report["verdict"] |= {"noisy": False, "cause": "own-lock"}
    return report


def report_with(report, on_all, alone=1.0, trials=6, noisy=False, cpu="Made-up CPU"):
    report = copy.deepcopy(report)
    report["verdict"]["noisy"] = noisy
    report["machine"]["cpu_model"] = cpu
    for cell in report["experiment"]["cells"]:
        if cell["variant"] != 0:
            continue
        times = on_all if cell["setting"] == report["verdict"]["all"] else alone
        cell["trials"] = [{**cell["trials"][0], "wall_s": times * (1 + 0.002 * turn), "user_s": times, "system_s": 0.0, "taken_s": 0.0,
                           "stolen_s": 0.0, "throttled_s": 0.0, "ready_share": 0.0} for turn in range(trials)]
    return report


def packed(report):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("report.json", report if isinstance(report, str) else json.dumps(report))
    return buffer.getvalue()


class Place:
    """A job's folder."""

    def __init__(self, *new, stored=None, artifacts=(OURS,)):
        self.kept = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.kept.name)
        for name, text in {"freehold": FREEHOLD, "gh": GH}.items():
            (self.folder / name).write_text(text.format(command=COMMAND))
            (self.folder / name).chmod(0o755)
        for number, report in enumerate(new):
            (self.folder / f"next.{number}").write_text(json.dumps(report))
        (self.folder / "comments").write_text(json.dumps([{"id": 3, "body": "Looks good to me"}]))
        (self.folder / "artifacts").write_text(json.dumps(list(artifacts) if stored else []))
        if stored:
            (self.folder / "artifact.zip").write_bytes(packed(stored))

    def run(self, *options, environment=None, program=("--", "./prog", "-x")):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_"))}
        if environment is None:
            environment = {"GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/12/merge", "GITHUB_STEP_SUMMARY": str(self.folder / "page.md")}
        path = f"{self.folder}:{os.environ['PATH']}"
        ended = subprocess.run([SCRIPT, *options, *program], cwd=self.folder, env={**kept, **environment, "PATH": path}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return ended.returncode, ended.stdout.strip().splitlines()[-1], ended.stdout

    def examined(self):
        log = self.folder / "examined"
        return log.read_text().splitlines() if log.exists() else []

    def comments(self):
        return [one["body"] for one in json.loads((self.folder / "comments").read_text())]


def expect(place, code, says, *options, examined=None, **more):
    got, line, everything = place.run(*options, **more)
    assert got == code and says in line, (code, says, got, everything)
    assert examined is None or len(place.examined()) == examined, (examined, place.examined())


def check_answers(base):
    same, slower = report_with(base, 0.5), report_with(base, 0.9)
    everywhere = report_with(base, 0.9, alone=1.8)
    expect(Place(same, stored=same), 0, "nothing got worse", examined=1)
    expect(Place(slower, slower, stored=same), 3, "fails: --worse-than 10%: it takes 1.8", examined=2)
    expect(Place(slower, same, stored=same), 0, "worse once, but not again: nothing got worse", examined=2)
    expect(Place(slower, stored=same), 0, "nothing got worse", "--worse-than", "90%", examined=1)
    expect(Place(everywhere, stored=same), 0, "as much longer on one CPU, too", examined=1)  # another machine's pace, say
    expect(Place(slower, stored=report_with(base, 0.5, cpu="Other CPU")), 0, "not judged: the machines differ", examined=1)
    expect(Place(report_with(base, 0.9, noisy=True), stored=same), 0, "not judged: the machine of the new report was busy")
    expect(Place(slower, stored=report_with(base, 0.5, noisy=True)), 0, "not judged: the machine of the stored report was busy")
    expect(Place(report_with(base, 0.9, trials=2), stored=same), 0, "fewer than 3 trials")
    # The cause is that of the new report alone.
    expect(Place(same, stored=same), 3, "the cause is one of --fail-on; nothing got worse", "--fail-on", "own-lock,serial")
    expect(Place(same, stored=same), 0, "nothing got worse", "--fail-on", "allocator")


def check_baselines(base):
    same, slower = report_with(base, 0.5), report_with(base, 0.9)
    expect(Place(slower), 0, "main has no stored report yet", examined=1)
    fork = {**OURS, "workflow_run": {**OURS["workflow_run"], "head_repository_id": 2}}
    branch = {**OURS, "workflow_run": {**OURS["workflow_run"], "head_branch": "feature"}}
    expect(Place(slower, stored=same, artifacts=[fork, branch, {**OURS, "expired": True}]), 0, "main has no stored report yet")
    expect(Place(slower, slower, stored=same, artifacts=[fork] * 230 + [OURS]), 3, "fails: --worse-than")
    expect(Place(slower, stored="{"), 0, "cannot be read by this version")
    other = json.loads(json.dumps(same).replace(json.dumps(same["verdict"]["all"]), json.dumps({**same["verdict"]["all"], "cpus": 77})))
    expect(Place(slower, stored=other), 0, "they cannot be compared")
    failing = Place(slower, stored=same)
    (failing.folder / "gh_fails").touch()
    expect(failing, 0, "could not be fetched: gh: HTTP 403", "--comment")
    local = Place(slower, slower)
    (local.folder / "old.json").write_text(json.dumps(same))
    expect(local, 3, "fails", "--baseline", "old.json", environment={})
    expect(Place(same), 0, "neither a GitHub nor a GitLab job", environment={})


def check_wrong_arguments(base):
    same = report_with(base, 0.5)
    for options, more in [((), {"program": ()}), (("--bogus",), {}), (("--worse-than", "lots"), {}), (("--baseline", "missing.json"), {}),
                          (("--name", "a b"), {}), (("--freehold", "no-such-command"), {}), (("--worse-than",), {})]:
        expect(Place(same, stored=same), 2, "check_scaling: ", *options, examined=0, **more)
    expect(Place(same), 2, "lots", "--worse-than", "lots")
    expect(Place(same), 0, "2 a wrong argument", "--help", examined=0)
    expect(Place(same, stored=same), 2, "weather", "--fail-on", "weather")


def check_comments(base):
    same, slower = report_with(base, 0.5), report_with(base, 0.9)
    place = Place(slower, slower, same, stored=same)
    expect(place, 3, "fails", "--comment")
    assert len(place.comments()) == 2 and place.comments()[1].startswith("<!-- freehold check_scaling scaling -->\n❌"), place.comments()
    assert "after / before" in place.comments()[1] and "❌" in (place.folder / "page.md").read_text()
    expect(place, 0, "nothing got worse", "--comment")
    assert len(place.comments()) == 2 and "✅ **scaling**: nothing got worse" in place.comments()[1], place.comments()
    assert place.comments()[0] == "Looks good to me"
    silent = Place(same, stored=same)
    expect(silent, 0, "nothing got worse")
    assert len(silent.comments()) == 1


def check_action(base):
    """The action's own step, by the shell that a runner uses for it."""
    same, slower = report_with(base, 0.5), report_with(base, 0.9)
    text = pathlib.Path(TREE, "action.yml").read_text()
    step = textwrap.dedent(re.search(r"^      run: \|\n((?:        .*\n)+)", text, re.M)[1])
    inputs = dict(re.findall(r"^        (\w+): \${{ inputs\.([\w-]+) }}$", text, re.M))
    defaults = dict(re.findall(r'^  ([\w-]+):\n    description: .*\n    default: "?(.*?)"?$', text, re.M))
    assert {"NAME", "WORSE_THAN", "FAIL_ON", "COMMENT"} <= set(inputs), inputs
    place = Place(slower, slower, stored=same)
    environment = {**os.environ, **{name: defaults.get(key, "") for name, key in inputs.items()}, "PATH": f"{place.folder}:{os.environ['PATH']}",
                   "COMMAND": "./prog -x 'a b'", "GITHUB_ACTION_PATH": TREE, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/12/merge"}
    ended = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step], cwd=place.folder, env=environment, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert ended.returncode == 3 and place.examined() == ["-- ./prog -x a b"] * 2, (ended.stdout, place.examined())
    assert len(place.comments()) == 2 and (place.folder / "freehold-scaling/report.json").exists(), place.comments()


def check_gitlab(base):
    same, slower = report_with(base, 0.5), report_with(base, 0.9)
    notes = [{"id": 7, "body": "<!-- freehold check_scaling scaling -->\n✅ by another user", "author": {"id": 99}}]

    class Forge(http.server.BaseHTTPRequestHandler):
        def answer(self, data):
            self.send_response(200 if data is not None else 404)
            self.end_headers()
            self.wfile.write(data or b"")

        def do_GET(self):
            if self.path == "/api/projects/4/jobs/artifacts/main/raw/freehold-scaling/report.json?job=scaling":
                self.answer(json.dumps(same).encode())
            elif self.path == "/api/user":
                self.answer(b'{"id": 5}')
            else:
                self.answer(json.dumps(notes).encode() if self.path.startswith("/api/projects/4/merge_requests/9/notes?") else None)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            notes.append({"id": 40 + len(notes), "body": body, "token": self.headers["PRIVATE-TOKEN"], "author": {"id": 5}})
            self.answer(b"{}")

        def do_PUT(self):
            assert self.path == f"/api/projects/4/merge_requests/9/notes/{notes[1]['id']}", self.path
            notes[1]["body"] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            self.answer(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        job = {"CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api", "CI_PROJECT_ID": "4", "CI_JOB_NAME": "scaling",
               "CI_MERGE_REQUEST_IID": "9", "FREEHOLD_GITLAB_TOKEN": "a-token"}
        place = Place(slower, slower, same)
        expect(place, 3, "fails", "--comment", environment=job)
        expect(place, 0, "nothing got worse", "--comment", environment=job)
        assert len(notes) == 2 and "by another" in notes[0]["body"] and "✅" in notes[1]["body"] and notes[1]["token"] == "a-token", notes
        expect(Place(same), 0, "other has no stored report yet", "--branch", "other", environment=job)
        server.shutdown()


def main():
    base = real_report()
    for check in (check_answers, check_baselines, check_wrong_arguments, check_comments, check_action, check_gitlab):
        check(base)
    print("check_scaling: answers, baselines, arguments, comments, the action's step, GitLab")


main()
