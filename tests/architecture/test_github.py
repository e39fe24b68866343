"""What GitHub reads: workflows and templates, by GitHub's own schemas, and in agreement with the Makefile and the code.

The schemas come with check-jsonschema; nothing is fetched.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from chaos.sweeps.nightly import FAULT_SETS, SWARMS, suits
from loadgen.workloads import CATALOGUE
from tests.architecture.sources import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*"))
#: The jobs of docs/nightly.md, to be copied.
JOBS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8"), re.DOTALL)


@cache
def schema(name: str) -> Draft7Validator:
    """A schema of GitHub's, as check-jsonschema brings it."""
    path = distribution("check-jsonschema").locate_file(f"check_jsonschema/builtin_schemas/vendor/github-{name}.json")
    return Draft7Validator(json.loads(Path(str(path)).read_text(encoding="utf-8")))


def document(path: Path) -> dict[str, Any]:
    """A YAML file as GitHub reads it: ``on`` is a key there, and not the YAML 1.1 word for true."""
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in read.items()}


def wrong(name: str, what: dict[str, Any]) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in schema(name).iter_errors(what)]


def unbounded(workflow: dict[str, Any]) -> list[str]:
    """What gives a job more rights than reading, or more than an hour. A job's own rights replace the workflow's."""
    found = [] if workflow.get("permissions") == {"contents": "read"} else ["permissions"]
    for name, job in workflow["jobs"].items():
        found += [f"{name}.{key}" for key in ("permissions", "secrets") if key in job]
        found += [f"{name}.timeout-minutes"] if job.get("timeout-minutes", 360) > 60 else []
    return found


#: Contexts of expressions that are resolved here, and the functions and contexts that need not be.
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_REFERENCE = re.compile(r"(?<![\w.'-])([a-z]+)((?:\.[\w*-]+)+)")
_CONTEXTS = {"github": ("ref", "sha", "event_name", "run_id", "repository", "workspace"), "runner": ("temp", "os")}


def unresolved(workflow: dict[str, Any]) -> list[str]:
    """What expressions name that nothing defines: GitHub makes an empty text of it, without a word."""
    triggers = workflow["on"] if isinstance(workflow["on"], dict) else {}
    inputs = {*((triggers.get("workflow_dispatch") or {}).get("inputs") or {})}
    inputs |= {*((triggers.get("workflow_call") or {}).get("inputs") or {})}
    found = _missing({key: value for key, value in workflow.items() if key != "jobs"}, {"inputs": inputs})
    for job in workflow["jobs"].values():
        matrix = (job.get("strategy") or {}).get("matrix") or {}
        axes = {*matrix} - {"include", "exclude"}
        axes |= {key for each in matrix.get("include", []) for key in each}
        env = {*(workflow.get("env") or {}), *(job.get("env") or {})}
        env |= {key for step in job.get("steps", []) for key in step.get("env") or {}}
        steps = {step["id"] for step in job.get("steps", []) if "id" in step}
        found += _missing(job, {"inputs": inputs, "matrix": axes, "env": env, "steps": steps})
    return found


def _missing(part: Any, defined: dict[str, set[str]]) -> list[str]:
    known = {**{context: {*names} for context, names in _CONTEXTS.items()}, **defined}
    found = []
    for expression in _expressions(part):
        # what stands in quotes is a text
        for context, path in _REFERENCE.findall(re.sub(r"'[^']*'", "''", expression)):
            if path.split(".")[1] not in known.get(context, set()):
                found.append(f"{context}{path}")
    return found


def _expressions(part: Any, key: str = "") -> list[str]:
    if isinstance(part, dict):
        return [each for name, value in part.items() for each in _expressions(value, str(name))]
    if isinstance(part, list):
        return [each for value in part for each in _expressions(value)]
    # an if is an expression with or without its braces
    return _EXPRESSION.findall(str(part)) or ([str(part)] if key == "if" else [])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_one_by_the_schema(path: Path) -> None:
    """No key that GitHub does not know, limits of time and rights for every job, no name that nothing defines."""
    workflow = document(path)
    assert wrong("workflows", workflow) == []
    assert unbounded(workflow) == []
    assert unresolved(workflow) == []


@pytest.mark.parametrize(
    ("change", "is_unbounded", "names"),
    [
        ({"permissions": "write-all"}, True, []),
        ({"permissions": {"contents": "write"}}, True, []),
        ({"timeout-minutes": 90}, True, []),
        ({"env": {"A": "${{ matrix.fualts }}"}}, False, ["matrix.fualts"]),
        ({"env": {"A": "${{ inputs.minuets || '6' }}"}}, False, ["inputs.minuets"]),
        ({"if": "inputs.defcet"}, False, ["inputs.defcet"]),
        (
            {"steps": [{"run": "a ${{ steps.none.outputs.b }} ${{ env.NO }}"}]},
            False,
            ["steps.none.outputs.b", "env.NO"],
        ),
        ({"env": {"A": "${{ inputs.minutes || 'matrix.fualts' }}"}}, False, []),
    ],
    ids=str,
)
def test_a_wrong_workflow_is_found(change: dict[str, Any], is_unbounded: bool, names: list[str]) -> None:
    """Rights of a job's own, a job without an end, and names with a typo: the schema lets all of these pass."""
    workflow = document(GITHUB / "workflows" / "nightly-chaos.yml")
    workflow["jobs"] = {"chaos": {**workflow["jobs"]["chaos"], **change}}
    assert bool(unbounded(workflow)) == is_unbounded
    assert unresolved(workflow) == names


@pytest.mark.parametrize(
    "change",
    [
        {"runs_on": "ubuntu-latest"},
        {"steps": [{"name": "nothing is done"}]},
        {"steps": [{"uses": "a/b@v1", "run": "c"}]},
    ],
    ids=str,
)
def test_the_schema_refuses_what_github_would(change: dict[str, Any]) -> None:
    """A schema that takes anything would say nothing of ours."""
    workflow = document(GITHUB / "workflows" / "ci.yml")
    workflow["jobs"] = {"test": {**workflow["jobs"]["test"], **change}}
    assert wrong("workflows", workflow)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_template_is_one_by_the_schema(path: Path) -> None:
    """A form that GitHub cannot read is not offered to anybody, without a word."""
    assert wrong("issue-config" if path.name == "config.yml" else "issue-forms", document(path)) == []


def commands(name: str, job_name: str) -> list[str]:
    job = document(GITHUB / "workflows" / name)["jobs"][job_name]
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_runs_what_the_script_runs() -> None:
    """On pushes and pull requests: the make targets of .ci/run in their order; on the latter also the corpus."""
    script = re.findall(r"make --no-print-directory ([a-z-]+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert commands("ci.yml", "test") == [f"make {target}" for target in script]
    assert commands("ci.yml", "corpus") == ["make corpus"]
    jobs = document(GITHUB / "workflows" / "ci.yml")["jobs"]
    assert {name: job.get("if") for name, job in jobs.items()} == {
        "test": None,
        "corpus": "github.event_name == 'pull_request'",
    }
    assert set(document(GITHUB / "workflows" / "ci.yml")["on"]) == {"push", "pull_request"}


def test_the_night_goes_through_all_there_is() -> None:
    """The matrix names every fault set and every workload that it suits; its jobs call make, and show the summary."""
    workflow = document(GITHUB / "workflows" / "nightly-chaos.yml")
    job = workflow["jobs"]["chaos"]
    suited = {
        name: [each for each, workload in CATALOGUE.items() if suits(faults, workload)]
        for name, (faults, _) in FAULT_SETS.items()
    }
    everywhere = [name for name in suited if suited[name] == [*CATALOGUE]]
    some = [{"faults": name, "workload": each} for name in suited if name not in everywhere for each in suited[name]]
    matrix = dict(job["strategy"]["matrix"])
    assert matrix.pop("include", []) == some
    assert matrix == {"faults": [*everywhere, *SWARMS], "workload": [*CATALOGUE]}
    assert job["strategy"]["fail-fast"] is False
    first, second, shown, collected = commands("nightly-chaos.yml", "chaos")
    assert (first, second) == ("make setup", "make nightly")
    assert "summary.md" in shown and "GITHUB_STEP_SUMMARY" in shown
    assert "-m tests.integration.corpus results/nightly/tonight\n" in collected
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"setup", "nightly", "lint", "test", "corpus"} <= targets
    assert "sweep nightly --shrink $(SHRINK) $(ARGS)" in makefile and "SHRINK" in job["env"]
    uploads = [step for step in job["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert [step["if"] for step in uploads] == ["${{ !cancelled() }}", "failure()", "failure()"]
    whole = re.search(r"--out (\S+)", job["env"]["ARGS"])
    assert whole is not None and uploads[2]["with"]["path"] == whole[1]
    assert uploads[1]["with"]["path"].split() == [f"{whole[1]}/corpus.yaml", f"{whole[1]}/shrunk/*/*.*"]


@pytest.mark.parametrize("text", JOBS, ids=range(len(JOBS)))
def test_a_job_that_is_copied_is_whole(text: str) -> None:
    """docs/nightly.md: each block is a job as GitHub takes it, and what its steps call was checked out before."""
    workflow = {"on": "workflow_dispatch", **yaml.safe_load(text)}
    assert wrong("workflows", workflow) == []
    assert unresolved(workflow) == []
    steps = workflow["jobs"]["chaos"]["steps"]
    for at, step in enumerate(steps):
        before = [each.get("with", {}) for each in steps[:at] if each.get("uses", "").startswith("actions/checkout@")]
        ours = {each.get("path", ".") for each in before if each.get("repository", "").endswith("/gapless")}
        called = set(re.findall(r"(\S*)/\.venv/|make -C (\S+)", step.get("run", "")))
        assert {one or other for one, other in called} <= ours
        if " ./" in f" {step.get('run', '')}":
            assert {} in before, "its own repository is not there"


def test_templates_ask_for_the_evidence() -> None:
    """Whoever reports a run is asked for its RESULT lines and its directory; contributors are led to DEVELOPERS.md."""
    form = {each["id"]: each for each in document(GITHUB / "ISSUE_TEMPLATE" / "run.yml")["body"]}
    assert all(form[name]["validations"]["required"] for name in ("result", "run-directory"))
    for path in (GITHUB / "pull_request_template.md", ROOT / "CONTRIBUTING.md"):
        text = path.read_text(encoding="utf-8")
        assert "RESULT" in text and "run director" in text, path
    assert "](DEVELOPERS.md)" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
