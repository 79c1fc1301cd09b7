"""The wheel in an empty environment: one package, which converts a recording there."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import PACKAGES, REPO

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
FIXTURE = REPO / "fixtures/xray/clang-19/fdr-c19-pie-pool-tsc.xray"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without compiled modules, which take a minute; `make dist` tries those."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for part in ("converter", "importers", "exporters"):
        shutil.copytree(REPO / part, source / part, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(REPO / name, source)
    pytest.importorskip("setuptools", reason="setuptools builds the wheel")
    done = subprocess.run(
        [*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)],
        capture_output=True,
        text=True,
        env=os.environ | {"TRACEFERRY_KERNELS": "0"},
    )
    if done.returncode and "No module named pip" in done.stderr:
        pytest.skip("no pip, which builds the wheel")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"traceferry", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
    assert {"traceferry/py.typed", "traceferry/importers/__init__.py", "traceferry/exporters/gecko.py"} <= set(names)


@pytest.mark.large
def test_an_empty_environment_converts_a_recording(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [*PIP, "--python", str(python), "install", "-q", "--no-compile", str(wheel)]
    installed = subprocess.run(install, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"what traceferry needs cannot be installed: {installed.stderr.strip().splitlines()[-1]}")
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    for package, folder in PACKAGES.items():
        for path in (each for each in (REPO / folder).rglob("*") if each.suffix in (".so", ".pyd")):
            shutil.copy(path, site.joinpath(*package.split("."), path.relative_to(REPO / folder)))
    # A page also needs the scripts that are in the package.
    for output in ("out.json.gz", "out.html"):
        command = [str(python), "-m", "traceferry", "convert", str(FIXTURE), "-o", output, "--quiet"]
        subprocess.run(command, check=True, cwd=tmp_path)
        assert (tmp_path / output).stat().st_size > 1000
