"""``--nodes``: the form of the file, and a process that is killed, paused and started by pid file and by commands."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil
import pytest

from chaos.conductor import nodes
from chaos.conductor.nodes import ForeignNodes
from chaos.conductor.nodes_file import NodesError, parse
from chaos.conductor.starting import StartFailure
from chaos.faults.breakable import ProcessLife


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "line 1"),
        ("{}", "it needs 'nodes'"),
        ("nodes: {}", "it needs 'nodes'"),
        ("node: {1: {}}\nnodes: {1: {}}", "it has no 'node'"),
        ("nodes: {a: {}}", "'a' is not a broker's id"),
        ("nodes: {1: {pidfile: x}}", "nodes.1 has no 'pidfile'; it takes pid_file, kill"),
        ("nodes: {1: {pid_file: 5}}", "nodes.1.pid_file must be text"),
        ("nodes: {1: {start: x}}", "without a pid_file it needs 'alive'"),
        ("nodes: {1: {start: x, alive: y}}", "without a pid_file it needs 'kill', 'pause', 'resume'"),
        ("nodes: {1: {pid_file: x}}", "it needs 'start'"),
    ],
)
def test_a_wrong_file_is_refused(text, why):
    """One line says which field is wrong."""
    with pytest.raises(NodesError, match=why):
        parse(text)


def test_commands_are_shared():
    """Commands for all nodes have each broker's id in them; a node's own come first."""
    found = parse(
        "commands: {kill: 'docker kill k{id}', pause: p, resume: r, start: 'docker start k{id}', alive: a}\n"
        "nodes: {1: , 7: {kill: other}}"
    )
    assert (found[1].kill, found[7].kill) == ("docker kill k1", "other")
    assert (found[1].start, found[7].start) == ("docker start k1", "docker start k7")


@pytest.fixture
def node(tmp_path):
    """A broker that sleeps, with its pid in a file, and started again by a command."""
    pid_file = tmp_path / "pid"
    program = tmp_path / "sleeper.py"
    program.write_text(
        f"import os, time\nwith open({str(pid_file)!r}, 'w') as f: f.write(str(os.getpid()))\ntime.sleep(60)"
    )
    (tmp_path / "nodes.yaml").write_text(
        f"nodes:\n  1: {{pid_file: {pid_file}, start: '{sys.executable} {program}'}}\n"
    )
    process = ForeignNodes.of(str(tmp_path / "nodes.yaml")).process(1)
    yield process
    process.kill()


def test_a_process_is_handled_by_its_pid_file(node):
    """It is started, paused, continued and killed, each seen when the call returns; and it comes back as another."""
    assert not node.is_running()
    node.start()
    first = node.pid
    assert node.is_running() and not node.is_suspended()
    node.suspend()
    assert node.is_suspended() and node.is_running()
    node.resume()
    node.kill()
    assert not node.is_running()
    node.start()
    assert node.is_running() and node.pid != first


def test_a_process_is_handled_by_commands(tmp_path):
    """Each command does its part; one that fails is an error that names it."""
    flag = tmp_path / "runs"
    flag.touch()
    text = (
        f"nodes:\n  1: {{kill: rm {flag}, pause: 'true', resume: 'true', start: touch {flag}, alive: test -e {flag}}}\n"
    )
    (tmp_path / "n.yaml").write_text(text)
    process = ForeignNodes.of(str(tmp_path / "n.yaml")).process(1)
    assert process.is_running() and process.pid == -1
    process.suspend()
    assert process.is_suspended()
    process.resume()
    assert not process.is_suspended()
    process.kill()
    assert not process.is_running()
    with pytest.raises(OSError, match=r"'rm .*' exited with status 1"):
        process.kill()
    process.start()
    assert process.is_running()


def test_a_broker_that_no_one_described_runs():
    """Without --nodes nothing is known of a broker's process but that it runs, and nothing starts it."""
    process = ForeignNodes.of(None).process(3)
    assert process.is_running() and process.pid == -1 and process.wait(0) is None
    with pytest.raises(StartFailure, match="--nodes has no 'start'"):
        process.start()


def test_what_is_started_is_no_child_of_the_run(node):
    """It has none of the marks by which a run ends what is its own."""
    node.start()
    environment = subprocess.run(
        ["cat", f"/proc/{node.pid}/environ"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    assert not [each for each in environment if each.startswith("GAPLESS_")]


def by_alive(tmp_path, alive, **more):
    """The file of one broker that is handled by commands, of which these are given."""
    said = {"kill": "true", "pause": "true", "resume": "true", "start": "true", "alive": alive, **more}
    path = tmp_path / "n.yaml"
    path.write_text(json.dumps({"nodes": {1: said}}).replace('"1"', "1"))
    return str(path)


def test_a_command_that_tells_nothing_leaves_it_open_whether_the_broker_runs(tmp_path, monkeypatch):
    """Statuses say that it runs or not; a command that does not end in time, is not found or does not reach the
    broker's machine says neither. None of them ends the run."""
    monkeypatch.setattr(nodes, "ALIVE_S", 0.3)
    gone = tmp_path / "gone"
    for alive, life in (
        ("true", ProcessLife.RUNS),
        ("false", ProcessLife.ENDED),
        ("sh -c 'exit 7'", ProcessLife.ENDED),
        ("sleep 20", ProcessLife.UNKNOWN),
        ("sh -c 'sleep 20 | cat'", ProcessLife.UNKNOWN),
        (str(gone), ProcessLife.UNKNOWN),
        (f"sh -c {gone}", ProcessLife.UNKNOWN),
        ("sh -c 'exit 255'", ProcessLife.UNKNOWN),
    ):
        look = ForeignNodes.of(by_alive(tmp_path, alive)).process(1).look()
        assert look.life is life, alive
        assert bool(look.doubt) is (life is ProcessLife.UNKNOWN), alive


def test_a_command_that_does_not_end_in_time_is_an_error_that_names_it(tmp_path, monkeypatch):
    """What cannot be carried out is an error of the system's kind, whatever the reason, and leaves no process."""
    monkeypatch.setattr(nodes, "COMMAND_S", 0.3)
    pid = tmp_path / "pid"
    slow = f"sh -c 'echo $$ > {pid}; sleep 20'"
    process = ForeignNodes.of(by_alive(tmp_path, "true", pause=slow, kill=str(tmp_path / "gone"))).process(1)
    with pytest.raises(OSError, match=r"took longer than 0\.3 s"):
        process.suspend()
    assert not psutil.pid_exists(int(pid.read_text()))
    with pytest.raises(OSError, match="gone"):
        process.kill()


def test_a_file_whose_commands_cannot_work_is_refused(tmp_path):
    """Before anything starts: a command that is not there, and one that says that a broker of the cluster is dead."""
    ForeignNodes.of(by_alive(tmp_path, "true")).check([1])
    for more, why in (
        ({"alive": "no-such-tool ps"}, "nodes.1.alive: there is no command 'no-such-tool'"),
        ({"kill": "no-such-tool"}, "nodes.1.kill: there is no command 'no-such-tool'"),
        ({"alive": "false"}, "broker 1 does not run, says its alive command: 'false'; but it is in the cluster"),
        ({"alive": "sh -c 'exit 127'"}, "broker 1: 'sh .*' exited with status 127"),
    ):
        with pytest.raises(NodesError, match=why):
            ForeignNodes.of(by_alive(tmp_path, **{"alive": "true", **more})).check([1])
    with pytest.raises(NodesError, match=r"nodes.1.start: No closing quotation"):
        ForeignNodes.of(by_alive(tmp_path, "true", start="sh -c 'x"))
    (tmp_path / "p.yaml").write_text(f"nodes: {{1: {{pid_file: {tmp_path}/none, start: 'true'}}}}")
    with pytest.raises(NodesError, match="broker 1 does not run, says its pid_file"):
        ForeignNodes.of(str(tmp_path / "p.yaml")).check([1])
