"""A folder to work in, with the files that the examples of the help pages speak of."""

import csv
import os

import numpy as np
import pytest


def write_molecules(path, n_bags=24, seed=0):
    """Write molecules of three conformers; active ones have a conformer far from the others."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["molecule", "active", "x1", "x2"])
        for i in range(n_bags):
            conformers = rng.normal(size=(3, 2))
            conformers[0] += 8 * (i % 2)
            writer.writerows([f"m{i:02}", i % 2, *row] for row in conformers.tolist())


def write_photos(path):
    """Write photos with lists of names; each person's faces are near a corner of their own."""
    corners = {"Ann": (0.0, 0.0), "Bob": (9.0, 0.0), "Cy": (0.0, 9.0)}
    lists = [["Ann", "Bob"], ["Bob", "Cy"], ["Ann", "Cy"]] * 2 + [["Ann"], ["Bob"], ["Cy"]] * 6
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["bag", "labels", "instance", "instance_label", "x1", "x2"])
        for i, names in enumerate(lists):
            for k, name in enumerate(names):
                face = np.array(corners[name]) + rng.normal(size=2)
                writer.writerow([f"p{i:02}", ";".join(names), f"face {k}", name, *face.tolist()])


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_molecules(folder / "molecules.csv")
    write_photos(folder / "photos.csv")
    return folder


@pytest.fixture
def workshop(files, tmp_path, monkeypatch):
    """Work in an empty folder with the files; no data set is on this machine."""
    for file in files.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def bagwise(capsys):
    """Run a command line; returns its exit code and what it wrote."""
    from bagwise.cli import main

    def run(line, *more):
        capsys.readouterr()
        code = main([*line.split(), *map(os.fspath, more)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def refused(bagwise):
    """Run a command line that must end with code 2, no output and one line, and return it."""

    def run(line, *more):
        code, out, err = bagwise(line, *more)
        last = err.splitlines()[-1]
        assert (code, out) == (2, "")
        assert last.startswith("bagwise: ")
        assert err.count("bagwise: ") == 1
        assert "Traceback" not in err
        return last

    return run
