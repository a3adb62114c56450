#!/usr/bin/env python3
"""Opens pages of `burin study` in a browser without a window, light and dark, wide and narrow, and uses them.

    check_study.py PAGE...

Prints what is wrong and fails; exits with 77 where there is no browser.
"""
import sys

from page_check import PageCheck, check_pages


class StudyCheck(PageCheck):
    texts = PageCheck.texts + (".axis", ".curve text", ".rule", "#candidates td")

    def own_parts(self):
        self.words()
        self.curves()
        self.tables()
        self.legend()
        self.maps()
        self.points()

    def count(self, selector):
        return self.page.evaluate(f"document.querySelectorAll({selector!r}).length")

    def texts_of(self, selector):
        return self.page.evaluate(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")

    def ranking(self, point):
        return self.document["points"][point]["ranking"]

    def words(self):
        predicted = self.document["source"] == "model"
        shown = self.page.evaluate("document.getElementById('predicted').checkVisibility()")
        self.expect(shown == predicted, "it does not say plainly whether figures are predictions")
        self.expect(self.texts_of(".rule") == [rule["text"] for curve in self.document["curves"]
                                               for rule in self.document["rules"] if rule["axis"] == curve["axis"]],
                    f"the rules are {self.texts_of('.rule')}")
        self.expect(self.texts_of("#notes li") == self.document["notes"], f"the notes are {self.texts_of('#notes li')}")

    def markers(self):
        """Of the charts of time: a marker for each figure."""
        return sum(len({ranked["algorithm"] for ranked in self.ranking(point)})
                   for curve in self.document["curves"] for point in curve["points"])

    def curves(self):
        self.expect(self.count("svg.curve") == 2 * len(self.document["curves"]), "a curve is absent")
        self.expect(self.document["curves"], "there is no curve, and nothing was checked")
        markers = self.count(".pair .chart:first-child .marker")
        self.expect(markers == self.markers() > 0, f"{markers} markers for {self.markers()} times")
        unlike = self.page.evaluate("""[...document.querySelectorAll('#legend label')].map(e =>
            e.querySelector('.marker').getAttribute('d') + e.querySelector('.marker').getAttribute('class') +
            e.querySelector('.series').getAttribute('class'))""")
        self.expect(len(set(unlike)) == len(self.document["algorithms"]), f"algorithms look alike: {unlike}")

    def tables(self):
        for number, curve in enumerate(self.document["curves"]):
            rows = self.count(f"#curves > section:nth-child({number + 1}) tbody tr")
            self.expect(rows == len(curve["points"]), f"{curve['axis']} has {rows} rows")
            best = self.count(f"#curves > section:nth-child({number + 1}) tbody .best")
            won = sum(bool(self.ranking(point)) for point in curve["points"])
            self.expect(best == won, f"{curve['axis']} shows {best} winners of {won}")

    def legend(self):
        names = [name.strip() for name in self.texts_of("#legend label")]
        self.expect(names == [algorithm["name"] for algorithm in self.document["algorithms"]], f"the legend is {names}")
        self.page.evaluate("document.querySelector('#legend input').focus()")
        self.page.press(" ", 32)
        left = self.count(".pair .chart:first-child .marker")
        gone = sum(any(ranked["algorithm"] == 0 for ranked in self.ranking(point))
                   for curve in self.document["curves"] for point in curve["points"])
        self.expect(left == self.markers() - gone, f"{left} markers are left of {self.markers()} without {gone}")
        self.page.press(" ", 32)
        self.expect(self.count(".pair .chart:first-child .marker") == self.markers(), "the curve does not come back")

    def maps(self):
        shown = self.page.evaluate("document.getElementById('maps-section').checkVisibility()")
        self.expect(shown == bool(self.document["maps"]), "maps are shown where there are none, or are not shown")
        cells = self.texts_of("#maps td")
        points = [point for each in self.document["maps"] for row in each["points"] for point in row]
        self.expect(len(cells) == len(points), f"{len(cells)} cells for {len(points)} points")
        for cell, point in zip(cells, points):
            ranking = self.ranking(point)
            wanted = self.document["algorithms"][ranking[0]["algorithm"]]["name"] if ranking else ""
            self.expect(wanted in cell and cell, f"a cell says '{cell}' and not '{wanted}'")

    def points(self):
        for number in (len(self.document["points"]) - 1, 0):
            self.choose("point", str(number))
            candidates = self.document["points"][number]["candidates"]
            rows = self.count("#candidates tbody tr")
            self.expect(rows == max(1, len(candidates)), f"{rows} rows for {len(candidates)} candidates")
            if self.ranking(number):
                first = self.page.evaluate("document.querySelector('#candidates tbody tr').textContent")
                self.expect("the fastest" in first, f"the first candidate is {first}")


if __name__ == "__main__":
    check_pages(StudyCheck, sys.argv[1:])
