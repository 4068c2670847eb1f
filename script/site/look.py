# SPDX-License-Identifier: MIT
"""Shows the built site to a browser as a telephone and as a desk would: no page may be wider than its window.

A page of our own loads one page after the other into a frame of that width and writes down what is wider; headless Chromium prints it.
"""
import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

WIDTHS = (390, 1280)
HARNESS = """<!DOCTYPE html><pre id="found">unfinished</pre><script>
const wide = [];
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => frame.onload = done);
  await new Promise(done => setTimeout(done, 100));
  const root = frame.contentDocument.documentElement;
  if (!root.innerText.trim()) wide.push(`${page}: shows nothing at ${width}`);
  if (root.scrollWidth > root.clientWidth) wide.push(`${page}: ${root.scrollWidth} px wide in a window of ${width}`);
  frame.remove();
}
(async () => {
  for (const page of PAGES) for (const width of WIDTHS) await look(page, width);
  document.getElementById("found").textContent = JSON.stringify(wide);
})();
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def complaints(site, refused):
    browser = shutil.which("chromium")
    if not browser:
        raise refused("Chromium is not there; script/bootstrap browser installs it")
    site = pathlib.Path(site)
    pages = [file.relative_to(site).as_posix() for file in sorted(site.rglob("*.html")) if file.name != "404.html"]
    (site / "look.html").write_text(HARNESS.replace("PAGES", json.dumps(pages), 1).replace("WIDTHS", json.dumps(WIDTHS), 1), encoding="utf-8")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as profile:
            # Its time is virtual: it passes while nothing is loaded.
            words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={profile}",
                     "--window-size=1400,1000", "--virtual-time-budget=600000", "--dump-dom", f"http://127.0.0.1:{server.server_port}/look.html"]
            done = subprocess.run([browser, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=900, check=False)
    finally:
        server.shutdown()
        (site / "look.html").unlink()
    found = re.search(r'<pre id="found">(\[.*?\])</pre>', done.stdout, flags=re.DOTALL)
    if not found:
        raise refused("the browser did not come to an end")
    return json.loads(found[1]), len(pages)
