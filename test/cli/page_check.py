"""What holds for every page that burin makes, checked in a browser without a window: light and dark, wide and narrow.

A page's own check derives from PageCheck, and its main() is check_pages().
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


class PageCheck:
    texts = ("body", ".muted", ".tool", "summary")  # whose colours must be legible

    def __init__(self, page, path, name):
        self.page, self.path, self.name, self.faults = page, Path(path), name, []
        self.document = page.evaluate("JSON.parse(document.getElementById('document').textContent)")

    def expect(self, condition, what):
        if not condition:
            self.faults.append(f"{self.path.name}, {self.name}: {what}")

    def choose(self, select, value):
        self.page.evaluate(f"""(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change')); }})
                               (document.getElementById({select!r}))""")

    def own_parts(self):
        """What only this kind of page has."""
        raise NotImplementedError

    def scripts(self):
        scripts = self.page.evaluate("document.querySelectorAll('script').length")
        self.expect(scripts == 3, f"{scripts} scripts, and the page has its data, what all pages share, and its own")

    def reading(self):
        for rule, expression in RULES.items():
            self.expect((found := self.page.evaluate(expression)) == [], f"{rule}: {found[:3]}")

    def colours(self, dark):
        def of(selector, what="color"):
            return self.page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{what.replace('-', '')}")
        def check(is_dark):
            paper = of("body", "backgroundColor")
            self.expect((luminance(paper) < 0.1) == is_dark, f"the paper is {paper}")
            for selector in self.texts:
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
            self.own_parts()
            self.scripts()
            self.reading()
            self.colours(dark)
        except (RuntimeError, IndexError) as fault:  # there is nothing where a part should be
            self.faults.append(f"{self.path.name}, {self.name}: {fault}")
        extent = self.page.evaluate("document.documentElement.scrollWidth")
        self.expect(extent <= width, f"the page is {extent} wide in a window of {width}")
        self.faults += [f"{self.path.name}, {self.name}: {fault}" for fault in self.page.faults]
        return self.faults


def check_pages(check, paths):
    """Prints what is wrong with the pages and ends the program: 0, 1, or SKIPPED where there is no browser."""
    if find_browser() is None:
        print("SKIPPED: there is no browser (.ci/setup.sh browser installs one)")
        sys.exit(SKIPPED)
    faults, opened = [], 0
    with Browser() as browser:
        for path in paths:
            for name, width in WIDTHS.items():
                for dark in (False, True):
                    page = browser.open(path, width=width, dark=dark)
                    faults += check(page, path, f"{name}, {'dark' if dark else 'light'}").run(dark, width)
                    opened += 1
    print("\n".join(faults) + f"\n{opened} pages opened, {len(faults)} faults")
    sys.exit(bool(faults) or opened == 0)
