"""Scripts that a newcomer runs first, where what they need is missing."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

from program import TIMEOUT, ProgramTest, main

ROOT = Path(__file__).resolve().parent.parent.parent


class Presets(ProgramTest):
    def test_tests_are_built_also_after_the_demo(self):
        """The demo turns them off in the folder of the preset release; what a preset does not name stays as it was."""
        presets = {preset["name"]: preset for preset in
                   json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
        self.assertIn("--preset release -DHEARTH_TESTS=OFF", (ROOT / "scripts/demo.sh").read_text())
        self.assertEqual(presets["base"]["cacheVariables"]["HEARTH_TESTS"], "ON")
        for name, preset in presets.items():
            self.assertEqual(preset.get("inherits"), None if name == "base" else "base")
            self.assertTrue(name == "base" or "HEARTH_TESTS" not in preset["cacheVariables"])


class Oracles(ProgramTest):
    def test_without_their_environment_they_say_what_to_run(self):
        """Every script that needs packages, in a Python that has none. Planted: another exception than the hook's."""
        scripts = [path for path in sorted((ROOT / "scripts/oracle").glob("*.py"))
                   if "import environment" in path.read_text()]
        self.assertGreater(len(scripts), 10)
        running = [subprocess.Popen([sys.executable, "-B", "-S", str(path), "--help"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for path in scripts]
        for path, process in zip(scripts, running):
            out, message = process.communicate(timeout=TIMEOUT)
            self.assertEqual((process.returncode, out), (1, b""), path)
            self.assertRegex(message.decode(), rf"^{path.name}: no Python package '\w+' here[^\n]*\n"
                             r"  python=\$\(.*/scripts/oracle/setup\.sh\)\n  \$python .* --help\n$")


if __name__ == "__main__":
    main()
