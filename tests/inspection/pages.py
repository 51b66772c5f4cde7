"""Read a report as its readers do: tiles by name, cells by heading, bars by what they say."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """Parse a page strictly: every element must be closed in order.

    Parameters
    ----------
    text : str
        The page.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.scripts = []
        self._builder = ET.TreeBuilder()
        self.feed(text)
        self.close()
        assert not self.open
        self.root = self._builder.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._builder.start(tag, {name: value or "" for name, value in attrs})
        if tag == "script":
            self.scripts.append([dict(attrs), ""])
        if tag in VOID:
            self._builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):  # inside SVG
        self.tags.append(tag)
        self.attributes += attrs
        self._builder.start(tag, {name: value or "" for name, value in attrs})
        self._builder.end(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self._builder.end(tag)

    def handle_data(self, text):
        if self.open:
            self._builder.data(text)
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += text
        elif "style" not in self.open:
            self.texts.append(text)

    @property
    def data(self):
        """The object that the script of the page reads."""
        return json.loads(next(text for attrs, text in self.scripts if attrs.get("id") == "data"))

    @property
    def words(self):
        """All that can be read, with plain spaces."""
        return plain("".join(self.texts))

    @property
    def lead(self):
        """The first sentences."""
        return said(self._only("p", "lead"))

    @property
    def tiles(self):
        """By name: the value and the note below it."""
        found = {}
        for tile in self._only("dl", "tiles"):
            name, value, note = said(tile.find("dt")), tile.find("dd/b"), tile.find("dd/span")
            assert name not in found
            found[name] = said(value), said(note)
        return found

    @property
    def facts(self):
        """By name: the lines of "Reproduce this"."""
        parts = list(self._only("dl", "facts"))
        assert [part.tag for part in parts] == ["dt", "dd"] * (len(parts) // 2)
        return {said(k): said(v) for k, v in zip(parts[::2], parts[1::2], strict=True)}

    @property
    def charts(self):
        """By heading: the drawing."""
        return {said(figure.find("h3")): figure.find("svg") for figure in self.root.iter("figure")}

    def table(self, caption):
        """Return rows by name, and in them cells by heading.

        A cell is its text and the small text below, or the description of its drawing.
        """
        (table,) = (t for t in self.root.iter("table") if said(t.find("caption")) == caption)
        heads = [said(cell) for cell in table.find("thead/tr")]
        assert len(set(heads)) == len(heads)
        rows = {}
        for row in table.find("tbody"):
            cells = [_cell(cell) for cell in row]
            assert cells[0][0] not in rows
            rows[cells[0][0]] = dict(zip(heads, cells, strict=True))
        return rows

    def featured(self, caption):
        """Return the names of the rows that are marked."""
        (table,) = (t for t in self.root.iter("table") if said(t.find("caption")) == caption)
        return [_cell(row[0])[0] for row in table.find("tbody") if row.get("class") == "featured"]

    def _only(self, tag, kind):
        (found,) = (part for part in self.root.iter(tag) if part.get("class") == kind)
        return found


def _cell(cell):
    drawing = cell.find("svg")
    if drawing is not None:
        return drawing.get("aria-label"), drawing
    small = cell.find("small")
    below = "" if small is None else said(small)
    return said(cell).removesuffix(below).strip(), below


def plain(text):
    """Return a text with plain spaces."""
    return " ".join(text.replace("\u202f", " ").split())


def said(element):
    """Return the text of an element and of what is in it."""
    return plain("".join(element.itertext()))


def numbers(text):
    """Return the numbers of a text, in order."""
    return [float(part) for part in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", text)]


def counted(chart):
    """Return what the bars of a histogram say: (range, class if it has one) and number of bags."""
    found = {}
    for bar in chart.iter("g"):
        title = bar.find("title")
        if title is not None:
            n_bags, *ends = numbers(re.sub(r"“.*?”", "", said(title)))
            assert len(ends) == 2
            found[(*ends, bar.get("data-class"))] = int(n_bags)
    return found
