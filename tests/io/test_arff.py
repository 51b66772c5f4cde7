"""ARFF: relational as Weka writes it, and flat."""

import pytest

from bagwise.io import inspect, read

HEAD = "@relation t\n@attribute bag-id string\n@attribute bag relational\n@attribute u numeric\n"
HEAD += "@attribute v numeric\n@end bag\n@attribute class {no,yes}\n@data\n"  # line 8
FLAT = (
    "@relation t\n@attribute bag string\n@attribute u numeric\n@attribute class {no,yes}\n@data\n"
)


@pytest.fixture
def arff(tmp_path):
    def make(text):
        path = tmp_path / "t.arff"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def test_relational(arff):
    path = arff(HEAD + "'b 1',\"1,2\\n3,4\",yes\n% comment\n\n\"b2\",'5,6\\n',no\n")
    bags = read(path)
    assert bags.bag_names.tolist() == ["b 1", "b2"]
    assert bags.instances.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert bags.labels.tolist() == ["yes", "no"]
    assert bags.feature_names.tolist() == ["u", "v"]
    assert inspect(path).guessed["layout"] == "relational, instances in 'bag'"


def test_relational_with_many_labels(arff):
    head = HEAD.replace("@attribute class {no,yes}", "@attribute p {0,1}\n@attribute q {1,0}")
    bags = read(arff(head + 'a,"1,2",1,0\nb,"3,4",1,1\n'))
    assert bags.label_names.tolist() == ["p", "q"]
    assert bags.labels.tolist() == [[1, 0], [1, 1]]
    assert read(arff(head + 'a,"1,2",1,0\n'), label="q").labels.tolist() == [0]
    assert read(arff(head + 'a,"1,2",1,0\n'), label=["q"]).labels.tolist() == [[0]]
    assert read(arff(head + 'a,"1,2",1,0\n'), label=False).labels is None


def test_relational_without_a_bag_attribute(arff):
    head = HEAD.replace("@attribute bag-id string\n", "")
    bags = read(arff(head + '"1,2",yes\n"3,4",no\n'))
    assert bags.bag_names.tolist() == ["0", "1"]


def test_relational_with_sparse_instances(arff):
    assert read(arff(HEAD + 'a,"{1 5}\\n{}\\n{0 -1}",yes\n')).instances.tolist() == [
        [0, 5], [0, 0], [-1, 0],
    ]  # fmt: skip


def test_flat(arff):
    text = FLAT + "b,1.5,yes\na,2.5,no\n'b', 3.5 ,\"yes\"\n"
    bags = read(arff(text))
    assert bags.bag_names.tolist() == ["b", "a"]
    assert bags.instances.ravel().tolist() == [1.5, 3.5, 2.5]
    assert bags.labels.tolist() == ["yes", "no"]


def test_flat_sparse_rows(arff):
    bags = read(arff(FLAT + "{0 b, 2 yes}\n{0 'b', 1 4.5, 2 yes}\n{0 c}\n"))
    assert bags.instances.ravel().tolist() == [0, 4.5, 0]
    assert bags.labels.tolist() == ["yes", "no"]


def test_quoted_attribute_names(arff):
    text = "@relation 'a b'\n@attribute 'bag' string\n@attribute \"it's\" real\n"
    text += "@attribute 'don\\'t' integer\n@data\nq,1,2\n"
    assert read(arff(text)).feature_names.tolist() == ["it's", "don't"]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "t.arff:", "the file is empty"),
        ("% only\n", "t.arff:1:", "there is no @data"),
        ("bag,x\na,1\n", "t.arff:1:", "@relation, @attribute or @data is needed. Got 'bag,x'"),
        ("@relation t\n@data\n", "t.arff:2:", "@data comes after no attributes"),
        ("@relation t\n@attribute x\n@data\n", "t.arff:2:", "the unknown type ''"),
        ("@relation t\n@attribute x complex\n", "t.arff:2:", "the unknown type 'complex'"),
        ("@relation t\n@attribute\n", "t.arff:2:", "@attribute NAME TYPE is needed"),
        ("@relation t\n@attribute x {a,'b\n", "t.arff:2:", "cannot be told apart"),
        ("@relation t\n@attribute x {'a}\n", "t.arff:2:", "cannot be told apart"),
        ("@relation t\n@attribute b relational\n@data\n", "t.arff:3:", "without @end"),
        ("@relation t\n@attribute b relational\n@end b\n", "t.arff:3:", "has no attributes"),
        ("@relation t\n@attribute b relational\n@attribute c relational\n", "t.arff:3:",
         "a relation inside a relation"),
        (HEAD, "t.arff:", "there is no row of data"),
        (HEAD + 'a,"1,2\\n3",yes\n', "t.arff:9:",
         "instance 1 of bag 'a' has 1 values, not 2"),
        (HEAD + 'a,"1,x",yes\n', "t.arff:9:", "column 'v': 'x' is not a number"),
        (HEAD + 'a,"1,?",yes\n', "t.arff:9:", "column 'v': the value is missing ('?')"),
        (HEAD + 'a,"1,2",?\n', "t.arff:9:", "the label is missing"),
        (HEAD + 'a,"",yes\n', "t.arff:9:", "bag 'a' has no instance"),
        (HEAD + 'a,"1,2"\n', "t.arff:9:", "3 values are needed. Got 2"),
        (HEAD + 'a,"1,2,yes\n', "t.arff:9:", "do not match"),
        (HEAD + 'a,"1,2",yes\n' * 2, "t.arff:10:", "bag 'a' is there already, in line 9"),
        (FLAT + "{0 a, 1}\n", "t.arff:6:", "a sparse row needs pairs"),
        (HEAD + 'a,"{7 1}",yes\n', "t.arff:9:", "a sparse row needs pairs"),
        (FLAT + "a,1,yes\na,2,no\n", "t.arff:7:", "bag 'a' has 'no' here and 'yes' before"),
        (FLAT + "a,1\n", "t.arff:6:", "3 columns are needed"),
        (FLAT.replace("bag", "id") + "a,1,yes\n", "t.arff:", "no column tells which bag"),
        (FLAT.encode() + b"\xff,1,yes\n", "t.arff:", "this is not text"),
        (HEAD.replace("@data", "@attribute more numeric\n@data") + 'a,"1,2",yes,3\n', "t.arff:",
         "the label may be any of"),
    ],
)  # fmt: skip
def test_errors_name_the_line(arff, fails, text, where, what):
    if "may be any of" in what:
        text = text.replace("attribute class", "attribute target")
    message = fails(arff(text))
    assert where in message
    assert what in message


def test_several_relations(arff, fails):
    two = HEAD.replace(
        "@attribute class {no,yes}", "@attribute c relational\n@attribute w real\n@end c"
    )
    assert "several relational attributes" in fails(arff(two))


def test_relational_has_no_columns_to_choose(arff):
    with pytest.raises(ValueError, match="no option 'features'"):
        read(arff(HEAD), features=["u"])
