"""Runs a command as on another, empty machine: `python elsewhere.py ALLOWED -- ARGUMENTS`. It has another name and
kernel, and files that are not in the folders ALLOWED (separated by colons) or of Python itself are not there."""

import os
import platform
import sys
import sysconfig

ALLOWED = [os.path.realpath(path) for path in sys.argv[1].split(":")]
OWN = [sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), *sysconfig.get_paths().values(), "/dev/null"]
# What libraries of Python look at when they are imported.
OF_PYTHON = ("/proc/cpuinfo", "/proc/sys", "/proc/meminfo", "/etc/localtime", "/sys/devices", "/sys/fs/cgroup")


def _is_allowed(path: object) -> bool:
    if not isinstance(path, (str, bytes)):
        return True
    real = os.path.realpath(os.fsdecode(path))
    folders = (*ALLOWED, *map(os.path.realpath, OWN), *OF_PYTHON)
    return any(real == one or real.startswith(one + os.sep) for one in folders)


def _hide(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and not _is_allowed(arguments[0]):
        raise FileNotFoundError(2, "hidden", arguments[0])


if __name__ == "__main__":
    import traceferry.apps.cli as cli

    platform.node = lambda: "elsewhere"
    platform.release = lambda: "1.0"
    platform.machine = lambda: "s390x"
    sys.path[:] = [os.path.realpath(path) for path in sys.path if path]
    OWN.extend(sys.path)
    # The packages, whether they are installed or in the folders of the project.
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(cli.__file__)))))
    OWN.extend(os.path.join(root, name) for name in ("converter", "importers", "exporters", "traceferry"))
    sys.addaudithook(_hide)
    sys.exit(cli.main(sys.argv[3:]))
