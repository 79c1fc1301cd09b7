"""Fuzzes the demangling of names. Run by `make fuzz`.

An input is names, a line each. A name that is taken for harmless is demangled in a thread with a small stack: it must
stay short. What is not is demangled in a process of its own, now and then: it must answer.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections.abc import Iterator

from common import ROOT, fuzz, imported

sys.path.insert(0, str(ROOT / "tests"))

from builders.mangled import NESTED, doubling

STACK = 1 << 20
# One in so many inputs starts a process.
APART = 64
NAMES = [
    "_ZN3geo5scaleERKNS_3VecEd",
    "_ZNSt6vectorIiSaIiEE9push_backEOi",
    "_Zli3_kmy",
    "_ZZN1A1fEvE1x",
    "_ZN1AC1ERKS_",
    "_ZNKSt3mapISsSt4pairIiSsESt4lessISsEE4findERKSs",
    "_Z1fIJicdEEvDpT_",
    "_ZN1fIXadL_Z1gvEEEvv",
    "_ZTI1A",
    "_ZGVZ1fvE1x",
    "_Z1fIiEDTcl1gfp_EET_",
    "_ZN12_GLOBAL__N_11fEv.cold",
    "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
    "_RNvC1a1b",
    "_RINvC1a1bTuuETB7_B7_EE",
    "__ZN1A1fEv",
    "_ZNSt10filesystem7__cxx114pathC2IA5_cS1_EERKT_NS1_6formatE",
    "_Z1fM1AFivE",
]


def seeds() -> Iterator[tuple[str, bytes]]:
    for nth, name in enumerate(NAMES):
        yield f"name-{nth}", name.encode()
    yield "all", "\n".join(NAMES).encode()
    for n in (2, 6, 30):
        yield f"doubling-{n}", doubling(n).encode()
    for kind, nested in NESTED.items():
        yield kind.replace(" ", "-"), nested(200).encode()


def one_input(data: bytes) -> None:
    from traceferry.symbolication import demangle

    names = data.decode("utf-8", "replace").split("\n")
    harmless = [name for name in names if demangle.is_harmless(name)]
    shown: list[str] = []

    def in_thread() -> None:
        shown.extend(map(demangle.demangled, harmless))

    threading.stack_size(STACK)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert len(shown) == len(harmless)
    assert all(len(text) <= demangle.OWN_OUTPUT for text in shown)
    of_all = demangle.Demangler()
    of_all.learn(names if zlib.crc32(data) % APART == 0 else harmless)
    for name in harmless:
        assert len(of_all(name)) <= max(demangle.MAX_GROWTH * len(name), len(name))


if __name__ == "__main__":
    imported(["traceferry.symbolication.demangle", "traceferry.symbolication.rust"])
    fuzz("demangle", seeds, one_input)
