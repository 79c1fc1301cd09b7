"""The categories of frames: what is whose code, and colours that tell it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.perf_data import KERNEL_MODE, PerfData
from support import load_checked

from traceferry.model import CATEGORY_COLORS, category_of_file
from traceferry.model.categories import (
    GENERATED_COLORS,
    IDLE,
    IDLE_COLOR,
    KERNEL,
    KERNEL_IDLE,
    LANGUAGE_COLORS,
    MACHINE_COLORS,
    NATIVE,
    OFF_CPU_COLORS,
    RUNTIME,
    SYSTEM,
)

FILES = {
    RUNTIME: [
        "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", "/usr/lib/jvm/temurin-25/lib/libjava.so",
        "/usr/bin/python3.11", "/home/me/.pyenv/bin/python3", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
        "/opt/node-v24/bin/node", "/home/me/node_modules/bun/bin/bun.exe", "/usr/bin/php8.2",
        "/usr/lib/php/20220829/opcache.so", "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "/usr/bin/ruby3.1",
        "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", "/usr/share/dotnet/shared/x/8.0.1/libcoreclr.so",
        "/x/libmozjs-136a1.so", "/x/site-packages/wasmtime/_libwasmtime.so", "/usr/bin/mono-sgen", "/usr/bin/luajit",
        "/usr/bin/pypy3.9", "/usr/lib/x86_64-linux-gnu/libpypy3.9-c.so", "/usr/bin/poly", "/usr/lib/R/bin/exec/R",
        "/usr/lib/swi-prolog/bin/x86_64-linux/swipl", "/usr/bin/racket", "/usr/bin/guile-3.0", "/usr/bin/qemu-aarch64",
        "/usr/bin/octave-cli-7.3.0", "/usr/lib/libR.so",
        "/usr/bin/perl", "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
        "/home/me/.pyenv/versions/3.12.1/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so",
    ],
    SYSTEM: [
        "/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1", "[vdso]",
        "[vdso32]",
        "/home/me/image/rootfs/libstdc++.so.6.0.30", "/lib/x86_64-linux-gnu/libpthread-2.31.so",
    ],
    NATIVE: [
        "/home/me/app", "/usr/bin/sort", "/usr/local/lib/libmine.so", "/opt/app/libcrypto_mine.so",
        "/home/me/venv/lib/python3.11/site-packages/fast.cpython-311-x86_64-linux-gnu.so", "/home/me/noded",
        "/home/me/libcurses.so", "/home/me/poly", "/home/me/R", "/home/me/ecl2", "/home/me/guiles",
        "/home/me/phpunit-runner", "", "//anon", "C:\\app.exe",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("category", "path"), [(category, path) for category, paths in FILES.items() for path in paths]
)
def test_whose_code_is_in_a_file(category: str, path: str) -> None:
    assert category_of_file(path) == category


def test_the_user_s_code_differs_from_the_runtime_s_and_the_system_s() -> None:
    machine = [MACHINE_COLORS[name] for name in (RUNTIME, SYSTEM, KERNEL)]
    assert len({*machine, *MACHINE_COLORS.values()}) == len(MACHINE_COLORS)
    assert not {*LANGUAGE_COLORS.values()} & {*MACHINE_COLORS.values()}
    assert not {GENERATED_COLORS["JIT"]} & ({*LANGUAGE_COLORS.values()} | {*MACHINE_COLORS.values()})
    tables = LANGUAGE_COLORS, MACHINE_COLORS, GENERATED_COLORS, OFF_CPU_COLORS, {IDLE: IDLE_COLOR}
    assert len(CATEGORY_COLORS) == sum(map(len, tables))


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("do_idle", True), ("pv_native_safe_halt", True), ("intel_idle_irq", True), ("acpi_safe_halt", True),
        ("mwait_idle_with_hints.constprop.0", True), ("cpuidle_enter_state", True), ("psci_cpu_suspend_enter", False),
        ("arch_cpu_idle", True), ("default_idle_call", True), ("poll_idle", True), ("schedule_idle", False),
        ("irqentry_exit", False), ("safe_halted", False),
    ],
)  # fmt: skip
def test_what_the_kernel_does_without_work(name: str, is_so: bool) -> None:
    assert bool(KERNEL_IDLE.fullmatch(name)) == is_so


def test_frames_of_a_recording_have_the_category_of_their_file(tmp_path: Path) -> None:
    data = PerfData().event().comm(7, 7, "app", ts=0)
    paths = ["/home/me/app", "/usr/bin/python3.11", "/usr/lib/libc.so.6"]
    for nth, path in enumerate(paths, start=1):
        data.mmap2(7, 7, nth << 20, 0x1000, 0, path, ts=0)
        data.sample(7, 7, nth, (nth << 20) + 0x10)
    data.mmap(
        -1, 0, 0xFFFF_FFFF_8100_0000, 0x1000000, 0xFFFF_FFFF_8100_0000, "[kernel.kallsyms]_text", misc=KERNEL_MODE
    )
    data.sample(7, 7, 9, 0xFFFF_FFFF_8100_0010, mode="kernel")
    (tmp_path / "perf.data").write_bytes(data.bytes())
    trace = load_checked(tmp_path / "perf.data")
    (samples,) = [thread.load(trace).samples for _, thread in trace.threads]
    rows = trace.frames["category"][trace.stacks["frame"][samples["stack"]]]
    names = [trace.strings[name] for name in trace.categories["name"][rows].tolist()]
    assert names == [NATIVE, RUNTIME, SYSTEM, KERNEL]
