#!/usr/bin/env python3
"""Opens pages of `burin report` in a browser without a window, light and dark, wide and narrow, and uses them.

    check_report.py PAGE...

Prints what is wrong and fails; exits with 77 where there is no browser.
"""
import sys

from page_check import PageCheck, check_pages


class ReportCheck(PageCheck):
    texts = PageCheck.texts + ("#steps th button", ".axis")

    def own_parts(self):
        self.parts()
        self.order_and_find()
        self.keyboard()
        self.links()

    def names(self):
        return self.page.evaluate("[...document.querySelectorAll('#steps tbody button')].map(e => e.textContent)")

    def programs(self, batch):
        return [program for program in self.document["programs"] if program["batch"] == batch]

    def parts(self):
        batches = sorted({program["batch"] for program in self.document["programs"]})
        for batch in batches[::-1]:  # ends with what the page begins with
            self.choose("batch", str(batch))
            steps = [step for program in self.programs(batch) for step in program["steps"]]
            self.expect(steps, f"batch {batch} has no steps")
            self.expect(self.names() == [step["name"] for step in steps], f"batch {batch} shows {self.names()}")
            bars = self.page.evaluate("document.querySelectorAll('#times > div').length")
            self.expect(bars == len(steps), f"{bars} bars for {len(steps)} steps")
            blocks = self.page.evaluate("document.querySelectorAll('#arena > i').length")
            whole = self.document["package"]["whole_network"]
            tensors = [b for p in self.programs(batch) for b in p["buffers"] if b["home"] == "arena" and b["first"] >= 0]
            self.expect(blocks == (len(tensors) if whole else 0), f"{blocks} blocks for {len(tensors)} tensors of the arena")
            dots = self.page.evaluate("document.querySelectorAll('#lanes circle').length")
            self.expect(dots == (len(steps) if whole else 0), f"{dots} dots for {len(steps)} steps")

    def order_and_find(self):
        steps = [step for program in self.programs(min(p["batch"] for p in self.document["programs"]))
                 for step in program["steps"]]
        self.choose("order", "us")
        slowest = max(steps, key=lambda step: step["us"] or 0)["name"]
        self.expect(self.names()[0] == slowest, f"the slowest is {slowest}, and {self.names()[0]} is first")
        self.choose("order", "run")
        self.page.evaluate(f"""(e => {{ e.value = {slowest!r}; e.dispatchEvent(new Event('input')); }})
                               (document.getElementById('find'))""")
        found = [step["name"] for step in steps if slowest.lower() in step["name"].lower()]
        self.expect(set(found) <= set(self.names()) and len(self.names()) <= len(steps), f"finds {self.names()}")
        self.page.evaluate("(e => { e.value = ''; e.dispatchEvent(new Event('input')); })(document.getElementById('find'))")

    def keyboard(self):
        self.page.evaluate("document.querySelector('#steps tbody tr:last-child button').focus()")
        self.page.press("Enter", 13)
        last = self.names()[-1]
        shown = self.page.evaluate("[document.getElementById('details').checkVisibility(), document.activeElement.textContent,"
                                   " document.getElementById('details-body').textContent]")
        self.expect(shown[0] and shown[1].endswith(last), f"Enter on {last} leads to {shown[:2]}")
        for part in ("Provider", "Symbol", "Writes", "Why this one"):
            self.expect(part in shown[2], f"the details do not say '{part}'")
        self.page.press("Escape", 27)
        left = self.page.evaluate("[document.getElementById('details').hidden, document.activeElement.textContent]")
        self.expect(left == [True, last], f"Escape leads to {left}")

    def links(self):
        for kernel in self.document["kernels"]:
            for file in kernel["dumps"]:
                name = self.page.evaluate(f"decodeURIComponent({file['href']!r})")
                self.expect((self.path.parent / name).is_file(), f"the link {file['href']} leads nowhere")


if __name__ == "__main__":
    check_pages(ReportCheck, sys.argv[1:])
