import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from bagwise.cli import _demo, main
from bagwise.cli._output import Output
from bagwise.inspection import MethodCard
from inspection.pages import Page

#: Six methods are fitted in a process of its own, which may have to compile them first.
pytestmark = pytest.mark.timeout(330)
MAIN = "import sys; from bagwise.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run, as JSON, whose output several tests look at."""
    folder = tmp_path_factory.mktemp("demo")
    return subprocess.run(
        [sys.executable, "-c", MAIN, "demo", "--json", "--seed", "1", "-o", "r.html"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd=folder,
    ), folder


def test_json_has_the_documented_fields(done):
    process, folder = done
    answer = json.loads(process.stdout)
    assert set(answer) == {
        *("schema", "command", "seed", "data", "baseline", "shown", "methods", "report", "seconds"),
    }
    assert (answer["schema"], answer["command"], answer["seed"]) == (1, "demo", 1)
    assert answer["report"] == {"path": "r.html", "bytes": (folder / "r.html").stat().st_size}
    assert answer["baseline"] == 0.5

    assert [method["name"] for method in answer["methods"]] == list(_demo.METHODS)
    for method in answer["methods"]:
        low, high = method["interval"]
        assert 0 <= low <= method["accuracy"] <= high <= 1
        assert 0 <= method["key_success"] <= 1
        assert method["certificate"]["status"] == "converged"
        gap = method["certificate"]["gap"]  # none where the problem is not convex
        assert gap is None or gap < 1e-3 * abs(method["certificate"]["objective"])
    assert sum(method["certificate"]["gap"] is not None for method in answer["methods"]) == 4
    for part in ("train", "test"):
        assert answer["data"][part]["bags"] == 140
        assert answer["data"][part]["positive"] == 70
    assert answer["data"]["train"]["sha256"] != answer["data"]["test"]["sha256"]


def test_shown_method_is_chosen_without_the_test_bags(done):
    answer = json.loads(done[0].stdout)
    best = max(answer["methods"], key=lambda method: method["cv_accuracy"])
    assert answer["shown"] == best["name"]
    assert best["accuracy"] > 0.65  # well above the baseline


def test_only_progress_on_stderr(done):
    process, _ = done
    answer = json.loads(process.stdout)
    lines = process.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == [m["name"] for m in answer["methods"]]
    assert "\x1b" not in process.stderr


def test_report_says_what_the_json_says(done):
    process, folder = done
    answer = json.loads(process.stdout)
    page = Page((folder / "r.html").read_text(encoding="utf-8"))
    methods = page.table("How well each method does")
    fits = page.table("How each fit ended")
    lines = dict(line.split(": ", 1) for line in process.stderr.splitlines())
    for method in answer["methods"]:
        name, certificate, row = method["name"], method["certificate"], methods[method["name"]]
        low, high = (100 * end for end in method["interval"])
        assert row["accuracy"] == (percent(method["accuracy"]), f"{low:.1f} to {high:.1f}")
        assert row["key instance found"][0] == percent(method["key_success"])
        assert row["accuracy in cross-validation"][0] == percent(method["cv_accuracy"])
        assert row["seconds to fit"][0] == f"{method['fit_seconds']:.3f}"
        assert row["method"][1] == f"C = {method['parameters']['C']:g}"
        assert float(fits[name]["objective"][0]) == pytest.approx(
            certificate["objective"], rel=1e-5
        )
        assert fits[name]["iterations"][0] == f"{certificate['n_iter']:,}"
        assert fits[name]["seconds"][0] == f"{certificate['solve_seconds']:.3f}"
        assert lines[name].startswith(
            f"accuracy {method['accuracy']:.1%} ({low:.1f} to {high:.1f}), key instance found "
            f"{method['key_success']:.1%}, {method['fit_seconds']:.3f} s, converged"
        )
    assert page.featured("How well each method does") == [answer["shown"]]
    (shown,) = (method for method in answer["methods"] if method["name"] == answer["shown"])
    assert page.tiles["accuracy"][0] == percent(shown["accuracy"])
    assert page.tiles["key instance found"][0] == percent(shown["key_success"])
    assert page.tiles["baseline"][0] == percent(answer["baseline"])
    assert page.facts["Data (SHA-256)"] == answer["data"]["test"]["sha256"]
    assert page.facts["Training data (SHA-256)"] == answer["data"]["train"]["sha256"]


def percent(share):
    return f"{100 * share:.1f} %"


def test_report_is_small_and_says_how_to_repeat_it(done):
    _, folder = done
    text = (folder / "r.html").read_text(encoding="utf-8")
    assert len(text.encode()) <= 150_000
    assert "bagwise demo --seed 1" in text
    assert "Which bags hold a 3?" in text
    assert [file.name for file in folder.iterdir()] == ["r.html"]


def test_text_result(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_demo, "METHODS", ("SIL", "MISVM"))
    path = tmp_path / "r.html"
    assert main(["demo", "--output", str(path), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 3
    assert f"Report: {path} " in out
    assert path.as_uri() in out
    assert path.read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("output", "part"),
    [("missing/r.html", "does not exist"), (".", "is a folder"), ("file/r.html", "does not exist")],
)
def test_bad_output_is_one_line(output, part, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert part in err


def test_unwritable_folder(tmp_path, capsys, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", str(options["dir"]))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert main(["demo", "-o", str(tmp_path / "r.html"), "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["error"]["code"] == "output"
    assert "cannot be written to: Permission denied" in answer["error"]["message"]
    assert answer["error"]["where"] == str(tmp_path / "r.html")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_folder_without_permission(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert main(["demo", "-o", str(tmp_path / "r.html")]) == 2
    assert "cannot be written to" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent differently there")
@pytest.mark.parametrize("moment", ["fitting", "writing"])
def test_interrupt_leaves_nothing(tmp_path, moment):
    """Ctrl-C while a method is fitted, and while the report is being written."""
    place = {"fitting": "bagwise.cli._demo._fit", "writing": "bagwise.inspection._report.report"}
    code = (
        "import sys, time, importlib\n"
        "from bagwise.cli import _demo\n"
        "_demo.METHODS = ('SIL',)\n"
        f"module, name = {place[moment]!r}.rsplit('.', 1)\n"
        "module = importlib.import_module(module)\n"
        "def wait(*arguments, **options):\n"
        "    open('ready', 'w').close()\n"
        "    time.sleep(60)\n"
        "setattr(module, name, wait)\n" + MAIN
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "demo", "-o", "r.html"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "bagwise: interrupted"
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["ready"]


@pytest.mark.parametrize("no_color", [False, True])
def test_live_table_on_a_terminal(no_color, tmp_path, monkeypatch):
    """On a terminal there is one table; colours only if they are wanted."""
    output = Output(color=not no_color)
    screen = io.StringIO()
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=screen, force_terminal=True, width=110)
    output.__dict__["progress"] = console
    card = MethodCard(name="Best", n_right=9, n_bags=10, n_found=1, n_key_bags=2, fit_seconds=0.5)
    done = []
    with _demo._live_table(output, ["Best", "Next"], done) as refresh:
        refresh()
        done.append(_demo._Contender(None, {}, card))
        refresh()
    shown = screen.getvalue()
    for part in ("Best", "Next", "90.0%", "50.0%", "0.500", "none"):
        assert part in shown
    lines = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", shown).splitlines()[::-1]
    head, best = (
        [cell.strip() for cell in re.split("[│┃]", next(line for line in lines if part in line))]
        for part in ("method", "90.0%")
    )
    assert dict(zip(head[1:-1], best[1:-1], strict=True)) == {
        "method": "Best",
        "accuracy (95 % interval)": "90.0% (59.6 to 98.2)",
        "key instance found": "50.0%",
        "seconds": "0.500",
        "certificate": "none",
    }
    assert ("\x1b[33m" in shown) is not no_color
