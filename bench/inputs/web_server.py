# SPDX-License-Identifier: MIT
# A web server that answers with documents it builds and keeps the 5,000 that were asked for last. An object is a malloc here
# (PYTHONMALLOC=malloc), and each connection has a thread.
import collections
import http.server
import json
import sys
import threading

CACHE = collections.OrderedDict()
LOCK = threading.Lock()


def document(key):
    return {"key": key, "rows": [{"id": i, "name": f"name {key} {i}", "tags": ["x" * (i * key % 40) for _ in range(4)]} for i in range(key % 60)]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: else each answer waits 40 ms for the client's acknowledgement

    def do_GET(self):
        key = int(self.path[1:])
        with LOCK:
            found = CACHE.pop(key, None) or document(key)
            CACHE[key] = found
            if len(CACHE) > 5000:
                CACHE.popitem(last=False)
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
