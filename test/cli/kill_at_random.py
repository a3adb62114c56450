#!/usr/bin/env python3
"""kill_at_random.py BURIN ROUNDS [--tune]: ends `burin compile` and `burin verify` at random moments, and looks at what is left.

The output is the old file or the whole new one; no other file is left, in the folder, among temporary files or in the
cache; and what the cache has gives the same package as a compilation without it. With --tune the compilations measure
candidates, which needs a GPU; their output must verify."""
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
SHAPE = (16, 8, 3, 3)
SKIPPED = 77


def write_weights(path, generator):
    count = SHAPE[0] * SHAPE[1] * SHAPE[2] * SHAPE[3]
    values = [generator.uniform(-1, 1) if generator.random() < 0.3 else 0.0 for _ in range(count)]
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (SHAPE,)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % count, *values))


def knows_nameless_files(folder):
    try:
        os.close(os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600))
        return True
    except OSError:
        return False


def read(path):
    with open(path, "rb") as file:
        return file.read()


def all_files(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


class Trial:
    def __init__(self, burin, folder, tune):
        self.burin, self.folder = burin, folder
        self.cache, self.temporary = os.path.join(folder, "cache"), os.path.join(folder, "tmp")
        os.mkdir(self.temporary)
        self.environment = dict(os.environ, BURIN_CACHE=self.cache, TMPDIR=self.temporary)
        self.tune = tune
        # Two batch sizes, so that there are several kernels.
        self.compile = (["tune", "--plans", "3"] if tune else ["compile"]) + [
            "w.npy", "--input-shape", "8x14x14", "--pad", "1", "--arch", "sm_90", "--batch", "1,2", "-o", "x.burin"]
        self.verify = ["verify", "old.burin", "--against", "w.npy"] + ([] if tune else ["--device", "host"])

    def start(self, arguments):
        return subprocess.Popen([self.burin] + arguments, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def seconds_of(self, arguments):
        begin = time.monotonic()
        if self.start(arguments).wait() != 0:
            sys.exit("burin %s fails by itself" % " ".join(arguments))
        return time.monotonic() - begin

    def is_whole(self, content):
        """Whether this is a package that a compilation would have made."""
        if not self.tune:
            return content == self.normal
        with open(os.path.join(self.folder, "tried.burin"), "wb") as file:
            file.write(content)
        code = self.start(["verify", "tried.burin", "--against", "w.npy"]).wait()
        os.remove(os.path.join(self.folder, "tried.burin"))
        return code == 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def prepare(self):
        write_weights(self.path("w.npy"), random.Random(1))
        first = self.seconds_of(self.compile)  # with an empty cache
        self.normal = read(self.path("x.burin"))
        os.rename(self.path("x.burin"), self.path("old.burin"))
        return {"compile": first, "verify": self.seconds_of(self.verify)}

    def faults_after(self, what, had_output):
        faults = []
        files = [name for name in all_files(self.folder) if not name.startswith("cache/")]
        allowed = {"w.npy", "old.burin"} | ({"x.burin"} if had_output or what == "compile" else set())
        faults += ["%s is left" % name for name in files if name not in allowed]
        faults += ["%s is left in the cache" % name for name in all_files(self.cache) if "tmp" in name]
        if os.path.exists(self.path("x.burin")):
            content = read(self.path("x.burin"))
            if content != b"old" and not self.is_whole(content):
                faults.append("the output is neither the old one nor a whole new one (%d bytes)" % len(content))
        elif had_output:
            faults.append("the old output is gone")
        return faults

    def cache_faults(self):
        """What the cache has by now gives the package that a compilation without it gives."""
        self.seconds_of(self.compile)
        content = read(self.path("x.burin"))
        os.remove(self.path("x.burin"))
        return [] if self.is_whole(content) else ["the cache gives another package"]


def main():
    burin, rounds, tune = os.path.abspath(sys.argv[1]), int(sys.argv[2]), "--tune" in sys.argv[3:]
    generator = random.Random(20261124)
    with tempfile.TemporaryDirectory() as folder:
        if not knows_nameless_files(folder):
            print("skipped: the file system knows no files without a name, of which a killed process leaves nothing")
            sys.exit(SKIPPED)
        trial = Trial(burin, folder, tune)
        seconds = trial.prepare()
        killed, faults = 0, []
        for number in range(rounds):
            what = "verify" if number % 3 == 2 else "compile"
            had_output = number % 2 == 0
            if os.path.exists(trial.path("x.burin")):
                os.remove(trial.path("x.burin"))
            if had_output:
                with open(trial.path("x.burin"), "wb") as file:
                    file.write(b"old")
            longest = seconds[what]
            if what == "compile" and number % 4 != 0:
                for name in all_files(trial.cache):
                    os.remove(os.path.join(trial.cache, name))
            elif what == "compile":
                longest /= 3  # what is cached by now is taken
            process = trial.start(trial.compile if what == "compile" else trial.verify)
            time.sleep(generator.random() * longest)
            process.send_signal(SIGNALS[number % len(SIGNALS) if number % 7 else 0])
            killed += process.wait() < 0
            found = trial.faults_after(what, had_output)
            if number % 5 == 4:
                found += trial.cache_faults()
            faults += ["round %d, %s: %s" % (number, what, fault) for fault in found]
    for fault in faults:
        print(fault)
    print("%d rounds, %d ended by the signal, %d faults" % (rounds, killed, len(faults)))
    if killed < rounds // 4:
        sys.exit("too few were ended for this to say anything")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
