import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { expanded, unitCommand } from "./kubelet-unit.ts";
import { engineUnit, kubeletDropIn, kubeletUnit, type ServicePlaces } from "./service-units.ts";

const places: ServicePlaces = {
  ...{ manifests: "/etc/podwright/manifests", units: "/u", booted: "/b" },
  launcher: "/usr/lib/podwright/bin/podwright",
};

const characters = Array.from("ab/ \t\n\r\"'\\$%{}=;#é\u007f");

function wordsOf(unit: string): string[] {
  const command = unitCommand(unit);
  return expanded(command?.parameters ?? "", command?.environment ?? {});
}

test("usual paths are written without quotes", () => {
  const unit = engineUnit(places, "/var/lib/podwright");
  const command = "engine --stay --state-dir /var/lib/podwright --manifests /etc/podwright/manifests";
  assert.ok(unit.includes(`\nExecStart=/usr/lib/podwright/bin/podwright ${command}\n`), unit);
  assert.ok(unit.includes("\nDescription=podwright, with the pods of /etc/podwright/manifests\n"), unit);
});

test("any path reaches the program unchanged, and none adds a line to the unit", () => {
  const path = fc.string({ unit: fc.constantFrom(...characters) }).map((text) => `/${text}`);
  fc.assert(
    fc.property(path, path, (first, second) => {
      const unit = engineUnit({ ...places, manifests: first }, second);
      assert.deepEqual(wordsOf(unit), ["engine", "--stay", "--state-dir", second, "--manifests", first]);
      assert.equal(unit.split(/[\n\r]/u).length, engineUnit(places, "/s").split("\n").length);
      assert.ok(!/\\$/mu.test(unit), "no line is continued");
      assert.deepEqual(wordsOf(kubeletUnit(places, ["--config", first])), ["kubelet", "--config", first]);
    }),
  );
});

test("a launcher's path with a blank is quoted; one that systemd could misread is rejected", () => {
  const blank = { ...places, launcher: "/opt/pod wright/bin/podwright" };
  assert.match(kubeletDropIn(blank, "$ARGS"), /^ExecStart="\/opt\/pod wright\/bin\/podwright" kubelet \$ARGS$/mu);
  for (const character of ['"', "'", "\\", "$", "%", "\n"]) {
    const launcher = `/opt/a${character}b/podwright`;
    assert.throws(() => engineUnit({ ...places, launcher }, "/s"), /systemd cannot start/u);
    assert.throws(() => kubeletDropIn({ ...places, launcher }, ""), /systemd cannot start/u);
  }
});

test("the drop-in and the units have the same supervision settings", () => {
  const settings = (unit: string): string[] => unit.split("\n").filter((line) => /^\w+=/u.test(line));
  const dropIn = settings(kubeletDropIn(places, "")).filter((line) => !line.startsWith("ExecStart="));
  assert.equal(dropIn.length, 6);
  for (const unit of [engineUnit(places, "/s"), kubeletUnit(places, [])]) {
    assert.deepEqual(
      dropIn.filter((line) => settings(unit).includes(line)),
      dropIn,
    );
  }
});
