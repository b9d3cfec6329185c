"""YAML as located documents, and what is refused although it is valid YAML."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.spec import InvalidResourcesError, parse
from plimsoll.local.manifests import load, parse_text


def problem(text):
    with pytest.raises(InvalidResourcesError) as caught:
        parse_text(text, "f.yaml")
    [only] = caught.value.problems
    return only


def test_documents_remember_the_lines_of_their_parts():
    [first, second] = parse_text("a: 1\nb:\n- x: 1\n- x: 2\n---\n\nc: {d: [1, 2]}\n", "f.yaml")
    assert first.content == {"a": 1, "b": [{"x": 1}, {"x": 2}]}
    assert [first.line_of(path) for path in [("a",), ("b",), ("b", 1), ("b", 1, "x"), ("b", 9)]] == [1, 2, 4, 4, 2]
    assert second.line_of(("c", "d", 1)) == 7


def test_malformed_yaml_names_file_and_line():
    fault = problem("a: 1\nb: [1, 2\nc: 3\n")
    assert (fault.file, fault.line) == ("f.yaml", 3)
    assert "this is not YAML" in fault.found


def test_a_key_that_stands_twice():
    fault = problem("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert fault.line == 4
    assert 'the key "b" stands here again after line 2' in fault.found


def test_tags_that_would_run_code_are_refused():
    assert "could not determine a constructor" in problem("a: !!python/object/apply:os.system ['true']\n").found


def test_an_alias_bomb_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "more than 200000 parts" in problem("\n".join(lines)).found


def test_an_alias_of_itself_is_refused():
    assert problem("a: &a [*a]\n").found


def test_text_that_is_no_text():
    assert "not YAML" in problem("a: \x01\n").found


def test_files_folders_and_standard_input(tmp_path):
    (tmp_path / "b.yaml").write_text("b: 1\n")
    (tmp_path / "a.yml").write_text("a: 1\n---\na: 2\n")
    (tmp_path / "note.txt").write_text("not this\n")
    documents = load([str(tmp_path), "-"], io.StringIO("c: 1\n"))
    assert [document.content for document in documents] == [{"a": 1}, {"a": 2}, {"b": 1}, {"c": 1}]
    assert documents[-1].file == "<stdin>"


def test_files_that_cannot_be_read_are_all_named(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "huge.yaml").write_text("#" * 5_000_000)
    names = [str(tmp_path / name) for name in ("none.yaml", "latin.yaml", "empty", "bad.yaml", "huge.yaml")]
    with pytest.raises(InvalidResourcesError) as caught:
        load(names)
    text = str(caught.value)
    assert [name in text for name in names] == [True] * 5
    for words in ("No such file", "not UTF-8", "no YAML file in this folder", "not YAML", "more than 4194304 bytes"):
        assert words in text


def test_nothing_at_all():
    with pytest.raises(InvalidResourcesError, match="there is no object here"):
        load(["-"], io.StringIO("# nothing\n"))


def test_problems_of_resources_have_the_lines_of_the_file():
    text = (
        "apiVersion: plimsoll.dev/v1alpha1\nkind: BrokerCluster\nmetadata:\n  name: east\n"
        "spec:\n  head: {profile: big}\n  edges:\n  - name: e\n    profil: big\n"
    )
    with pytest.raises(InvalidResourcesError) as caught:
        parse(parse_text(text, "f.yaml"))
    lines = {problem.path[-1]: problem.line for problem in caught.value.problems}
    assert lines == {"profil": 9, "profile": 8}


@given(st.text(alphabet=st.sampled_from("abc:-[]{}&*!|>'\"#%@, \n\t0.~<=\\\x00é"), max_size=60))
def test_any_text_is_documents_or_a_located_problem(text):
    files = {"f.yaml"}
    try:
        files |= {document.file for document in parse_text(text, "f.yaml")}
    except InvalidResourcesError as error:
        files |= {problem.file for problem in error.problems}
    assert files == {"f.yaml"}
