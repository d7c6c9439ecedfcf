"""XML read strictly: what is refused, with its line; numbers by a strict grammar; all problems at once."""

import pickle

import numpy as np
import pytest

from kinegrad import FileError, InputError
from kinegrad.io import strict_xml
from kinegrad.io.strict_xml import decimal, read_xml


def write(tmp_path, text, name="a.xml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(tmp_path, text, *roots):
    with pytest.raises(FileError) as caught:
        read_xml(write(tmp_path, text), *roots)
    assert str(tmp_path / "a.xml") in str(caught.value)
    return str(caught.value)


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>
<robot>&b;</robot>"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LAUGHS, "line 2: declares a document type (DTD), which models do not need; remove <!DOCTYPE …>"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "line 1: declares a document type (DTD)"),
        ("<robot>\n&secret;</robot>", "line 2: is not well-formed XML: it uses an entity that it does not define"),
        ("<robot>", "line 1: is not well-formed XML: no element found"),
        ("", "is not well-formed XML: no element found"),
        ("<a><b></a>", "is not well-formed XML: mismatched tag"),
        ("<a x='1' x='2'/>", "is not well-formed XML: duplicate attribute"),
        ("\x00\x01\x02", "is not well-formed XML"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "unknown encoding"),
        ('<?xml version="1.0" encoding="utf-7"?><a/>', "encoding"),
        ("<osim/>", "line 1: begins with <osim>; expected <robot> or <mujoco>"),
    ],
)
def test_documents_are_refused(tmp_path, text, sentence):
    assert sentence in refused(tmp_path, text, "robot", "mujoco")


def test_sizes_are_limited(tmp_path, monkeypatch):
    """Each limit is met at once, not after all has been read."""
    assert "has more than 1000 elements within each other" in refused(tmp_path, "<a>" * 5000)
    monkeypatch.setattr(strict_xml, "COUNT", 100)
    assert "has more than 100 elements and attributes" in refused(tmp_path, "<a>" + "<b/>" * 200 + "</a>")
    monkeypatch.setattr(strict_xml, "SIZE", 1 << 20)
    assert "has 2 MiB; expected a model of at most 1 MiB" in refused(tmp_path, b" " * (2 << 20))


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_xml(tmp_path / "none.urdf")
    with pytest.raises(InputError, match="is a folder; expected a regular file"):
        read_xml(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1252", "utf-8-sig"])
def test_encodings_are_honoured(tmp_path, encoding):
    said = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{said}"?>\n<robot name="bräu"/>'
    assert read_xml(write(tmp_path, text.encode(encoding))).root.attributes["name"] == "bräu"


def test_lines_labels_and_texts(tmp_path):
    file = read_xml(write(tmp_path, '<a name="A">\n <b>\n  x <c/> y\n </b>\n <d name="D &lt; &#x41;"/>\n</a>'))
    b, d = file.root.children
    assert [e.line for e in file.root.walk()] == [1, 2, 3, 5]
    assert b.text == "x  y"
    assert b.children[0].label == '<c> in <a name="A">'
    assert d.label == '<d name="D < A">'  # references that XML itself defines are no entities of the file's


GOOD = {"1": 1.0, "-1": -1.0, "+.5": 0.5, "2.": 2.0, "1e3": 1e3, "-2.5E-3": -0.0025, "0": 0.0, "1e-400": 0.0}
BAD = ["1,5", "0x10", "nan", "-inf", "Infinity", "1_000", "1d3", "--1", "1e", "e5", ".", "+", "١٢", "1 2", "1e101"]


@pytest.mark.parametrize("word", GOOD)
def test_numbers(word):
    assert decimal(word) == GOOD[word]


@pytest.mark.parametrize("word", BAD)
def test_what_is_no_number(word):
    assert isinstance(decimal(word), str)


def test_all_problems_at_once(tmp_path):
    """Every wrong number and word becomes a sentence with line, element, attribute, value and what to do."""
    text = """<robot name="arm">
<mass value="1,5"/>
<mass value="-1"/>
<mass/>
<origin xyz="0 0"/>
<origin xyz="0 nan 0"/>
<size v="0"/>
<kind v="revolut"/>
<flag v="yes"/>
<name v=""/>
</robot>"""
    file = read_xml(write(tmp_path, text))
    e = file.root.children
    assert np.isnan([file.number(x, "value", least=0, unit="kg") for x in e[:3]]).all()
    assert np.isnan(file.numbers(e[3], "xyz", 3)).all()
    assert np.isnan(file.numbers(e[4], "xyz", 3)).all()
    assert np.isnan(file.number(e[5], "v", above=0, unit="m"))
    assert file.choice(e[6], "v", ["revolute", "prismatic"]) == ""
    assert not file.flag(e[7], "v")
    assert file.word(e[8], "v") == ""
    with pytest.raises(FileError) as caught:
        file.check()
    inside = 'in <robot name="arm">'
    assert caught.value.problems == (
        f'line 2: <mass> {inside}: value="1,5" is not a number; write it with a decimal point, as 1.5',
        f'line 3: <mass> {inside}: value="-1" is below 0 kg; expected it or more',
        f"line 4: <mass> {inside}: has no attribute 'value'; add it",
        f'line 5: <origin> {inside}: xyz="0 0" has 2 numbers; expected 3',
        f"line 6: <origin> {inside}: xyz=\"0 nan 0\" holds 'nan', which is not a finite number; expected a finite one",
        f'line 7: <size> {inside}: v="0" is not above 0 m; expected more',
        f"line 8: <kind> {inside}: v=\"revolut\" is unknown; did you mean 'revolute'?",
        f'line 9: <flag> {inside}: v="yes" is neither; expected true or false',
        f'line 10: <name> {inside}: v="" is empty; expected text',
    )
    assert str(caught.value).startswith(f"{tmp_path / 'a.xml'} has 9 problems:\n  line 2: <mass>")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


def test_mistyped_names_are_problems_and_strange_ones_are_told(tmp_path):
    file = read_xml(write(tmp_path, '<limit lowr="1" colour="red" xmlns:x="u"><masss/><camera/></limit>'))
    found = file.strange(file.root, ["lower", "upper"], ["mass"])
    assert [x if isinstance(x, str) else x.tag for x in found] == ["colour", "camera"]
    assert [text for _, text in file.problems] == [
        "<limit>: attribute 'lowr' is unknown; did you mean 'lower'?",
        "<masss>: is unknown here; did you mean <mass>?",
    ]


def test_names_and_repetitions(tmp_path):
    file = read_xml(write(tmp_path, '<a>\n<link name="b"/>\n<link name="b"/>\n<link/>\n<c/><c/></a>'))
    assert list(file.by_name(file.root.all("link"), "link")) == ["b"]
    assert file.only(file.root, "c") is file.root.all("c")[0]
    assert file.only(file.root, "d") is None
    assert file.only(file.root, "d", required=True) is None
    assert [text for _, text in file.problems] == [
        "<link name=\"b\">: link 'b' is there already, in line 2; rename one",
        "<link>: has no attribute 'name'; add it",
        "<c>: is there twice; expected once, as in line 5",
        "<a>: has no <d>; add one",
    ]
