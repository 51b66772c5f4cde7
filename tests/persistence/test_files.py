"""Models that earlier versions saved load and answer as they did, or are refused with a reason.

The files are made by ``make_files.py``. One that can no longer be loaded is not deleted: it goes
into the table of those that are refused.
"""

import json

import numpy as np
import pytest

import bagwise
from bagwise import all_estimators
from bagwise.exceptions import ModelFileError
from bagwise.persistence._models import encode
from bagwise.persistence._registry import REGISTRY
from persistence.make_files import FILE_NAMES, FILES, answers, read_inputs, settings
from persistence.standins import KEY

PATHS = sorted(FILES.glob("*/*.model"))
#: Which files this version refuses, as VERSION/NAME, and a part of what it says then.
REFUSED: dict[str, str] = {}


def named(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_model_of_an_earlier_version(path):
    if named(path) in REFUSED:
        with pytest.raises(ModelFileError, match=REFUSED[named(path)]):
            bagwise.load(path)
        return
    told = json.loads(path.with_suffix(".json").read_text())
    model = bagwise.load(path)
    assert settings(model).items() >= told["parameters"].items()
    found = answers(model, read_inputs()[2])
    assert found.keys() >= told["answers"].keys()
    for name, expected in told["answers"].items():
        if isinstance(np.ravel(expected)[0], np.floating):
            atol = 1e-12 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=atol, err_msg=name)
        else:
            assert found[name] == expected, name


def test_every_class_has_a_file():
    names = {
        FILE_NAMES.get(entry.name, entry.name) for key, entry in REGISTRY.items() if key != KEY
    }
    missing = sorted(names - {path.stem for path in PATHS})
    assert not missing, f"run tests/persistence/make_files.py: there is no file of {missing}"
    assert set(REFUSED) <= set(map(named, PATHS))


def test_files_are_apart_on_every_file_system():
    names = [named(path).lower() for path in PATHS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", dict(all_estimators()))
def test_a_changed_default_changes_no_saved_model(name, tmp_path, monkeypatch):
    cls = dict(all_estimators())[name]
    before = cls().get_params(deep=False)
    stored = encode(cls())[0]["model"]["params"]
    assert stored.keys() == before.keys()
    bagwise.save(cls(), tmp_path / "m.model")
    init = cls.__init__
    other = object()
    monkeypatch.setattr(init, "__kwdefaults__", dict.fromkeys(init.__kwdefaults__ or {}, other))
    monkeypatch.setattr(init, "__defaults__", (other,) * len(init.__defaults__ or ()))
    assert other in cls().get_params(deep=False).values()
    assert bagwise.load(tmp_path / "m.model").get_params(deep=False) == before
