import assert from "node:assert/strict";
import { test } from "node:test";
import { parseKubeletFlags } from "./flags.ts";
import { reportedVersion, versionText } from "./version-flag.ts";

function printed(...flags: readonly string[]): string | undefined {
  return versionText(parseKubeletFlags(flags).node.version, "linux/amd64");
}

test("--version prints the line that kubeadm parses, =raw its parts, =false nothing", () => {
  for (const flag of ["--version", "--version=true", "--version=1"]) assert.equal(printed(flag), "Kubernetes v1.36.2");
  for (const flags of [[], ["--version=false"], ["--version", "--version=0"]]) {
    assert.equal(printed(...flags), undefined);
  }
  assert.match(
    printed("--version=raw") ?? "",
    /^version\.Info\{Major:"1", Minor:"36", EmulationMajor:"", .*GitVersion:"v1\.36\.2", .*Platform:"linux\/amd64"\}$/u,
  );
  // kubeadm's own pattern.
  assert.match(
    printed("--version") ?? "",
    /^\s*Kubernetes v((0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-\w.+]*)?)\s*$/u,
  );
});

test("the word after --version is not its value", () => {
  assert.throws(() => parseKubeletFlags(["--version", "raw"]), /unknown command "raw"/u);
});

test("--version=vX.Y.Z… sets the reported version, within the same release", () => {
  const { version } = parseKubeletFlags(["--version=v1.36.2-gke.100", "--version=false"]).node;
  assert.equal(reportedVersion(version, "0.1.0"), "v1.36.2-gke.100");
  assert.equal(reportedVersion(undefined, "0.1.0"), "v1.36.2+podwright.0.1.0");
  assert.equal(printed("--version=v1.36.2-gke.100"), undefined);
  assert.equal(printed("--version=v1.36.2-gke.100", "--version"), "Kubernetes v1.36.2-gke.100");
  assert.throws(
    () => parseKubeletFlags(["--version=v1.35.0"]),
    /invalid argument "v1\.35\.0" for --version: version "v1\.35\.0" must match major\/minor\/patch of default version "v1\.36\.2"/u,
  );
  assert.throws(() => parseKubeletFlags(["--version=v1"]), /could not parse "v1" as version/u);
  assert.throws(() => parseKubeletFlags(["--version=maybe"]), /invalid argument "maybe" for --version/u);
});
