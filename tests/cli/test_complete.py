import os
import subprocess
import sys

import bagwise
from bagwise.cli._complete import (
    complete_clusterer,
    complete_data,
    complete_model,
    complete_path,
    complete_set,
    model_names,
    set_names,
)
from bagwise.datasets import available


def test_names_are_all_names():
    assert model_names() == [name for name, _ in bagwise.all_estimators()]
    assert set_names() == available()


def test_completions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "musk.csv").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.csv").touch()
    (tmp_path / ".hidden").touch()
    assert complete_model("MIK") == ["MIKernelSVM"]
    assert complete_clusterer("B") == ["BagKMeans", "BAMIC"]
    assert complete_clusterer("MI") == []
    assert complete_set("musk") == ["musk1", "musk2"]
    assert complete_data("musk") == ["musk1", "musk2", "musk.csv"]
    assert complete_data("dig") == ["digits"]
    assert complete_path("") == ["more/", "musk.csv"]
    assert complete_path("more/") == ["more/a.csv"]
    assert complete_path(".h") == [".hidden"]
    assert complete_path("nowhere/x") == []


def test_shell_is_answered_without_heavy_imports(tmp_path):
    code = (
        "import sys\n"
        "from bagwise.cli import main\n"
        "try: main()\n"
        "finally: sys.stderr.write(str([m for m in ('numpy', 'sklearn') if m in sys.modules]))"
    )
    environment = {
        **os.environ,
        "_BAGWISE_COMPLETE": "complete_bash",
        "COMP_WORDS": "bagwise datasets show news_s",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["news_sci_med"]
    assert done.stderr == "[]"
