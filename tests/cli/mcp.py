# SPDX-License-Identifier: MIT
"""`freehold mcp` as a client of the Model Context Protocol sees it: messages on lines, tools, wrong input, cancelling.

  mcp.py COMMAND PAGE
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import time


class Client:
    def __init__(self, command):
        self.server = subprocess.Popen([command, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def write(self, line):
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()

    def receive(self):
        message = json.loads(self.server.stdout.readline())
        assert message.pop("jsonrpc") == "2.0", message
        return message

    def ask(self, id, method, **params):
        self.send(id=id, method=method, params=params)
        answer = self.receive()
        assert answer["id"] == id, answer
        return answer

    def end(self):
        self.server.stdin.close()
        return self.server.wait(10)


def check_hello(client, page):
    hello = client.ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
    assert hello["result"]["serverInfo"]["name"] == "freehold" and "tools" in hello["result"]["capabilities"], hello
    client.send(method="notifications/initialized")  # has no answer: the next one is ping's
    assert client.ask("two", "ping") == {"id": "two", "result": {}}
    tools = client.ask(3, "tools/list")["result"]["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert set(schema["required"]) <= set(schema["properties"]) and len(tool["description"]) > 20, tool
    assert [tool["name"] for tool in tools] == re.findall(r"^\| `(\w+)` \|", page, re.M), "docs/mcp.md lists the tools"


def check_wrong_input(client):
    client.write("{")
    assert client.receive()["error"]["code"] == -32700
    client.write("[]")
    assert client.receive()["error"]["code"] == -32600
    assert client.ask(4, "no/such")["error"]["code"] == -32601
    wrong = [{}, {"name": 7}, {"name": "nothing"}, {"name": "stats"}, {"name": "stats", "arguments": []},
             {"name": "stats", "arguments": {"pid": "1"}}, {"name": "stats", "arguments": {"pid": 0}},
             {"name": "stats", "arguments": {"pid": 1, "more": 2}}, {"name": "examine", "arguments": {"command": []}},
             {"name": "examine", "arguments": {"command": ["true"], "budget_s": "9"}},
             {"name": "explain_cause", "arguments": {"cause": "weather"}}]
    for params in wrong:
        error = client.ask(5, "tools/call", **params)["error"]
        assert error["code"] == -32602 and "\n" not in error["message"], (params, error)


def check_calls(client):
    why = client.ask(6, "tools/call", name="explain_cause", arguments={"cause": "remote-frees"})["result"]
    assert not why["isError"] and "allocated" in why["content"][0]["text"], why
    # Words that look like options are a program's, or a file's name.
    missing = client.ask(7, "tools/call", name="examine", arguments={"command": ["--no-such-program"]})["result"]
    assert missing["isError"] and missing["content"][0]["text"].startswith("freehold: "), missing
    missing = client.ask(8, "tools/call", name="compare_reports", arguments={"before": "--help", "after": "/none"})["result"]
    assert missing["isError"] and "--help" in missing["content"][0]["text"], missing
    held = "x = [bytearray(5000) for i in range(4000)]; print('done')"
    profile = client.ask(9, "tools/call", name="heap_profile", arguments={"command": [sys.executable, "-c", held]})["result"]
    assert not profile["isError"] and "done" in profile["content"][0]["text"], profile
    assert profile["structuredContent"]["format"] == "freehold-heap-profile", list(profile["structuredContent"])


def check_cancelling(client):
    sleep = {"name": "heap_profile", "arguments": {"command": ["sleep", "60"]}}
    begin = time.monotonic()
    client.send(id=10, method="tools/call", params={**sleep, "_meta": {"progressToken": "p"}})
    client.send(id=11, method="tools/call", params=sleep)
    assert client.ask(12, "ping") == {"id": 12, "result": {}}, "a call that runs blocks nothing else"
    for call in (11, 10):
        client.send(method="notifications/cancelled", params={"requestId": call})
    assert client.ask(13, "tools/call", name="heap_profile", arguments={"command": ["true"]})["id"] == 13
    assert time.monotonic() - begin < 30


def main(command, page):
    client = Client(command)
    check_hello(client, pathlib.Path(page).read_text())
    check_wrong_input(client)
    check_calls(client)
    check_cancelling(client)
    client.send(id=14, method="tools/call", params={"name": "heap_profile", "arguments": {"command": ["sleep", "60"]}})
    assert client.end() == 0, "the end of its input ends the server, and what it runs"
    client = Client(command)
    client.ask(1, "ping")
    client.server.send_signal(signal.SIGINT)
    assert client.server.wait(10) == 130


main(*sys.argv[1:])
