import builtins
import json
import subprocess
import sys

import pytest

import bagwise
from bagwise.cli import _app, main
from bagwise.cli._output import CommandError
from bagwise.exceptions import BagFileError, InvalidBagsError, MemoryLimitError, ModelFileError


def run_in_process(*arguments, **options):
    code = "import sys; from bagwise.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bagwise {bagwise.__version__}\n"


def test_no_command_shows_help(capsys):
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["", "fit", "datasets", "explain"])
def test_help_imports_nothing_heavy(command):
    code = (
        f"import sys; from bagwise.cli import main; main({[*command.split(), '--help']}); "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'numba') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["demo", "--sed", "3"], "--seed"),
        (["demo", "--seed", "x"], "--seed"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "extra"], "extra"),
        (["demon"], "demon"),
        (["fit", "digits"], "--model"),
        (["fit", "-m", "SIL", "-o", "m"], "DATA"),
        (["datasets", "lst"], "lst"),
        (["explain", "m", "digits", "--top", "-1"], "--top"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_usage_is_one_line(arguments, part, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("bagwise: ")
    assert part in err


def test_bad_usage_as_json(capsys):
    assert main(["demo", "--seed", "x", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    answer = json.loads(out)
    assert answer["schema"] == 1
    assert answer["error"]["code"] == "usage"
    assert "--seed" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("raised", "code", "word"),
    [
        (CommandError("two\nlines", code="data", where="f.csv:3"), 2, "data"),
        (PermissionError(13, "Permission denied", "f.html"), 2, "file"),
        (BagFileError("f.csv:3: what"), 2, "data"),
        (InvalidBagsError("bag 3 has none"), 2, "data"),
        (ModelFileError("Model file 'm' is none"), 2, "model"),
        (MemoryLimitError("too much"), 2, "data"),
        (MemoryError("Unable to allocate 40 GiB"), 2, "memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("oh"), 1, "bug"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_every_way_to_end(raised, code, word, as_json, capsys, monkeypatch):
    def fail(*arguments):
        raise raised

    monkeypatch.setattr("bagwise.cli._doctor.run_doctor", fail)
    assert main(["doctor", *(["--json"] if as_json else [])]) == code
    out, err = capsys.readouterr()
    if as_json:
        answer = json.loads(out)
        assert answer["error"]["code"] == word
        assert "\n" not in answer["error"]["message"]
    else:
        assert out == ""
        assert err.splitlines()[-1].startswith("bagwise: ")
        assert len(err.strip().splitlines()) == 1 or code == 1
    if code == 1:
        assert "Traceback" in err
        assert "please report it" in (out if as_json else err)


def test_reader_of_stdout_gone():
    done = run_in_process("--help", stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    code = (
        "import os, sys; from bagwise.cli import main\n"
        "r, w = os.pipe(); os.close(r); os.dup2(w, 1); sys.exit(main(['--help']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == ""


def test_completion_is_offered(capsys):
    main(["--help"])
    assert "--install-completion" in capsys.readouterr().out


def test_usage_errors_are_what_we_catch():
    import typer

    assert issubclass(typer.BadParameter, _app._ClickError)
    assert hasattr(_app._ClickError, "format_message")


def test_names_that_a_terminal_cannot_show():
    code = (
        "import sys; sys.stdout.reconfigure(encoding='ascii'); "
        "from bagwise.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "datasets", "show", "musk1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert r"Lozano-P\xe9rez" in done.stdout


def test_interrupted_while_loading(monkeypatch, capsys):
    load = builtins.__import__

    def interrupted(name, *rest):
        if name == "bagwise.cli._app":
            raise KeyboardInterrupt
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "bagwise: interrupted\n")
