# SPDX-License-Identifier: MIT
"""freehold.ProcessPool by the standard library's rules for executors (the subjects are those of CPython's own tests of
ProcessPoolExecutor), and where that pool breaks: workers that crash, hang, exit or grow."""
import asyncio
import concurrent.futures
import functools
import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

from freehold import ProcessPool, TooLarge, WorkerDied

TIMES = 10 if os.environ.get("FREEHOLD_TEST_SLOW") else 1  # as long, under an emulator (packaging/python/test)
_state = None


def add(a, b=0):
    return a + b


def pid(*_):
    return os.getpid()


def nap(seconds):
    time.sleep(seconds)
    return seconds


def fail(*_):
    raise ValueError("no luck")


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.lock = threading.Lock()


class Unspeakable(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.lock = threading.Lock()

    def __str__(self):
        raise AttributeError("no text")


class TwoArguments(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


class OneMore(Exception):  # pickle calls it with its own text
    def __init__(self, text, more="nothing"):
        super().__init__(f"{text}, {more}")


def fail_by(kind, *args):
    raise kind(*args)


def fail_by_a_local_class():
    class Local(Exception):
        pass
    raise Local("deep inside")


def crash(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(*_):
    sys.exit(3)


def grow(mebibytes):
    kept = bytearray(mebibytes << 20)
    kept[::4096] = b"x" * len(kept[::4096])
    time.sleep(5)


def begin(value, *_):
    global _state
    _state = value


class Array:
    """What supports pickle's out-of-band buffers, as numpy's arrays do."""

    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        return Array, (pickle.PickleBuffer(self.data),)


LARGE = 3 << 20


def array(byte, size=LARGE):
    return Array(bytearray(bytes([byte])) * size)


def same(*values):
    return values[0] if len(values) == 1 else values


def bytes_of(value):
    return type(value.data).__name__, len(value.data), value.data[0], value.data[-1]


def keep(value):
    begin(value)
    return value


def kept():
    return bytes_of(_state)


def increase(value):
    value.data[0] += 1
    return value


def increase_and_die_at_first(path, value):
    value.data[0] += 1
    if not os.path.exists(path):
        open(path, "w").close()
        crash()
    return value.data[0]


def fork_and_change(value):
    child = os.fork()
    if child == 0:
        value.data[0] = 99
        os._exit(0)
    os.waitpid(child, 0)
    return value


def seen_by_all():
    text = b""
    for name in ("cmdline", "environ"):
        with open(f"/proc/self/{name}", "rb") as file:
            text += file.read()
    return text, _state


def read_standard_input():
    return os.read(0, 100), sys.stdin.readline()


def interpreter():
    flags = {name: getattr(sys.flags, name) for name in ("optimize", "isolated", "dont_write_bytecode", "dev_mode", "utf8_mode", "no_user_site")}
    return flags, __debug__, sys.warnoptions, sorted(sys._xoptions), [each[:3] for each in warnings.filters]


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds * TIMES
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def processes_with(mark):
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as environ, open(f"/proc/{process}/stat") as stat:
                if mark in environ.read() and stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(process))
        except OSError:
            pass
    return found


def run_program(text, *options, **how):
    """A program of its own, which has this module's functions."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *filter(None, [os.environ.get("PYTHONPATH")])])
    setup = f"import sys; sys.path[:0] = {path.split(os.pathsep)!r}\n"
    return subprocess.Popen([sys.executable, "-B", *options, "-c", setup + text], text=True, stdout=subprocess.PIPE, **how)


def state():
    return _state


class ProcessPoolTest(unittest.TestCase):
    def test_function_pool_calls_it(self):
        with self.assertRaises(TypeError):
            ProcessPool(1, function=5)
        with ProcessPool(1, function=add) as pool:
            self.assertEqual(pool(1, b=2), 3)
            self.assertNotEqual(pool.submit(pid).result(), os.getpid())
        with ProcessPool(1) as pool, self.assertRaises(TypeError):
            pool(1)

    def test_submit_keyword(self):
        with ProcessPool(2) as pool:
            future = pool.submit(add, 1, b=7)
            self.assertIsInstance(future, concurrent.futures.Future)
            self.assertEqual((future.result(), future.exception()), (8, None))
            with self.assertRaises(TypeError):
                pool.submit()

    def test_map_order_exception_timeout_chunksize(self):
        with ProcessPool(2) as pool:
            self.assertEqual(list(pool.map(pow, range(10), range(10))), list(map(pow, range(10), range(10))))
            self.assertEqual(list(pool.map(pow, range(40), range(40), chunksize=6)), list(map(pow, range(40), range(40))))
            with self.assertRaises(ValueError):
                list(pool.map(fail, range(3)))
            with self.assertRaises(ValueError):
                pool.map(bool, [], chunksize=-1)
            with self.assertRaises(concurrent.futures.TimeoutError):
                list(pool.map(nap, [0, 3], timeout=0.3))

    def test_exceptions_keep_type_and_traceback(self):
        with ProcessPool(1) as pool:
            with self.assertRaises(ValueError) as caught:
                pool.submit(fail).result()
            self.assertIn("raise ValueError", str(caught.exception.__cause__))
            self.assertIsInstance(pool.submit(fail).exception(), ValueError)
            for kind, args, text, attributes in (
                    (Unpicklable, (1, 2), "1", {}), (TwoArguments, (7, "lost"), "7: lost", {"code": 7}),
                    (OneMore, ("a", "b"), "a, b", {}), (KeyError, ("k",), "'k'", {}), (FileNotFoundError, (2, "gone", "f"), "[Errno 2] gone: 'f'", {"errno": 2, "filename": "f"})):
                error = pool.submit(fail_by, kind, *args).exception()
                self.assertEqual((type(error), str(error)), (kind, text))
                self.assertEqual({name: getattr(error, name) for name in attributes}, attributes)
                self.assertIn("fail_by", str(error.__cause__))
            error = pool.submit(fail_by, Unspeakable, "a", "b").exception()
            self.assertEqual((type(error), error.args), (Unspeakable, ("a", "b")))
            with self.assertRaisesRegex(RuntimeError, "Local: deep inside"):
                pool.submit(fail_by_a_local_class).result()
            self.assertEqual(pool.submit(add, 1).result(), 1)

    def test_arguments_that_cannot_be_pickled_fail_alone(self):
        with ProcessPool(1) as pool:
            with self.assertRaises(Exception):
                pool.submit(add, threading.Lock()).result()
            self.assertEqual(pool.submit(add, 1).result(), 1)

    def test_a_crash_fails_its_own_call_only(self):
        with ProcessPool(2) as pool:
            futures = [pool.submit(crash)] + [pool.submit(add, i) for i in range(20)] + [pool.submit(leave)]
            with self.assertRaises(WorkerDied) as caught:
                futures[0].result()
            self.assertEqual((caught.exception.kind, caught.exception.detail), (1, signal.SIGKILL))
            self.assertEqual([future.result() for future in futures[1:-1]], list(range(20)))
            with self.assertRaisesRegex(WorkerDied, "exited with status 3"):
                futures[-1].result()

    def test_limits_of_time_and_memory(self):
        # To find the initializer a worker imports this module, before it is up and outside the limit. Otherwise its first call would,
        # which takes a busy machine longer than that.
        limit = 0.3 * TIMES
        with ProcessPool(1, run_timeout=limit, initializer=begin, initargs=("up",)) as pool:
            start = time.monotonic()
            with self.assertRaisesRegex(WorkerDied, f"longer than {300 * TIMES} ms"):
                pool.submit(nap, 60).result()
            self.assertGreaterEqual(time.monotonic() - start, limit)
            self.assertEqual(pool.submit(add, 1).result(), 1)
        with ProcessPool(1, kill_rss_bytes=200 << 20) as pool:
            with self.assertRaisesRegex(WorkerDied, "beyond 200 MiB"):
                pool.submit(grow, 300).result()
            self.assertEqual(pool.submit(add, 1).result(), 1)

    def test_too_large(self):
        with ProcessPool(1) as pool:  # as the standard library's, which has no limit
            data = b"x" * (20 << 20)
            self.assertEqual(pool.submit(len, data).result(), len(data))
            self.assertEqual(pool.submit(bytes, len(data)).result(), bytes(len(data)))
            self.assertEqual(pool.submit(bytes.upper, data).result(), data.upper())
            with self.assertRaises(WorkerDied):
                pool.submit(crash, data).result()
            self.assertEqual(pool.submit(bytes.upper, data).result(), data.upper())
        for limit in 4096, 2 << 20:
            with ProcessPool(1, max_input_bytes=limit, max_output_bytes=2 * limit) as pool:
                for value in b"x" * (limit + 1000), array(1, limit + 1000):
                    with self.assertRaises(TooLarge):
                        pool.submit(add, value, b"").result()
                with self.assertRaises(TooLarge):
                    pool.submit(bytes, 2 * limit + 1000).result()
                with self.assertRaises(TooLarge):
                    pool.submit(array, 1, 2 * limit + 1000).result()
                self.assertEqual(pool.submit(bytes, 3).result(), b"\0\0\0")

    def test_large_buffers_are_not_copied_by_pickle(self):
        with ProcessPool(1) as pool:
            # A worker and the program see the segment itself; and what was handed in is unchanged.
            for function in same, increase:
                value = array(5)
                result = pool.submit(function, value).result()
                self.assertEqual(bytes_of(result), ("memoryview", LARGE, 6 if function is increase else 5, 5))
                self.assertEqual(value.data[0], 5)
                result.data[0] = 200
            self.assertEqual(pool.submit(bytes_of, array(1)).result(), ("memoryview", LARGE, 1, 1))
            self.assertEqual(bytes_of(pool.submit(array, 9, LARGE).result()), ("memoryview", LARGE, 9, 9))
            # Several, of which one is small, twice the same, and one that overlaps another.
            first, small = array(1), array(2, 100)
            got = pool.submit(same, first, small, first, Array(memoryview(first.data)[:2 << 20]), array(4)).result()
            self.assertIs(got[0], got[2])
            self.assertEqual([bytes_of(each)[1:] for each in got],
                             [(LARGE, 1, 1), (100, 2, 2), (LARGE, 1, 1), (2 << 20, 1, 1), (LARGE, 4, 4)])
            got[3].data[0] = 77
            self.assertEqual(got[0].data[0], 1)
            self.assertEqual(bytes_of(pool.submit(same, Array(bytes(LARGE))).result()), ("memoryview", LARGE, 0, 0))

    def test_large_results_last_and_free_memory_goes_back(self):
        with ProcessPool(1) as pool:
            results = [pool.submit(array, i, LARGE).result() for i in range(5)]
            self.assertEqual([bytes_of(each)[2:] for each in results], [(i, i) for i in range(5)])
            for _ in range(10):
                pool.submit(bytes_of, array(7)).result()
            self.assertEqual([bytes_of(each)[2:] for each in results], [(i, i) for i in range(5)])
            file = pool._owned.segments.fd
            del results[1:]
            self.assertTrue(wait_for(lambda: LARGE <= os.fstat(file).st_blocks * 512 < 2 * LARGE), os.fstat(file).st_blocks)
        self.assertEqual(bytes_of(results[0])[2:], (0, 0))  # also after the pool

    def test_large_buffer_kept_in_the_worker_or_met_by_a_fork(self):
        with ProcessPool(1) as pool:
            result = pool.submit(keep, array(3)).result()
            result.data[0] = 50
            for i in range(3):
                pool.submit(bytes_of, array(10 + i)).result()
            self.assertEqual(pool.submit(kept).result(), ("memoryview", LARGE, 3, 3))
            self.assertEqual(result.data[0], 50)
            self.assertEqual(pool.submit(fork_and_change, array(4)).result().data[0], 4)
            child = os.fork()
            if child == 0:
                time.sleep(0.3)
                os._exit(result.data[0] + result.data[-1])
            result.data[0] = 60
            result.data[-1] = 60
            del result
            pool.submit(bytes_of, array(100)).result()
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 53)

    def test_large_buffer_of_a_call_that_runs_again(self):
        with tempfile.TemporaryDirectory() as folder, ProcessPool(1, max_attempts=2) as pool:
            died = os.path.join(folder, "died")
            self.assertEqual(pool.submit(increase_and_die_at_first, died, array(5)).result(), 6)
            self.assertEqual(bytes_of(pool.submit(increase, array(5)).result())[1:], (LARGE, 6, 5))
            self.assertEqual(bytes_of(pool.submit(keep, array(8)).result())[1:], (LARGE, 8, 8))
            pool.submit(bytes_of, array(9)).result()
            self.assertEqual(pool.submit(kept).result()[1:], (LARGE, 8, 8))

    def test_endless_times(self):
        for endless in math.inf, 1e300, 2.0**64:
            with ProcessPool(1, run_timeout=endless, idle_timeout=endless) as pool:
                self.assertEqual(pool.submit(nap, 0.01).result(), 0.01)
                self.assertEqual(list(pool.map(nap, [0.01], timeout=endless)), [0.01])
        with self.assertRaises(ValueError):
            ProcessPool(1, run_timeout=math.nan)
        with ProcessPool(1, run_timeout=-math.inf) as pool, self.assertRaisesRegex(WorkerDied, "longer than 1 ms"):
            pool.submit(nap, 60).result()

    def test_standard_input_is_the_program_s_own(self):
        program = """if __name__ == "__main__":
            import process_pool_test as test
            with test.ProcessPool(1, run_timeout=20, keep_standard_input=KEEP) as pool:
                print(pool.submit(test.read_standard_input).result(), flush=True)
            print(test.sys.stdin.read().split())"""
        ended = run_program(program.replace("KEEP", "False"), stdin=subprocess.PIPE).communicate("one\ntwo\n", timeout=60 * TIMES)
        self.assertEqual(ended[0], "(b'', '')\n['one', 'two']\n")
        ended = run_program(program.replace("KEEP", "True"), stdin=subprocess.PIPE).communicate("one\ntwo\n", timeout=60 * TIMES)
        self.assertEqual(ended[0], "(b'one\\ntwo\\n', '')\n[]\n")
        silent = run_program(program.replace("KEEP", "False"), stdin=subprocess.PIPE)  # as a terminal at which nobody types
        self.assertEqual(silent.stdout.readline(), "(b'', '')\n")
        self.assertEqual(silent.communicate(timeout=60 * TIMES)[0], "[]\n")

    def test_large_start_of_which_no_process_list_shows_anything(self):
        secret = "open-sesame-4711"
        for value in (secret,) * 100_000, array(6, 20 << 20):
            with ProcessPool(1, initializer=begin, initargs=(value, secret), function=functools.partial(seen_by_all)) as pool:
                text, seen = pool()
                self.assertEqual(bytes_of(seen)[1:] if isinstance(value, Array) else seen, (20 << 20, 6, 6) if isinstance(value, Array) else value)
                self.assertNotIn(secret.encode(), text)

    def test_workers_have_the_interpreter_s_options(self):
        program = """if __name__ == "__main__":
            import process_pool_test as test
            with test.ProcessPool(1) as pool:
                print(pool.submit(test.interpreter).result() == test.interpreter() or (pool.submit(test.interpreter).result(), test.interpreter()))"""
        for options in (), ("-OO",), ("-W", "error::UserWarning"), ("-X", "dev", "-X", "utf8"), ("-I",), ("-s", "-X", "faulthandler"):
            with run_program(program, *options) as ran:
                self.assertEqual(ran.stdout.read(), "True\n", options)

    def test_pools_that_are_dropped_end(self):
        def figures():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(processes_with(mark))
        mark = f"FREEHOLD_TEST_MARK={os.getpid()}".encode()
        os.environ["FREEHOLD_TEST_MARK"] = str(os.getpid())
        before = figures()
        for i in range(6):
            pool = ProcessPool(1, function=add)
            self.assertEqual((pool(i), pool.submit(add, i).result()), (i, i))
            if i % 2:
                pool.cycle = pool
            result = pool.submit(array, i, LARGE).result()
            del pool
        gc.collect()
        self.assertTrue(wait_for(lambda: figures()[2] == 0), figures())
        self.assertEqual(bytes_of(result)[2:], (5, 5))
        del result
        self.assertTrue(wait_for(lambda: all(now <= then for now, then in zip(figures(), before))), (figures(), before))

    def test_killed_program_leaves_nothing(self):
        program = """if __name__ == "__main__":
            import process_pool_test as test
            pool, starting = test.ProcessPool(2, min_workers=2), test.ProcessPool(1, initializer=test.nap, initargs=(60,))
            pool.submit(test.nap, 60), pool.submit(test.nap, b"x" * (30 << 20)), starting.submit(test.nap, 0)
            test.time.sleep(0.7)
            print("ready", flush=True)
            test.time.sleep(60)"""
        with tempfile.TemporaryDirectory() as folder:
            mark, shared = f"TMPDIR={folder}".encode(), set(os.listdir("/dev/shm"))
            ran = run_program(program, env={**os.environ, "TMPDIR": folder})
            self.assertEqual(ran.stdout.readline(), "ready\n")
            self.assertTrue(wait_for(lambda: len(processes_with(mark)) >= 4))
            self.assertEqual(os.listdir(folder), [])
            ran.kill()
            ran.communicate()
            self.assertTrue(wait_for(lambda: processes_with(mark) == [], 5))  # those that were starting have to come to that line
            self.assertEqual((os.listdir(folder), set(os.listdir("/dev/shm")) - shared), ([], set()))

    def test_interrupt_of_a_worker_spoils_no_later_call(self):
        with ProcessPool(1) as pool:
            worker = pool.submit(pid).result()
            for _ in range(20):  # between two calls
                os.kill(worker, signal.SIGINT)
                time.sleep(0.002)
                self.assertEqual(pool.submit(pid).result(), worker)
            future = pool.submit(nap, 60)
            while not future.done():
                os.kill(worker, signal.SIGINT)
                time.sleep(0.02)
            self.assertIsInstance(future.exception(), KeyboardInterrupt)
            self.assertEqual(pool.submit(pid).result(), worker)

    def test_initializer_and_max_tasks_per_child(self):
        with ProcessPool(1, initializer=begin, initargs=("set",), max_tasks_per_child=3) as pool:
            self.assertEqual(pool.submit(state).result(), "set")
            self.assertGreaterEqual(len({pool.submit(pid).result() for _ in range(8)}), 3)
        with self.assertRaises(TypeError):
            ProcessPool(1, initializer="no")
        for workers in (0, -1):
            with self.assertRaises(ValueError):
                ProcessPool(workers)

    def test_shutdown(self):
        pool = ProcessPool(1)
        futures = [pool.submit(nap, 0.3)] + [pool.submit(nap, 0.01) for _ in range(20)]
        while not futures[0].running():
            time.sleep(0.001)
        pool.shutdown(cancel_futures=True)
        self.assertEqual(futures[0].result(), 0.3)
        self.assertGreater(sum(future.cancelled() for future in futures), 15)
        with self.assertRaisesRegex(RuntimeError, "after shutdown"):
            pool.submit(add, 1)
        with self.assertRaises(RuntimeError):
            list(pool.map(add, [1]))
        pool.shutdown()
        later = ProcessPool(1)
        future = later.submit(nap, 0.2)
        later.shutdown(wait=False)
        self.assertEqual(future.result(), 0.2)

    def test_asyncio(self):
        async def work():
            with ProcessPool(2, function=add) as pool:
                loop = asyncio.get_running_loop()
                results = await asyncio.gather(*(pool.acall(i) for i in range(10)), loop.run_in_executor(pool, nap, 0.01))
                self.assertEqual(results, [*range(10), 0.01])
        asyncio.run(work())

    def test_many_threads(self):
        with ProcessPool(2, function=add) as pool:
            wrong = []

            def calls(t):
                wrong.extend(i for i in range(200) if pool(t, i) != t + i)
            threads = [threading.Thread(target=calls, args=(t,)) for t in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_interpreter_ends_with_calls_under_way(self):
        # Run to their ends, and nothing can be submitted any more. Also after shutdown(wait=False).
        for wait in ("", "pool.shutdown(wait=False)"):
            program = f"""if 1:
                import atexit, time, freehold
                def last():
                    try:
                        pool.submit(id, None)
                    except RuntimeError:
                        print("refused", flush=True)
                atexit.register(last)
                if __name__ == "__main__":
                    pool = freehold.ProcessPool(2)
                    future = pool.submit(time.sleep, 0.3)
                    future.add_done_callback(lambda done: print("over", done.exception(), flush=True))
                    {wait}
            """
            ended = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=60 * TIMES)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "over None\nrefused\n", ""))

    def test_no_worker_says_why(self):
        with ProcessPool(1, initializer=fail) as pool:
            with self.assertRaisesRegex(WorkerDied, "status 1"):
                pool.submit(add, 1).result()


if __name__ == "__main__":
    unittest.main()
