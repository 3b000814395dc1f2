"""The environment variables of runs of several processes: what is wrong is named before anything starts."""

import json
import socket

import pytest

from kzoo.errors import UserError
from kzoo.training import clusters
from kzoo.training.clusters import KERAS_PROCESSES, check_addresses, keras_processes, tf_cluster

TWO = ["127.0.0.1:2222", "127.0.0.1:2223"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0)


def test_a_machine_may_get_its_name_later(monkeypatch, capsys):
    monkeypatch.setattr(clusters, "PATIENCE", 60)
    monkeypatch.setattr(clusters.time, "sleep", lambda seconds: None)
    answers = [socket.gaierror(socket.EAI_NONAME, "not known"), []]

    def getaddrinfo(host, port):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(clusters.socket, "getaddrinfo", getaddrinfo)
    check_addresses(["worker-1:2222"], "TF_CONFIG")
    assert capsys.readouterr().out == "TF_CONFIG: waiting for worker-1:2222, which is not known yet\n"


def set_tf(monkeypatch, cluster, task):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        ({"worker": TWO}, {"type": "worker", "index": 1}, (2, 1)),
        ({"chief": TWO[:1], "worker": TWO[1:]}, {"type": "worker", "index": 0}, (2, 1)),
        ({"chief": TWO[:1], "worker": TWO[1:]}, {"type": "chief", "index": 0}, (2, 0)),
    ],
)
def test_a_worker_knows_its_number(cluster, task, expected, monkeypatch):
    set_tf(monkeypatch, cluster, task)
    assert tf_cluster() == expected


@pytest.mark.parametrize(
    ("cluster", "task", "message"),
    [
        ({}, {"type": "worker", "index": 0}, "lacks cluster.worker"),
        ({"ps": TWO}, {"type": "ps", "index": 0}, "lacks cluster.worker"),
        ({"worker": TWO, "ps": TWO}, {"type": "worker", "index": 0}, "cluster.ps has no part"),
        (
            {"worker": TWO[0]},
            {"type": "worker", "index": 0},
            "cluster.worker is '127.0.0.1:2222', not a list",
        ),
        (
            {"worker": ["127.0.0.1"]},
            {"type": "worker", "index": 0},
            "'127.0.0.1', which is not an address HOST",
        ),
        ({"worker": [TWO[0]] * 2}, {"type": "worker", "index": 0}, "has 127.0.0.1:2222 twice"),
        ({"worker": ["no.such.host.invalid:1"]}, {"type": "worker", "index": 0}, "no such host"),
        ({"worker": TWO}, {"type": "worker"}, "lacks task.type or task.index"),
        ({"worker": TWO}, {"type": "worker", "index": "0"}, "task.index is '0', not a whole number"),
        (
            {"worker": TWO},
            {"type": "worker", "index": 2},
            "task.index is 2, but cluster.worker has 2 addresses",
        ),
        ({"worker": TWO}, {"type": "chief", "index": 0}, "task.type is 'chief', but cluster has worker"),
        (
            {"worker": [TWO[0], "192.0.2.1:2222"]},  # an address for documentation, nobody's
            {"type": "worker", "index": 1},
            "this worker is 192.0.2.1:2222, but this machine is 127.0.0.1:2222, number 0",
        ),
    ],
)
def test_a_wrong_cluster_is_named(cluster, task, message, monkeypatch):
    set_tf(monkeypatch, cluster, task)
    with pytest.raises(UserError, match=message) as error:
        tf_cluster()
    assert str(error.value).startswith("TF_CONFIG")


def test_addresses_of_ipv6_stand_in_brackets():
    check_addresses(["[::1]:2222", "127.0.0.1:2222"], "here")
    with pytest.raises(UserError, match=r"here: a\.\.b:1: no such host"):
        check_addresses(["a..b:1"], "here")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs the environment variable TF_CONFIG"),
        ("{", "TF_CONFIG is not JSON"),
        ("[" * 100_000, "TF_CONFIG is not JSON"),
        ("1" * 5_000, "TF_CONFIG is not JSON"),
    ],
)
def test_no_cluster(text, message, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match=message):
        tf_cluster()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("", "", ""), None),
        (("127.0.0.1:1,127.0.0.1:2", "2", "1"), (2, 1)),
        (("127.0.0.1:1", "8", "7"), (8, 7)),  # the first one's address is enough
    ],
)
def test_keras_processes(values, expected, monkeypatch):
    for name, value in zip(KERAS_PROCESSES, values, strict=True):
        monkeypatch.setenv(name, value)
    assert keras_processes() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("127.0.0.1:1", "", ""), "without KERAS_DISTRIBUTION_NUM_PROCESSES, KERAS_DISTRIBUTION_PROCESS_ID"),
        (("127.0.0.1:1", "two", "0"), "NUM_PROCESSES is 'two', not a whole number"),
        (("127.0.0.1:1", "2", "2"), "PROCESS_ID is 2, but there are 2 processes"),
        (("127.0.0.1:1,127.0.0.1:2", "3", "0"), "2 addresses for 3 processes"),
        (("127.0.0.1", "1", "0"), "JOB_ADDRESSES has '127.0.0.1', which is not an address HOST:PORT"),
    ],
)
def test_wrong_keras_processes_are_named(values, message, monkeypatch):
    for name, value in zip(KERAS_PROCESSES, values, strict=True):
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        keras_processes()
