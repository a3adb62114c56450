#!/usr/bin/env python3
"""Prints the closing line of a test run, 'N passed, N failed, N skipped', from ctest's JUnit file."""
import sys
import xml.etree.ElementTree as ElementTree


def reasons_of(case):
    """Why test cases of an entry were skipped."""
    output = case.findtext("system-out") or ""
    return [line[len("SKIPPED: "):] for line in output.splitlines() if line.startswith("SKIPPED: ")]


def main(path, title=""):
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        if case.find("failure") is not None or status == "fail":
            failed.append(case)
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            # A test whose program is not there is "notrun" too; that is a failure, not a choice.
            message = (case.find("skipped").get("message") if case.find("skipped") is not None else "") or ""
            (skipped if "SKIP" in message.upper() or status == "disabled" else failed).append(case)
        else:
            passed.append(case)
    for case in skipped:
        reasons = reasons_of(case)
        print(f"skipped: {case.get('name')}" + (f" ({reasons[0]})" if reasons else ""))
    for case in passed:
        for reason in reasons_of(case):
            print(f"skipped in part: {case.get('name')} ({reason})")
    for case in failed:
        print(f"failed: {case.get('name')}")
    prefix = f"{title}: " if title else ""
    print(f"{prefix}{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
