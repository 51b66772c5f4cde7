import json

import numpy as np

import bagwise
from bagwise.cli import main


def test_json(capsys, monkeypatch, tmp_path):
    np.savez(tmp_path / "musk1.npz", X=np.zeros(1))
    monkeypatch.setenv("BAGWISE_DATA", str(tmp_path))
    monkeypatch.setenv("BAGWISE_NUM_THREADS", "3")
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    assert answer["versions"]["bagwise"] == bagwise.__version__
    assert answer["versions"]["numpy"] == np.__version__
    assert answer["threads"]["used"] == 3
    assert answer["blas"]
    assert answer["data"]["sets"] == ["musk1"]
    assert answer["data"]["embedded"] == {"digits": True}
    assert answer["numba"]["works"]


def test_text_names_problems(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("BAGWISE_DATA", str(tmp_path / "nowhere"))
    assert main(["doctor"]) == 0
    out, _ = capsys.readouterr()
    assert "is not a folder" in out
    for part in ("python", "platform", "threads", "BLAS", "numba cache", "data"):
        assert f"\n{part}" in f"\n{out}"


def test_missing_package_is_a_problem(capsys, monkeypatch):
    from bagwise.cli import _doctor

    real = _doctor.version

    def lose(name):
        if name == "clarabel":
            raise _doctor.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(_doctor, "version", lose)
    assert main(["doctor", "--json"]) == 0
    assert "clarabel is not installed" in json.loads(capsys.readouterr().out)["problems"]
