import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise as library
from bagwise import Bags
from bagwise.datasets import load_digit_bags
from bagwise.preprocessing import InstanceTransformer
from bagwise.svm import SIL, MIKernelSVM

MOLECULES = "molecules.csv --bag molecule --label active"


def test_model_is_the_one_of_python(workshop, bagwise):
    code, out, err = bagwise("fit digits -m mikernelsvm -o d.model -p C=10 --read n_bags=60")
    assert code == 0
    data = load_digit_bags(60)
    wanted = make_pipeline(InstanceTransformer(StandardScaler()), MIKernelSVM(C=10))
    wanted.fit(data.bags, data.y)
    found = library.load("d.model")
    np.testing.assert_array_equal(
        found.decision_function(data.bags), wanted.decision_function(data.bags)
    )
    assert out.startswith("MIKernelSVM(C=10) on digits: 60 bags, ")
    assert "Certificate: converged" in out
    assert "--no-scale" in err


def test_no_scale(workshop, bagwise):
    code, _, err = bagwise(f"fit {MOLECULES} -m SIL -o m.model --no-scale")
    assert code == 0
    assert err == ""
    assert type(library.load("m.model")) is SIL


def test_sparse_data_are_not_centred(workshop, bagwise):
    rng = np.random.default_rng(0)
    lines = [
        f"{i % 2} qid:{i} 1:{rng.normal() + 5 * (i % 2):.3f} 3:{rng.normal():.3f}"
        for i in range(12)
    ]
    (workshop / "a.svm").write_text("\n".join(lines))
    code, out, err = bagwise("fit a.svm -m SIL -o m.model")
    assert code == 0, err
    assert "scaled to variance 1" in err
    assert "12 bags, 12 instances, 3 features" in out


def test_json(workshop, bagwise):
    code, out, _ = bagwise(
        f"fit {MOLECULES} -m SIL -o m.model --cv 3 --grid C=0.1,1 --param tol=1e-4 --json --seed 5"
    )
    answer = json.loads(out)
    assert code == 0
    assert set(answer) == {
        *("schema", "command", "seed", "data", "model", "search", "cross_validation"),
        *("training_accuracy", "clusters", "certificate", "seconds"),
    }
    assert answer["clusters"] is None
    assert answer["seed"] == 5
    assert answer["data"]["bags"] == 24
    assert answer["data"]["labels"] == [
        {"label": 0, "name": None, "bags": 12},
        {"label": 1, "name": None, "bags": 12},
    ]
    assert answer["model"]["parameters"].keys() == {"tol", "C"}
    assert answer["model"]["bytes"] == (workshop / "m.model").stat().st_size
    assert len(answer["cross_validation"]["values"]) == 3
    assert "seed 5" in answer["cross_validation"]["protocol"]
    assert answer["cross_validation"]["baseline"] == {"label": 0, "accuracy": 0.5}
    assert answer["search"]["metric"] == "accuracy"
    assert answer["certificate"]["status"] == "converged"


def test_estimate_without_a_model(workshop, bagwise, refused):
    before = set(workshop.iterdir())
    code, out, _ = bagwise(f"fit {MOLECULES} -m SIL --cv 3 --grid C=0.1,1")
    assert code == 0
    assert "Cross-validated accuracy: " in out
    assert "Chosen: C=" in out
    assert "Saved" not in out
    _, out, _ = bagwise(f"fit {MOLECULES} -m SIL --cv 3 --json")
    answer = json.loads(out)
    assert answer["model"]["path"] is answer["model"]["bytes"] is None
    assert answer["certificate"] is answer["training_accuracy"] is None
    assert set(workshop.iterdir()) == before
    assert "--output FILE says where the model goes" in refused(f"fit {MOLECULES} -m SIL")


def test_label_lists(workshop, bagwise):
    code, out, _ = bagwise("fit photos.csv -m SIL -o p.model --cv 3")
    assert code == 0
    assert "Cross-validated average precision: " in out
    assert library.load("p.model")[-1].multilabel_


def test_missing_convergence_is_one_line(workshop, bagwise):
    code, out, err = bagwise(f"fit {MOLECULES} -m SIL -o m.model -p max_iter=1")
    assert code == 0
    assert "Certificate: max_iter" in out
    assert err.count("warning: SIL did not converge") == 1
    assert ConvergenceWarning.__name__ not in err


def test_warnings_of_a_search_are_one_line(workshop, bagwise):
    code, _, err = bagwise(
        f"fit {MOLECULES} -m SIL -o m.model -p max_iter=1 --cv 3 --grid C=0.1,1 --grid gamma=1,2"
    )
    assert code == 0
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines
    assert len(set(lines)) == len(lines)
    assert ConvergenceWarning.__name__ not in err


@pytest.mark.parametrize("scale", ["", "--no-scale"])
def test_chosen_parameters_have_the_names_that_the_user_typed(workshop, bagwise, scale):
    options = f"-m SIL -o m.model --grid C=0.1,1 --grid gamma=0.1,1 --cv 3 {scale}"
    code, out, _ = bagwise(f"fit {MOLECULES} {options} --json")
    assert code == 0
    chosen = json.loads(out)["model"]["parameters"]
    assert chosen.keys() == {"C", "gamma"}
    saved = library.load("m.model")
    saved = saved if scale else saved[-1]
    assert {name: getattr(saved, name) for name in chosen} == chosen
    code, out, _ = bagwise(f"fit {MOLECULES} {options}")
    assert code == 0
    assert "Chosen: C=" in out
    assert "the best of 4 settings in 3-fold cross-validation, stratified, shuffled" in out
    assert "model__" not in out


def test_fit_that_fails_in_a_search_is_one_line(workshop, refused):
    line = refused(f"fit {MOLECULES} -m CPM3C -o m.model --cv 3")
    assert "learns without labels" in line
    line = refused(
        "fit digits -m SIL -o m.model --read n_bags=5 --read positive_share=1.0 --grid C=1,2"
    )
    assert "at least two classes" in line


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("-m SILL", "there is no model 'SILL'. Did you mean SIL?"),
        ("-m misvm", "'misvm' may be MISVM or miSVM: these are two methods, mind the capitals."),
        ("-m xyz", "Known: APR, BagKISVM, BagKMeans, BAMIC, "),
        ("-m SIL -p max_itr=3", "SIL has no parameter 'max_itr'. Did you mean max_iter?"),
        ("-m SIL --grid gama=1,2", "SIL has no parameter 'gama'. Did you mean gamma?"),
        ("-m SIL -p C=-1", "The 'C' parameter of SIL must be a float in the range (0.0, inf)"),
        ("-m SIL --grid C=1,x", "Got 'x' instead"),
        ("-m SIL -p C=1 --grid C=1,2", "C is given by --param and by --grid"),
        ("-m SIL -p C", "--param needs KEY=VALUE"),
        ("-m SIL --cv 1", "--cv"),
        ("-m SIL --cv 100", "100 folds need at least 100"),
        ("-m SIL --cv 3 --scoring rocauc", "no score 'rocauc'. Did you mean roc_auc?"),
        ("-m SIL --scoring f1", "--scoring is for --cv or --grid, and neither is given."),
        ("-m SIL --groups m", "--groups is for --cv or --grid, and neither is given."),
        ("-m SIL --cv 3 --groups [", "--groups needs a regular expression"),
        ("-m SIL --cv 3 --groups x", "no match of 'x' in the name of bag 0"),
        ("-m SIL -p kernel=linear -p kernel=rbf", "gives kernel twice"),
    ],
)
def test_bad_request(workshop, refused, options, part):
    assert part in refused(f"fit digits -o m.model --read n_bags=10 {options}")
    assert not (workshop / "m.model").exists()


def test_one_class_only(workshop, refused):
    line = refused("fit digits -m SIL -o m.model --read n_bags=5 --read positive_share=1.0")
    assert "at least two classes" in line


@pytest.mark.parametrize(("path", "part"), [("no/m.model", "does not exist"), (".", "is a folder")])
def test_bad_output(workshop, refused, path, part):
    assert part in refused(f"fit digits -m SIL -o {path}")


def test_unwritable_folder(workshop, refused, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", str(options["dir"]))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    line = refused("fit digits -m SIL -o m.model")
    assert line == "bagwise: the folder . of --output cannot be written to: Permission denied."


def test_error_as_json(workshop, bagwise):
    code, out, _ = bagwise("fit digits -m SILL -o m.model --json")
    assert code == 2
    error = json.loads(out)["error"]
    assert error["code"] == "model"
    assert error["where"] == "--model"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent differently there")
@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("fit digits -m SIL -o m.model --cv 3 --grid C=1,2", "bagwise.svm._sil.SIL.fit"),
        ("fit digits -m SIL -o m.model", "os.fsync"),
        ("pack molecules.csv m.bags --bag molecule", "os.fsync"),
        ("annotate photos.csv -m SIL -o a.csv", "pathlib.Path.replace"),
    ],
)
def test_interrupt_leaves_nothing(workshop, line, place):
    """Ctrl-C while a model is fitted, and while files are being written."""
    before = {file.name for file in workshop.iterdir()}
    code = (
        "import sys, time, importlib\n"
        f"path = {place!r}.split('.')\n"
        "for n in range(len(path) - 1, 0, -1):\n"
        "    try:\n"
        "        owner = importlib.import_module('.'.join(path[:n]))\n"
        "        break\n"
        "    except ImportError: pass\n"
        "for name in path[n:-1]: owner = getattr(owner, name)\n"
        "def wait(*arguments, **options):\n"
        "    open('ready', 'w').close()\n"
        "    time.sleep(60)\n"
        "setattr(owner, path[-1], wait)\n"
        "from bagwise.cli import main\n"
        f"sys.exit(main({line.split()!r}))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=workshop,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    while not (workshop / "ready").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "bagwise: interrupted"
    assert "Traceback" not in err
    assert {file.name for file in workshop.iterdir()} - before <= {"ready"}


def test_folds_that_lack_a_label_are_told(workshop, bagwise):
    rng = np.random.default_rng(0)
    for name, y in (("two", [1, 1] + [0] * 38), ("three", [2, 2] + [0, 1] * 19)):
        matrix = rng.normal(size=(120, 2)) + 4.0 * np.repeat(y, 3)[:, None]
        Bags(matrix, 3 * np.arange(41), labels=np.array(y)).write(f"{name}.bags")
    code, out, _ = bagwise("fit two.bags -m MIKernelSVM --cv 5")
    assert code == 0
    assert re.search(r"balanced accuracy \S+% ± \S+ \(2 of 5 folds, others: not defined\)", out)
    assert re.search(r"AUC \S+ ± \S+ \(2 of 5 folds, others: not defined\)", out)
    code, out, _ = bagwise("fit two.bags -m MIKernelSVM --cv 5 --scoring roc_auc --json")
    found = json.loads(out)["cross_validation"]
    assert (code, found["values"].count(None), found["mean"] is None) == (0, 3, False)
    code, out, _ = bagwise("fit three.bags -m MIKernelSVM --cv 3 --json")
    (balanced,) = json.loads(out)["cross_validation"]["others"]
    known = [value for value in balanced["values"] if value is not None]
    assert (code, len(known)) == (0, 2)
    assert balanced["mean"] == pytest.approx(np.mean(known))
