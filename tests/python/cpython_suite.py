# SPDX-License-Identifier: MIT
"""CPython's own tests of ProcessPoolExecutor (test.test_concurrent_futures), with freehold.ProcessPool in its place.

  cpython_suite.py [-v]          needs Python's package "test" (Debian: libpython3.11-testsuite); without it: says so, status 0

A worker's death is WorkerDied here and fails one call, where BrokenProcessPool ends the pool there: the tests get the one for the
other. What does not apply is in NOT_APPLICABLE, with the reason. Status 1 if another test fails, or if one that is named there is no more.
"""
import os
import sys
import unittest

from freehold import ProcessPool, WorkerDied

SYSTEM_PYTHON = "/usr/bin/python3"  # which has its tests as a package of its own

PRIVATE = "looks into ProcessPoolExecutor's private members"
BY_NAME = "starts a Python that imports the executor from concurrent.futures; process_pool_test.py has its subject"
ITSELF = "wants what unpickling raises to break the pool; here the call fails by that exception itself"
EXITS = "wants SystemExit handed to the caller; here a worker that exits is a death, WorkerDied with its status"
NOT_APPLICABLE = {f"ProcessPoolSpawn{name}": reason for name, reason in {
    "FailingInitializerTest.test_initializer": "hands a Queue to the initializer, which only multiprocessing's own children inherit",
    "ProcessPoolShutdownTest.test_hang_gh83386": BY_NAME,
    "ProcessPoolShutdownTest.test_interpreter_shutdown": BY_NAME,
    "ProcessPoolShutdownTest.test_submit_after_interpreter_shutdown": BY_NAME,
    "ProcessPoolShutdownTest.test_processes_terminate": PRIVATE,
    "ProcessPoolExecutorTest.test_idle_process_reuse_multiple": PRIVATE,
    "ProcessPoolExecutorTest.test_idle_process_reuse_one": PRIVATE,
    "ProcessPoolExecutorTest.test_killed_child": PRIVATE,
    "ProcessPoolExecutorTest.test_max_tasks_per_child": PRIVATE,
    "ProcessPoolExecutorTest.test_max_tasks_per_child_defaults_to_spawn_context": PRIVATE,
    "ProcessPoolExecutorTest.test_saturation": PRIVATE,
    "ExecutorDeadlockTest.test_error_at_task_unpickle": ITSELF,
    "ExecutorDeadlockTest.test_error_during_result_unpickle_in_result_handler": ITSELF,
    "ExecutorDeadlockTest.test_exit_during_result_unpickle_in_result_handler": ITSELF,
    "ExecutorDeadlockTest.test_exit_during_func_exec_on_worker": EXITS,
    "ExecutorDeadlockTest.test_exit_during_result_pickle_on_worker": EXITS,
    "ExecutorDeadlockTest.test_shutdown_deadlock_pickle": PRIVATE,
}.items()}


class Executor(ProcessPool):
    """With the signature that the tests use; workers are started as by the "spawn" method, whatever the context is."""

    def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
        super().__init__(max_workers, initializer=initializer, initargs=initargs, max_tasks_per_child=max_tasks_per_child)


def chosen_tests(module):
    tests = []
    for name, group in vars(module).items():
        if "ProcessPoolSpawn" not in name or not isinstance(group, type):
            continue
        group.executor_type = Executor
        tests += unittest.defaultTestLoader.loadTestsFromTestCase(group)
    return tests


def main():
    try:
        from test import test_concurrent_futures as module
    except ImportError as missing:
        if sys.executable != SYSTEM_PYTHON and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
        print(f"skipped: {missing}; Debian has Python's own tests in libpython3.11-testsuite")
        return 0
    if not hasattr(module, "ProcessPoolSpawnMixin"):
        print("skipped: this Python has its tests in other files; written for 3.11's")
        return 0
    module.ProcessPoolSpawnMixin.executor_type = Executor
    module.BrokenProcessPool = WorkerDied
    tests = {"{}.{}".format(type(test).__name__, test._testMethodName): test for test in chosen_tests(module)}
    unknown = sorted(set(NOT_APPLICABLE) - set(tests))
    for name in sorted(set(NOT_APPLICABLE) & set(tests)):
        print(f"not applicable: {name}: {NOT_APPLICABLE[name]}")
    suite = unittest.TestSuite(test for name, test in tests.items() if name not in NOT_APPLICABLE)
    result = unittest.TextTestRunner(verbosity=2 if "-v" in sys.argv else 1).run(suite)
    if unknown:
        print("not among the tests: " + ", ".join(unknown))
    return 0 if result.wasSuccessful() and not unknown else 1


if __name__ == "__main__":
    sys.exit(main())
