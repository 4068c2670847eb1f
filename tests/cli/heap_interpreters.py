# SPDX-License-Identifier: MIT
"""What `freehold heap profile` sees of programs in other languages, as docs/heap-profile.md says it: each interpreter that is
installed keeps 80 MB through functions with known names, and these must hold it.

  heap_interpreters.py COMMAND

One that is not here, or cannot name its functions, is left out with a line that says so; none at all: exit code 77.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

KEPT_BYTES = 4000 * 20000

PYTHON = """
kept = []
def build_rows(n):
    return [bytearray(20000) for _ in range(n)]
class Store:
    def fill(self):
        for _ in range(40):
            kept.append(build_rows(100))
def work():
    Store().fill()
work()
"""
NODE = """
const kept = [];
function buildRows(n) {
  const rows = [];
  for (let i = 0; i < n; ++i) rows.push(Buffer.allocUnsafeSlow(20000).fill(1));
  return rows;
}
function work() {
  for (let i = 0; i < 40; ++i) kept.push(buildRows(100));
}
work();
"""
JAVA = """
import java.nio.ByteBuffer;
import java.util.ArrayList;
public class Work {
  static final ArrayList<ByteBuffer> kept = new ArrayList<>();
  static void buildRows(int n, int bytes) { for (int i = 0; i < n; ++i) kept.add(ByteBuffer.allocateDirect(bytes)); }
  static void work(int n, int bytes) { buildRows(n, bytes); }
  public static void main(String[] words) {
    for (int i = 0; i < 20000; ++i) work(1, 1);
    for (int i = 0; i < 40; ++i) work(100, 20000);
  }
}
"""
RUBY = """
def build_rows(n)
  Array.new(n) { "x" * 20000 }
end
$kept = (1..40).map { build_rows(100) }
"""


class Profile:
    """Bytes at the peak, by stack; a stack is a list of functions, the innermost first."""

    def __init__(self, command, folder, program, environment=()):
        file = folder / "heap.json"
        ended = subprocess.run([command, "heap", "profile", "--distance", "64K", "--format", "json", "--output", file, "--",
                                *program], cwd=folder, env={**os.environ, **dict(environment)}, capture_output=True, text=True,
                               timeout=120, check=False)
        assert ended.returncode == 0, ended.stderr
        self.told = ended.stderr
        profile = json.loads(file.read_text())
        self.frames = profile["frames"]
        self.stacks = [([self.frames[i]["function"] for i in stack["frames"]], stack["values"][3])
                       for stack in profile["stacks"]]
        pathlib.Path(f"/tmp/perf-{profile['pid']}.map").unlink(missing_ok=True)

    def held_through(self, *functions):
        """By stacks that have these functions, the innermost first."""
        def has(stack):
            at = -1
            for function in functions:
                if function not in stack[at + 1:]:
                    return False
                at = stack.index(function, at + 1)
            return True
        return sum(value for stack, value in self.stacks if has(stack))

    def check(self, *functions):
        held = self.held_through(*functions)
        assert 0.8 * KEPT_BYTES < held < 1.2 * KEPT_BYTES, (functions, held, self.told)

    def check_site(self, site):
        """The heaviest line of the first table ends with it."""
        rows = self.told.split("When most was in use:")[1].splitlines()
        assert rows[2].endswith(site), rows[:4]


def python_of(*names):
    for name in names:
        # pyenv's shims are there for versions that are not chosen.
        for path in [shutil.which(name), *map(str, sorted(pathlib.Path.home().glob(f".pyenv/versions/*/bin/{name}")))]:
            if path and subprocess.run([path, "-c", ""], capture_output=True, check=False, timeout=60).returncode == 0:
                yield name, path
                break


def check_pythons(command, folder):
    program = folder / "work.py"
    program.write_text(PYTHON)
    named = 0
    for name, path in python_of("python3.12", "python3.13", "python3.14"):
        can = [path, "-c", "import sys; sys.activate_stack_trampoline('perf')"]
        if subprocess.run(can, capture_output=True, check=False, timeout=60).returncode != 0:
            continue
        profile = Profile(command, folder, [path, program], {"PYTHONPERFSUPPORT": "1"}.items())
        profile.check("build_rows", "Store.fill", "work", "<module>")
        profile.check_site("build_rows in work.py")
        print(f"{name}: its functions are seen")
        named += 1
    if not named:
        print("no Python with a trampoline for perf: its functions are not looked for")
    for name, path in python_of("python3.11", "python3"):
        profile = Profile(command, folder, [path, program], {"PYTHONPERFSUPPORT": "0"}.items())
        profile.check()
        assert profile.held_through("build_rows") == 0
        print(f"{name}: C functions alone")
        return True
    return named > 0


def check_node(command, folder):
    node = shutil.which("node")
    if not node:
        print("no node")
        return False
    (folder / "work.js").write_text(NODE.lstrip())
    profile = Profile(command, folder, [node, "--perf-basic-prof", "--interpreted-frames-native-stack", "work.js"])
    profile.check("buildRows", "work", "(anonymous)")
    profile.check_site("buildRows at work.js:2")
    profile = Profile(command, folder, [node, "work.js"])
    profile.check()
    assert profile.held_through("buildRows") == 0
    print("node: its functions are seen with its options, and C++ alone without them")
    return True


def check_java(command, folder):
    java, compiler = shutil.which("java"), shutil.which("javac")
    options = ["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]
    if not java or not compiler:
        print("no Java with a compiler")
        return False
    if subprocess.run([java, *options, "-version"], capture_output=True, check=False, timeout=60).returncode != 0:
        print("Java is older than 17: its functions are not looked for")
        return False
    (folder / "Work.java").write_text(JAVA)
    subprocess.run([compiler, "Work.java"], cwd=folder, check=True, timeout=120)
    # Both are compiled before they allocate: what is interpreted has no name of its own.
    profile = Profile(command, folder, [java, *options, "-Xbatch", "-XX:CompileCommand=quiet",
                                        "-XX:CompileCommand=dontinline,Work::*", "-cp", ".", "Work"])
    profile.check("void Work.buildRows(int, int)", "void Work.work(int, int)")
    profile.check_site("void Work.buildRows(int, int)")
    print("java: compiled methods are seen")
    return True


def check_ruby(command, folder):
    ruby = shutil.which("ruby")
    if not ruby:
        print("no ruby")
        return False
    (folder / "work.rb").write_text(RUBY)
    profile = Profile(command, folder, [ruby, "--disable=gems", "work.rb"])
    profile.check()
    assert profile.held_through("build_rows") == 0
    print("ruby: C functions alone")
    return True


def main():
    command = sys.argv[1]
    seen = []
    for check in (check_pythons, check_node, check_java, check_ruby):
        with tempfile.TemporaryDirectory() as name:
            seen.append(check(command, pathlib.Path(name)))
    if not any(seen):
        sys.exit(77)


main()
