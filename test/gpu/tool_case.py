"""Tests of the programs here that run burin: each has a burin of its own, which the test makes up."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


class ToolCase(unittest.TestCase):
    program = ""  # that is tested, in this folder
    tool = ""  # the text of the made-up burin, with {python} for the interpreter
    asked = ()  # arguments of every run

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.burin = self.folder / "burin"
        self.burin.write_text(self.tool.format(python=sys.executable))
        self.burin.chmod(0o755)

    def run_it(self, *arguments):
        """The ended process, and what it has written to --json."""
        file = self.folder / "all.json"
        command = [sys.executable, HERE / self.program, self.burin, *self.asked, *arguments, "--out", self.folder / "out",
                   "--json", file]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        return result, json.loads(file.read_text()) if file.exists() else None
