"""The steps of action.yml: finds the baseline, compares, comments, stages what the next run compares with.

    python .ci/action.py baseline | compare | comment | stage

Inputs are environment variables, as action.yml names them; no value of them becomes a part of a command. Nothing but
Python's own library is needed, and gh where GitHub is asked.
https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import glob
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# What was written, by the name of the output.
OUTPUTS = {"html": "html", "firefox": "json.gz", "perfetto": "pftrace"}
GATE_FAILED = 3
# GitHub refuses comments of more than 65,536 characters.
LONGEST_COMMENT = 65_000
# The newest artifact of the default branch of this repository: a fork may have a branch of the same name.
NEWEST_RUN = (
    "[.artifacts[] | select(.expired | not) | .workflow_run"
    " | select(.head_branch == env.DEFAULT_BRANCH and .head_repository_id == .repository_id)][0].id // empty"
)


def lines(text: str) -> list[str]:
    """The lines of an input that are not empty."""
    return [line for line in text.splitlines() if line]


def found(patterns: Iterable[str]) -> list[str]:
    """Returns the files of patterns, one after the other; the name of a file is no pattern."""
    return [
        path
        for line in patterns
        for path in ([line] if os.path.exists(line) else sorted(glob.glob(line, recursive=True)))
    ]


@dataclass
class Job:
    """The runner's side of a step: what it is told, and the files in which it looks for answers."""

    env: Mapping[str, str]

    @property
    def temporary(self) -> Path:
        return Path(self.env["RUNNER_TEMP"])

    def annotate(self, kind: str, text: str) -> None:
        """Writes an annotation for each line: kind is notice, warning or error."""
        for line in text.splitlines():
            escaped = line.replace("%", "%25").replace("\r", "%0D")
            print(f"::{kind} title=traceferry::{escaped}", flush=True)

    def print_plainly(self, text: str) -> None:
        """Prints a text in which the runner looks for no commands."""
        token = f"traceferry-{secrets.token_hex(16)}"
        print(f"::stop-commands::{token}\n{text}\n::{token}::", flush=True)

    def put(self, **outputs: str) -> None:
        """Sets outputs of the step."""
        end = f"end-{secrets.token_hex(16)}"
        with open(self.env["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
            for name, value in outputs.items():
                file.write(f"{name}<<{end}\n{value}\n{end}\n")

    def summarize(self, text: str) -> None:
        """Adds to the summary of the job."""
        with open(self.env["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, env=dict(self.env), check=False, errors="replace"
        )


# ---------------------------------------------------------------- the steps


def has_github_cli(job: Job, effect: str) -> bool:
    """Whether gh is there, which runners of one's own may lack; otherwise an annotation tells the effect."""
    if shutil.which("gh", path=job.env.get("PATH")):
        return True
    job.annotate("warning", f"gh, GitHub's command line tool, is not installed on this runner: {effect}")
    return False


def baseline(job: Job) -> int:
    """Downloads what the last run on the default branch stored, if there is any."""
    env = job.env
    if not has_github_cli(job, "the baseline cannot be downloaded, and nothing is compared"):
        return 0
    answer = job.run(
        "gh", "api", "-X", "GET", f"repos/{env['GITHUB_REPOSITORY']}/actions/artifacts",
        "-f", f"name={env['ARTIFACT']}", "-f", "per_page=100", "--jq", NEWEST_RUN,
    )  # fmt: skip
    run = answer.stdout.strip() if answer.returncode == 0 else ""
    if not run:
        job.annotate("notice", "there is no baseline yet: the next run on the default branch stores one")
        return 0
    into = job.temporary / "traceferry-base"
    done = job.run(
        "gh", "run", "download", run, "--repo", env["GITHUB_REPOSITORY"], "--name", env["ARTIFACT"], "--dir", str(into)
    )
    if done.returncode:
        job.annotate("warning", f"the baseline of run {run} could not be downloaded")
    return 0


def sides(job: Job) -> list[str] | None:
    """Returns the options that name both sides of the comparison; None where there is nothing to compare with."""
    env = job.env
    symbols = lines(env["SYMBOLS"])
    new = [f"--new={line}" for line in lines(env["RECORDINGS"])]
    if env["BASELINE"] == "none":
        return None
    if env["BASELINE"] != "artifact":
        base = [f"--base={line}" for line in lines(env["BASELINE"])]
        return [*base, *new, *(f"--symbols={line}" for line in symbols)]
    stored = job.temporary / "traceferry-base"
    if not (stored / "recordings").is_dir():
        return None
    of_base = [f"--base-symbols={stored / 'symbols'}"] if (stored / "symbols").is_dir() else []
    return [f"--base={stored / 'recordings' / '*'}", *new, *(f"--new-symbols={line}" for line in symbols), *of_base]


def compare(job: Job) -> int:
    """Compares, or without a baseline converts the first recording; its status is an output, for the step `gate`."""
    env, output = job.env, Path(job.env["OUTPUT"])
    output.mkdir(parents=True, exist_ok=True)
    options = sides(job)
    name = "recording" if options is None else "comparison"
    path = {key: output / f"{name}.{suffix}" for key, suffix in OUTPUTS.items()}
    result = output / f"{name}.json"
    gates = [f"--fail-on={line}" for line in lines(env["FAIL_ON"])]
    if options is None:
        status, messages = check_gates(job, gates)
        if status == 0:
            status, messages = convert_first(job, path)
        verdict = "none"
    else:
        done = job.run(
            env["TRACEFERRY"], "compare", *options, *gates, *["--strict"] * (env["STRICT"] == "true"), "--quiet",
            "--json", str(result), "--markdown", str(output / f"{name}.md"), *(f"-o{each}" for each in path.values()),
        )  # fmt: skip
        status, messages, verdict = done.returncode, done.stderr, ""
        if status in (0, GATE_FAILED):
            verdict = json.loads(result.read_text("utf-8"))["verdict"]
            job.summarize((output / f"{name}.md").read_text("utf-8"))
    job.print_plainly(messages)
    if status not in (0, GATE_FAILED):
        verdict = "error"
        indented = "".join(f"    {line}\n" for line in messages.splitlines())
        job.summarize(f"## The recordings could not be compared\n\n{indented}")
    job.annotate("warning" if status == 0 else "error", messages)
    written = {key: str(each) if each.exists() else "" for key, each in path.items()}
    job.put(verdict=verdict, status=str(status), **written, json="" if options is None else str(result))
    return 0


def check_gates(job: Job, gates: list[str]) -> tuple[int, str]:
    """Compares the recordings with themselves, so that a gate that is misspelt, or is of nothing that they have, fails
    now and not with the first baseline. Returns the status and the messages of the command, 0 where there is none."""
    if not gates:
        return 0, ""
    both = [f"--{side}={line}" for side in ("base", "new") for line in lines(job.env["RECORDINGS"])]
    symbols = [f"--symbols={line}" for line in lines(job.env["SYMBOLS"])]
    done = job.run(job.env["TRACEFERRY"], "compare", *both, *symbols, *gates, "--quiet")
    return (0, "") if done.returncode in (0, GATE_FAILED) else (done.returncode, done.stderr)


def convert_first(job: Job, path: Mapping[str, Path]) -> tuple[int, str]:
    """Converts the first recording. Returns the status and the messages of the command."""
    first = next((os.path.abspath(each) for each in found(lines(job.env["RECORDINGS"]))), job.env["RECORDINGS"])
    symbols = [f"--symbols={line}" for line in lines(job.env["SYMBOLS"])]
    report = path["html"].with_suffix(".report.json")
    for each in path.values():
        done = job.run(
            job.env["TRACEFERRY"], "convert", *symbols, f"-o{each}", "--report", str(report), "--quiet", "--", first
        )
        if done.returncode:
            return done.returncode, done.stderr
    losses = [
        "- {severity}: {title}, {count} times\n".format(**issue)
        for issue in json.loads(report.read_text("utf-8"))["issues"]
        if issue["severity"] != "info"
    ]
    job.summarize(
        "## No baseline yet\n\nThe next run is compared with this one, once it is on the default branch.\n\n"
        + "".join(losses)
    )
    return 0, done.stderr


def comment(job: Job) -> int:
    """Writes the comparison as a comment on the pull request, or renews the one that is there. A run for a fork has no
    token that may write: then the summary of the job alone has it."""
    env = job.env
    text = Path(env["OUTPUT"]) / "comparison.md"
    if not text.is_file():
        return 0
    if env["HEAD_REPOSITORY"] != env["GITHUB_REPOSITORY"]:
        job.annotate("notice", "no comment: the pull request is of a fork; the summary of the job has the comparison")
        return 0
    if not has_github_cli(job, "no comment; the summary of the job has the comparison"):
        return 0
    # One comment for each artifact, that is for each use of the action.
    mark = f"<!-- traceferry: {re.sub(r'[^A-Za-z0-9_.]', '_', env['ARTIFACT'])} -->"
    body = job.temporary / "traceferry-comment.md"
    body.write_text(f"{mark}\n{text.read_text('utf-8')}"[:LONGEST_COMMENT], "utf-8")
    issues = f"repos/{env['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{int(env['PULL_REQUEST'])}/comments"
    mine = f'.[] | select(.user.type == "Bot" and (.body | startswith("{mark}"))) | .id'
    there = job.run("gh", "api", "--paginate", comments, "--jq", mine)
    number = next(iter(there.stdout.split()), "") if there.returncode == 0 else ""
    where = ("-X", "PATCH", f"{issues}/comments/{number}") if number else ("-X", "POST", comments)
    done = job.run("gh", "api", *where, "-F", f"body=@{body}", "--silent")
    if done.returncode:
        job.annotate("notice", "no comment: the workflow's token may not write it (permissions: pull-requests: write)")
    return 0


def stage(job: Job) -> int:
    """Copies recordings and symbols to where the artifact is made of. It takes no file names with special characters:
    recordings are numbered."""
    folder = job.temporary / "traceferry-stage"
    shutil.rmtree(folder, ignore_errors=True)
    for part, patterns in (("recordings", job.env["RECORDINGS"]), ("symbols", job.env["SYMBOLS"])):
        (folder / part).mkdir(parents=True)
        for nth, path in enumerate(found(lines(patterns))):
            name = re.sub(r"[^\w.+-]", "_", os.path.basename(os.path.abspath(path)))
            target = folder / part / (f"{nth:04}-{name}" if part == "recordings" else name)
            if os.path.isdir(path):
                shutil.copytree(path, target)
            else:
                shutil.copy(path, target)
    return 0


STEPS = {"baseline": baseline, "compare": compare, "comment": comment, "stage": stage}

if __name__ == "__main__":
    sys.exit(STEPS[sys.argv[1]](Job(os.environ)))
