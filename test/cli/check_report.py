#!/usr/bin/env python3
"""Opens pages of `burin report` in a browser without a window, light and dark, wide and narrow, and uses them.

    check_report.py PAGE...

Prints what is wrong and fails; exits with 77 where there is no browser.
"""
import re
import sys
from pathlib import Path

from browser import Browser, find_browser

SKIPPED = 77
WIDTHS = {"wide": 1400, "narrow": 390}
LEAST_CONTRAST = 4.5  # of text: WCAG 2, level AA

# What a reader who does not see the page, or has no mouse, needs: each gives a list of what lacks it.
RULES = {
    "a control without a name": """[...document.querySelectorAll('select, input, button')].filter(e => !(
        e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)""",
    "a column without a scope": "[...document.querySelectorAll('thead th:not([scope])')].map(e => e.outerHTML)",
    "a row without a header": "[...document.querySelectorAll('tbody tr')].filter(e => !e.querySelector('th[scope=row]'))"
                              ".map(e => e.outerHTML)",
    "a drawing without a text": """[...document.querySelectorAll('[role=img]')].filter(e => e.checkVisibility() &&
        !document.getElementById(e.getAttribute('aria-labelledby'))?.textContent.trim()).map(e => e.id)""",
    "a section without a heading": """[...document.querySelectorAll('section, aside')].filter(e =>
        !document.getElementById(e.getAttribute('aria-labelledby'))).map(e => e.id)""",
    "a landmark that is absent": "['header', 'main'].filter(e => !document.querySelector(e))",
    "an id that stands twice": """[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) =>
        all.indexOf(id) !== i)""",
    "a place that scrolls and no key reaches": "[...document.querySelectorAll('.scroll:not([tabindex])')].map(e => e.id)",
}


def luminance(colour):
    def linear(value):
        value /= 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
    red, green, blue = (linear(float(part)) for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a, b):
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


class Check:
    def __init__(self, page, path, name):
        self.page, self.path, self.name, self.faults = page, Path(path), name, []
        self.document = page.evaluate("JSON.parse(document.getElementById('document').textContent)")

    def expect(self, condition, what):
        if not condition:
            self.faults.append(f"{self.path.name}, {self.name}: {what}")

    def choose(self, select, value):
        self.page.evaluate(f"""(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change')); }})
                               (document.getElementById({select!r}))""")

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
        scripts = self.page.evaluate("document.querySelectorAll('script').length")
        self.expect(scripts == 2, f"{scripts} scripts, and the page has its data and one script of its own")

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

    def reading(self):
        for rule, expression in RULES.items():
            self.expect((found := self.page.evaluate(expression)) == [], f"{rule}: {found[:3]}")

    def colours(self, dark):
        def of(selector, what="color"):
            return self.page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{what.replace('-', '')}")
        def check(is_dark):
            paper = of("body", "backgroundColor")
            self.expect((luminance(paper) < 0.1) == is_dark, f"the paper is {paper}")
            for selector in ("body", ".muted", ".tool", "summary", "#steps th button", ".axis"):
                self.expect(contrast(of(selector), paper) >= LEAST_CONTRAST,
                            f"{selector} is {of(selector)} on {paper}: {contrast(of(selector), paper):.2f}")
        check(dark)
        self.choose("theme", "light" if dark else "dark")
        check(not dark)
        self.choose("theme", "")
        check(dark)

    def run(self, dark, width):
        state = self.page.evaluate("document.documentElement.dataset.state")
        self.expect(state == "ready", f"the page is {state}")
        try:
            self.parts()
            self.order_and_find()
            self.keyboard()
            self.links()
            self.reading()
            self.colours(dark)
        except (RuntimeError, IndexError) as fault:  # there is nothing where a part should be
            self.faults.append(f"{self.path.name}, {self.name}: {fault}")
        extent = self.page.evaluate("document.documentElement.scrollWidth")
        self.expect(extent <= width, f"the page is {extent} wide in a window of {width}")
        self.faults += [f"{self.path.name}, {self.name}: {fault}" for fault in self.page.faults]
        return self.faults


def main():
    if find_browser() is None:
        print("SKIPPED: there is no browser (.ci/setup.sh browser installs one)")
        sys.exit(SKIPPED)
    faults, opened = [], 0
    with Browser() as browser:
        for path in sys.argv[1:]:
            for name, width in WIDTHS.items():
                for dark in (False, True):
                    page = browser.open(path, width=width, dark=dark)
                    faults += Check(page, path, f"{name}, {'dark' if dark else 'light'}").run(dark, width)
                    opened += 1
    print("\n".join(faults) + f"\n{opened} pages opened, {len(faults)} faults")
    sys.exit(bool(faults) or opened == 0)


if __name__ == "__main__":
    main()
