from plimsoll.cli.output import objects_text, table, yaml_text


def test_columns_are_aligned_and_lines_have_no_tail():
    assert table(["A", "BBB"], [["xxx", "y"], ["", ""]]) == ["A    BBB", "xxx  y", ""]


def test_yaml_keeps_the_order_of_fields():
    assert (
        yaml_text({"kind": "x", "apiVersion": "y", "n": [1, {"b": "é"}]}) == "kind: x\napiVersion: y\nn:\n- 1\n- b: é"
    )


def test_nothing_is_no_table():
    assert objects_text([], "table", single=False) == ""
    assert '"items": []' in objects_text([], "json", single=False)
