"""Pages of HTML as tests look at them: are they well-formed, and what do they fetch."""

from html.parser import HTMLParser

VOID = ("meta", "img", "br")


class Checked(HTMLParser):
    """Complains of marks that do not close, and collects what is fetched, and what is read."""

    def __init__(self, page):
        super().__init__()
        self.open, self.fetched, self.ids, self.links, self.texts = [], [], [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.fetched += [v for k, v in attrs if k in ("src", "srcset")]
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Marks of SVG that end where they begin."""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())
