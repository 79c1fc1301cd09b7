"""The three questions that the Firefox Profiler asks a symbol server: names of addresses, source texts, instructions.

Sources: https://github.com/mstange/samply/blob/main/API.md and the Tecken symbolication API, version 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from traceferry.apps.view.code import TraceCode
from traceferry.apps.view.disassembly import MACHINES
from traceferry.common.errors import UsageError
from traceferry.files.source_files import text_in_roots
from traceferry.model import NativeFunction, Trace

# In all jobs of one request.
MAX_ADDRESSES = 1 << 20

Answer = dict[str, Any]


class SymbolServer:
    """Answers about one trace. source_roots: folders whose files may be shown, absolute and without links."""

    def __init__(self, trace: Trace, source_roots: Sequence[str] = ()) -> None:
        # Frames and sources are made when they are asked for.
        self._trace = trace.opened()
        self._code = TraceCode(self._trace)
        self._source_roots = source_roots

    def answer(self, question: str, body: bytes) -> Answer:
        """Returns the answer, or `{"error": ...}` with a sentence. question: a key of QUESTIONS."""
        import orjson

        try:
            request = orjson.loads(body)
            if not isinstance(request, dict):
                raise UsageError("the request is not a JSON object")
            return QUESTIONS[question](self, request)
        except UsageError as error:
            return {"error": str(error)}
        except orjson.JSONDecodeError as error:
            return {"error": f"the request is not valid JSON: {error}"}

    # ------------------------------------------------------------ /symbolicate/v5

    def symbolicate(self, request: Answer) -> Answer:
        jobs = _list(request["jobs"], "jobs") if "jobs" in request else [request]
        n_addresses = sum(len(_list(stack, "stack")) for job in jobs for stack in _list(_get(job, "stacks"), "stacks"))
        if n_addresses > MAX_ADDRESSES:
            raise UsageError(f"{n_addresses} addresses in one request are too many; at most {MAX_ADDRESSES}")
        return {"results": [self._job(job) for job in jobs]}

    def _job(self, job: Any) -> Answer:
        modules = [_module(one) for one in _list(_get(job, "memoryMap"), "memoryMap")]
        stacks = [[_location(frame) for frame in _list(stack, "stack")] for stack in _get(job, "stacks")]
        asked: dict[int, list[int]] = {}
        for stack in stacks:
            for module, address in stack:
                asked.setdefault(module, []).append(address)
        libs = [self._code.libs.get(module) for module in modules]
        found: dict[tuple[int, int], NativeFunction | None] = {}
        for module, addresses in asked.items():
            lib = libs[module] if 0 <= module < len(libs) else None
            if lib is not None:
                distinct = list(dict.fromkeys(addresses))
                functions = self._code.functions_at(lib, distinct)
                found |= {(module, address): f for address, f in zip(distinct, functions, strict=True)}
        ids = [f"{name}/{debug_id}" for name, debug_id in modules]
        return {
            "found_modules": {one: lib is not None for one, lib in zip(ids, libs, strict=True)},
            "stacks": [
                [_frame(nth, modules, *key, found.get(key)) for nth, key in enumerate(stack)] for stack in stacks
            ],
        }

    # ------------------------------------------------------------ /source/v1

    def source(self, request: Answer) -> Answer:
        path, preferred = _text(request, "file"), list[int]()
        if "debugName" in request:  # which our page leaves out of sources without machine code
            lib = self._code.lib_of(_text(request, "debugName"), _text(request, "debugId"))
            preferred = self._code.sources_at(lib, _number(request, "moduleOffset"))
        text = _source_text(self._trace, path, preferred, self._source_roots)
        return {"symbolsLastModified": None, "sourceLastModified": None, "file": path, "source": text}

    # ------------------------------------------------------------ /asm/v1

    def assembly(self, request: Answer) -> Answer:
        lib = self._code.lib_of(_text(request, "debugName"), _text(request, "debugId"))
        to_end = request.get("continueUntilFunctionEnd") is True
        listing = self._code.listing(lib, _number(request, "startAddress"), _number(request, "size"), to_end)
        return {
            "startAddress": f"{listing.start:#x}",
            "size": f"{listing.size:#x}",
            "arch": listing.arch,
            "syntax": [MACHINES[listing.arch].syntax],
            "instructions": [[offset, text] for offset, _, text in listing.instructions],
        }


QUESTIONS: dict[str, Callable[[SymbolServer, Answer], Answer]] = {
    "/symbolicate/v5": SymbolServer.symbolicate,
    "/source/v1": SymbolServer.source,
    "/asm/v1": SymbolServer.assembly,
}


def _frame(
    nth: int, modules: Sequence[tuple[str, str]], module: int, address: int, function: NativeFunction | None
) -> Answer:
    answer: Answer = {"frame": nth, "module_offset": f"{address:#x}"}
    if 0 <= module < len(modules):
        answer["module"] = modules[module][0]
    if function is None:
        return answer
    (name, _, _), *_ = function.frames
    answer |= {"function": name, "function_offset": f"{address - function.start:#x}"}
    if function.size:
        answer["function_size"] = f"{function.size:#x}"
    # The line that runs is that of the innermost frame; each caller has the line of its call.
    answer |= _line_of(function.frames[0])
    inlined = [{"function": name} | _line_of(frame) for frame in function.frames[:0:-1] for name in (frame[0],)]
    return answer | ({"inlines": inlined} if inlined else {})


def _line_of(frame: tuple[str, str, int]) -> Answer:
    _, source, line = frame
    return ({"file": source} if source else {}) | ({"line": line} if line else {})


def _source_text(trace: Trace, path: str, preferred: Sequence[int], roots: Sequence[str]) -> str:
    """Returns the text of a source file. preferred: rows of the trace's sources that are to be taken before others of
    this path; roots: the user's folders, absolute and without links.

    Raises UsageError where the trace does not name the file, or there is no text of it.
    """
    paths, texts = trace.sources["path"].tolist(), trace.sources["text"].tolist()
    rows = [row for row in (*preferred, *range(len(paths))) if trace.strings[paths[row]] == path]
    if not rows:
        raise UsageError(f"the recording does not name a source file {path}")
    text = next((texts[row] for row in rows if texts[row] >= 0), -1)
    if text >= 0:
        return trace.texts[text]
    found = text_in_roots(path, roots)
    if found is None:
        where = f"it is not in {', '.join(roots)}" if roots else "give its folder with --source-root"
        raise UsageError(f"the recording does not hold the text of {path}; {where}")
    return found[1]


# ---------------------------------------------------------------- what a request holds


def _get(request: Any, key: str) -> Any:
    if not isinstance(request, dict) or key not in request:
        raise UsageError(f"the request has no {key}")
    return request[key]


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{what} is not a list")
    return value


def _text(request: Answer, key: str) -> str:
    value = _get(request, key)
    if not isinstance(value, str):
        raise UsageError(f"{key} is not a text")
    return value


def _number(request: Answer, key: str) -> int:
    try:
        value = int(_text(request, key), 16)
    except ValueError:
        raise UsageError(f"{key} is not a hexadecimal number") from None
    if not 0 <= value < 1 << 63:
        raise UsageError(f"{key} is not an address")
    return value


def _module(value: Any) -> tuple[str, str]:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return value[0], value[1]
    raise UsageError("an entry of memoryMap is not a pair of a name and an id")


def _location(value: Any) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        module, address = value
        if -1 <= module < 1 << 31 and 0 <= address < 1 << 63:
            return module, address
    raise UsageError("a frame is not a pair of a module and an address")
