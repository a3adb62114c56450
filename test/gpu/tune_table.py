#!/usr/bin/env python3
"""The planner's choice against the tuned plan, from `burin inspect --json` of tuned packages: tune_table.py FILE..."""
import json
import math
import sys

GOAL_RATIO, GOAL_SHARE = 1.25, 0.8


def us(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


rows = []
faults = 0
print("| layer | batch | planner | model | tuned | planner / tuned | tuned plan |")
print("| --- | --- | --- | --- | --- | --- | --- |")
for path in sys.argv[1:]:
    for row in json.load(open(path))["rows"]:
        tuning = row["tuning"]
        if tuning is None:
            continue
        own, best = tuning["candidates"][0], tuning["candidates"][tuning["chosen"]]
        faults += sum("fault" in candidate for candidate in tuning["candidates"])
        # A plan of the planner's that fails is as far from the tuned one as can be.
        ratio = math.inf if "fault" in own else own["us"] / best["us"]
        rows.append((row["batch"], ratio))
        print(f"| {row['layer']}, {row['shape']} | {row['batch']} | "
              f"{'failed' if 'fault' in own else us(own['us'])} | {us(own['predicted_us'])} | "
              f"{us(best['us'])} | {ratio:.2f} | {best['plan']} |")
if not rows:
    sys.exit("no row was tuned")
print()
for name, ratios in [(f"batch {batch}", [r for b, r in rows if b == batch]) for batch in sorted({b for b, _ in rows})] + [
        ("all", [r for _, r in rows])]:
    within = sum(ratio <= GOAL_RATIO for ratio in ratios)
    finite = [math.log(ratio) for ratio in ratios if math.isfinite(ratio)]
    mean = math.exp(sum(finite) / len(finite)) if finite else math.inf
    print(f"{name}: within 25 % of tuned on {within} of {len(ratios)} ({100 * within / len(ratios):.0f} %), "
          f"geometric mean of planner / tuned {mean:.3f}, worst {max(ratios):.2f}")
share = sum(ratio <= GOAL_RATIO for _, ratio in rows) / len(rows)
print(f"goal: {100 * GOAL_SHARE:.0f} % within 25 %: {'met' if share >= GOAL_SHARE else 'not met'}; "
      f"{faults} candidates failed")
