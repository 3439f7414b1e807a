"""Do the CycloneDX documents of `make sbom` list what we deliver, and nothing else? Run by `make test-sbom`."""

import json
import pathlib
import subprocess
import tomllib
import unittest
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).parent.parent
FOLDER = ROOT / "target/sbom"
NAMES = ["agent-java", "agent-node", "agent-python", "page", "tacho"]
JAR = ROOT / "agent/java/target/tachograph-agent.jar"


def text(name):
    return (FOLDER / f"{name}.cdx.json").read_text()


def components(name):
    return json.loads(text(name)).get("components", [])


def versions(name):
    """Name and version of each component."""
    return {(component["name"], component["version"]) for component in components(name)}


def licences(component):
    """Identifiers and expressions of SPDX."""
    chosen = [choice.get("expression") or choice["license"].get("id") for choice in component.get("licenses", [])]
    return [licence for licence in chosen if licence]


class Documents(unittest.TestCase):
    def test_every_document_follows_the_schema(self):
        for name in NAMES:
            version = SchemaVersion.from_version(json.loads(text(name))["specVersion"])
            self.assertIsNone(JsonStrictValidator(version).validate_str(text(name)), name)

    def test_an_invalid_document_does_not_follow_the_schema(self):
        document = json.loads(text("tacho"))
        document["components"][0]["type"] = "crate"
        self.assertIsNotNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)))

    def test_everything_has_a_licence(self):
        for name in NAMES:
            delivered = json.loads(text(name))["metadata"]["component"]
            self.assertEqual(licences(delivered), ["Apache-2.0"], name)
            for component in components(name):
                self.assertTrue(licences(component), (name, component["name"]))

    def test_third_party_components_have_a_package_url(self):
        for name in NAMES:
            for component in components(name):
                is_ours = component["name"].startswith(("tacho-", "tachograph-"))
                self.assertTrue(is_ours or component["purl"].startswith("pkg:"), (name, component["name"]))


class Binary(unittest.TestCase):
    """`cargo metadata` names the dependencies of each crate. It unites the features of the whole workspace, so some optional
    dependencies that it names are not in the binary."""

    @classmethod
    def setUpClass(cls):
        host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
        host = host.split("host: ")[1].split()[0]
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
        metadata = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)
        cls.packages = {package["id"]: package for package in metadata["packages"]}
        cls.nodes = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}

    def is_macro(self, package):
        return any("proc-macro" in target["kind"] for target in self.packages[package]["targets"])

    def reachable(self, needed):
        """The crates that `tacho-cli` reaches by dependencies for which `needed` is true, without itself and without macros."""
        found, queue = set(), [key for key, package in self.packages.items() if package["name"] == "tacho-cli"]
        while queue:
            package = queue.pop()
            if package not in found and not self.is_macro(package):
                found.add(package)
                queue += [dependency["pkg"] for dependency in self.nodes[package] if needed(package, dependency)]
        names = {(self.packages[key]["name"], self.packages[key]["version"]) for key in found}
        return {(name, version) for name, version in names if name != "tacho-cli"}

    @staticmethod
    def is_normal(_, dependency):
        return any(kind["kind"] is None for kind in dependency["dep_kinds"])

    def is_unconditional(self, package, dependency):
        name = self.packages[dependency["pkg"]]["name"]
        return any(
            declared["name"] == name and declared["kind"] is None and not declared["optional"] and not declared["target"]
            for declared in self.packages[package]["dependencies"]
        )

    def test_every_crate_of_the_binary_is_listed(self):
        needed = self.reachable(self.is_unconditional)
        self.assertGreater(len(needed), 50)
        self.assertEqual(needed - versions("tacho"), set())

    def test_no_crate_of_tests_macros_or_build_scripts_is_listed(self):
        self.assertEqual(versions("tacho") - self.reachable(self.is_normal), set())
        tests = self.reachable(lambda _, dependency: True) - self.reachable(self.is_normal)
        self.assertGreater(len(tests), 5)
        self.assertEqual(versions("tacho") & tests, set())


class Packages(unittest.TestCase):
    def test_npm_packages_are_those_of_the_lock_file_that_are_not_for_development(self):
        for name, folder in [("page", "ui"), ("agent-node", "agent/node")]:
            lock = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
            delivered = {
                (path.rpartition("node_modules/")[2], package["version"])
                for path, package in lock.items()
                if path and not package.get("dev")
            }
            self.assertEqual(versions(name), delivered, name)

    def test_the_python_agent_has_the_dependencies_of_its_project(self):
        project = tomllib.loads((ROOT / "agent/python/pyproject.toml").read_text())["project"]
        self.assertEqual(project["dependencies"], [], "this test expects no dependency")
        self.assertEqual(versions("agent-python"), set())

    def test_the_java_agent_lists_the_groups_of_its_classes(self):
        entries = zipfile.ZipFile(JAR).namelist()
        classes = [entry.removeprefix("inst/") for entry in entries if entry.endswith((".class", ".classdata"))]
        groups = {".".join(entry.split("/")[:2]) for entry in classes}
        self.assertEqual(groups, {"io.tachograph", "net.bytebuddy"})
        self.assertEqual({component["group"] for component in components("agent-java")}, groups)
        names = {component["name"] for component in components("agent-java")}
        modules = {"tachograph-api", "tachograph-bootstrap", "tachograph-core", "tachograph-probes"}
        self.assertEqual(names, modules | {"byte-buddy"})

    def test_the_licences_of_java_libraries_are_allowed(self):
        allowed = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"]
        for component in components("agent-java"):
            self.assertLessEqual(set(licences(component)), set(allowed), component["name"])


if __name__ == "__main__":
    unittest.main()
