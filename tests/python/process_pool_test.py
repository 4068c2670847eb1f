# SPDX-License-Identifier: MIT
"""freehold.ProcessPool by the standard library's rules for executors (the subjects are those of CPython's own tests of
ProcessPoolExecutor), and where that pool breaks: workers that crash, hang, exit or grow."""
import asyncio
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

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


def fail_unpicklable():
    raise Unpicklable(1, 2)


def crash(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(*_):
    sys.exit(3)


def grow(mebibytes):
    kept = bytearray(mebibytes << 20)
    kept[::4096] = b"x" * len(kept[::4096])
    time.sleep(5)


def begin(value):
    global _state
    _state = value


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
            with self.assertRaisesRegex(RuntimeError, "Unpicklable"):
                pool.submit(fail_unpicklable).result()
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
            folder = pool._folder
            self.assertEqual(os.listdir(folder), [])
            with self.assertRaises(WorkerDied):
                pool.submit(crash, data).result()
            self.assertEqual(os.listdir(folder), [])
        self.assertFalse(os.path.exists(folder))
        with ProcessPool(1, max_input_bytes=4096, max_output_bytes=8192) as pool:
            with self.assertRaises(TooLarge):
                pool.submit(add, b"x" * 5000, b"").result()
            with self.assertRaises(TooLarge):
                pool.submit(bytes, 9000).result()
            self.assertEqual(pool.submit(bytes, 3).result(), b"\0\0\0")

    def test_no_temporary_folder(self):  # as in a container whose files can only be read
        with unittest.mock.patch("tempfile.gettempdir", side_effect=FileNotFoundError), ProcessPool(1) as pool:
            self.assertEqual(pool.submit(add, 1).result(), 1)

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
