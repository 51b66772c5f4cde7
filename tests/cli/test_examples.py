"""The examples at the end of the help pages, run as they stand."""

import hashlib
import shlex
from dataclasses import replace

import numpy as np
import pytest

from bagwise.cli import main
from bagwise.datasets import _registry, info
from test_docs import provide_files

#: Commands that read no file of the user's, and those that do: in an order in which files are made
#: before they are used.
WITHOUT_FILES = (
    "", "demo", "doctor", "datasets", "datasets list", "datasets show", "datasets fetch"
)  # fmt: skip
WITH_FILES = ("fit", "predict", "explain", "annotate", "cluster", "inspect", "pack")


def examples_of(command, capsys):
    capsys.readouterr()
    assert main([*command.split(), "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    *_, heading, first, second = out.rstrip().splitlines()
    assert heading.strip() == "Examples:"
    assert first.startswith("    bagwise ")
    assert second.startswith("    bagwise ")
    return [shlex.split(line)[1:] for line in (first, second)]


@pytest.fixture
def toy_musk(tmp_path, monkeypatch):
    """Work on the files of the documentation; put a small set in the place of musk1."""
    provide_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "musk1.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), offsets=[0, 2, 3], y=[0, 1])
    small = replace(
        info("musk1"),
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        n_bags=2,
        n_instances=3,
        n_features=2,
        label_counts=(1, 1),
    )
    entries = {**_registry.registry(), "musk1": small}
    monkeypatch.setattr(_registry, "registry", lambda: entries)
    monkeypatch.setenv("BAGWISE_DATA", str(folder))


def test_every_example_runs(toy_musk, tmp_path, capsys, monkeypatch):
    """Those of ``demo``, ``doctor`` and ``datasets``; `test_first_contact` runs the others."""
    monkeypatch.setattr("bagwise.cli._demo.METHODS", ("SIL", "MISVM"))  # `test_demo` has them all
    for command in WITHOUT_FILES:
        for example in examples_of(command, capsys):
            assert example[: len(command.split())] == command.split()
            code = main(example)
            assert code == 0, (example, capsys.readouterr().err)
            assert capsys.readouterr().out or "-o" in example
    made = {path.name for path in tmp_path.iterdir()}
    assert {"bagwise-demo.html", "seven.html"} <= made
    assert not [name for name in made if name.startswith(".")]


def test_all_commands_are_covered(capsys):
    from bagwise.cli._app import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    for registered in app.registered_groups:
        group = registered.typer_instance
        names |= {f"{group.info.name} {command.name}" for command in group.registered_commands}
    assert {"", "datasets", *names} == {*WITHOUT_FILES, *WITH_FILES}
