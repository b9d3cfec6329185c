"""The folder of links from which local jobs start Spark: made whole, checked, and never in place of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import lean_home
from plimsoll.sparkjobs.class_archive import ARCHIVE_VARIABLE


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    path = tmp_path / "installed"
    for name in ("bin", "python", "jars"):
        (path / name).mkdir(parents=True)
    for name in ("spark-core_2.13-4.3.0.jar", "spark-mllib_2.13-4.3.0.jar", "hive-exec-2.3.10-core.jar"):
        (path / "jars" / name).write_text(name)
    return path


def test_it_links_to_all_of_spark_but_for_libraries_that_no_job_uses(installed: Path, tmp_path: Path):
    home = tmp_path / "cache" / "a.home"
    home.parent.mkdir()
    lean_home.make_home(home, installed)
    assert sorted(each.name for each in home.iterdir()) == ["bin", "jars", "python"]
    assert [each.name for each in (home / "jars").iterdir()] == ["spark-core_2.13-4.3.0.jar"]
    assert [each.name for each in home.parent.iterdir()] == ["a.home"]
    lean_home.make_home(home, installed)
    assert lean_home.is_usable(home, installed)


def test_it_is_used_only_while_it_links_to_the_installed_spark(installed: Path, tmp_path: Path):
    home = tmp_path / "a.home"
    assert not lean_home.is_usable(home, installed)
    lean_home.make_home(home, installed)
    assert lean_home.is_usable(home, installed)
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    assert not lean_home.is_usable(home, other), "another installation"
    (installed / "jars" / "spark-core_2.13-4.3.0.jar").unlink()
    assert not lean_home.is_usable(home, installed), "a link that leads nowhere"


def test_a_spark_home_of_the_user_stays(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lean_home, "installed_home", lambda: installed)
    environment = {ARCHIVE_VARIABLE: str(tmp_path / "a.jsa")}
    lean_home.use_home(environment)
    assert lean_home.HOME_VARIABLE not in environment, "nothing is prepared"
    home = lean_home.home_path(environment)
    assert home == tmp_path / "a.home"
    lean_home.make_home(home, installed)
    lean_home.use_home(environment)
    assert environment[lean_home.HOME_VARIABLE] == str(home)
    own = {**environment, lean_home.HOME_VARIABLE: "/opt/spark"}
    lean_home.use_home(own)
    assert own[lean_home.HOME_VARIABLE] == "/opt/spark"
    none = {ARCHIVE_VARIABLE: ""}
    lean_home.use_home(none)
    assert lean_home.home_path(none) is None
    assert lean_home.HOME_VARIABLE not in none
