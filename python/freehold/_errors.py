# SPDX-License-Identifier: MIT
"""Exceptions on their way from a worker to the program: they keep their type, their text and their attributes, also where pickle
alone would fail, because __init__ takes other arguments than Exception.__init__ got, an attribute cannot be pickled, or __str__ raises."""
import pickle

TYPE_CHECKING = False  # typing's, for a checker; workers start faster without that module
if TYPE_CHECKING:
    from typing import Any

    Apart = tuple["bytes | None", "bytes | None", list["bytes | None"], dict[str, bytes], str, "str | None", str]


def _try_dumps(value: object) -> "bytes | None":
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return None


def _text(error: BaseException) -> "str | None":
    try:
        return str(error)
    except Exception:
        return None


def take_apart(error: BaseException, trace: str) -> "Apart":
    """In the worker: the exception as pickle has it, and in pieces, of which those are None, or left out, that cannot be pickled."""
    kind = type(error)
    attributes = {name: data for name, value in vars(error).items() if (data := _try_dumps(value)) is not None}
    return (_try_dumps(error), _try_dumps(kind), [_try_dumps(each) for each in error.args], attributes,
            f"{kind.__module__}.{kind.__qualname__}", _text(error), trace)


def _as_pickled(whole: "bytes | None") -> "BaseException | None":
    try:
        error = pickle.loads(whole) if whole is not None else None
        return error if isinstance(error, BaseException) else None
    except Exception:
        return None


def _from_pieces(kind: "bytes | None", args: "list[bytes | None]", attributes: "dict[str, bytes]") -> "BaseException | None":
    """Without a call of its __init__."""
    try:
        if kind is None:
            return None
        type_: Any = pickle.loads(kind)
        values = tuple("(it cannot be pickled)" if each is None else pickle.loads(each) for each in args)
        error: BaseException = type_.__new__(type_, *values)
        error.args = values
        for name, value in attributes.items():
            vars(error)[name] = pickle.loads(value)
        return error
    except Exception:
        return None


def put_together(apart: "Apart") -> "tuple[BaseException, str]":
    """In the program: the exception, and its traceback's text."""
    whole, kind, args, attributes, name, text, trace = apart
    error = _as_pickled(whole)
    if error is None or _text(error) != text:
        pieces = _from_pieces(kind, args, attributes)
        if pieces is not None and (error is None or _text(pieces) == text):
            error = pieces
    return error if error is not None else RuntimeError(f"{name}: {text} (it cannot be pickled)"), trace
