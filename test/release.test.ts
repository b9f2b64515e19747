import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withSection } from "../scripts/change-log.ts";
import { checksums } from "../scripts/checksums.ts";
import { sourceEpoch } from "../scripts/repository.ts";
import { type LockFile, sbomOf } from "../scripts/sbom.ts";
import { version } from "../src/base/version.ts";

const root = join(import.meta.dirname, "..");
const packages = [{ name: "@a/b", version: "1.2.3", license: "(Apache-2.0 AND BSD-3-Clause)", notice: "" }];
const lock: LockFile = {
  packages: {
    "node_modules/node": { version: "26.10.0" },
    "node_modules/@a/b": {
      version: "1.2.3",
      resolved: "https://registry.example/b.tgz",
      integrity: `sha512-${Buffer.from([1, 255]).toString("base64")}`,
    },
  },
};

test("the bill of materials names the contents of the packages, their origin and their hashes", () => {
  const bill = sbomOf({ version: "1.0.0", commit: "abc", epoch: 1_800_000_000, packages, lock }) as {
    readonly creationInfo: object;
    readonly packages: readonly Record<string, unknown>[];
    readonly relationships: readonly { readonly spdxElementId: string; readonly relatedSpdxElement: string }[];
  };
  const ids = bill.packages.map(({ SPDXID }) => SPDXID);
  assert.deepEqual(ids, ["SPDXRef-podwright", "SPDXRef-a-b", "SPDXRef-node"]);
  assert.equal(new Set(ids).size, ids.length);
  const [, bundled] = bill.packages;
  assert.equal(bundled?.["licenseDeclared"], "Apache-2.0 AND BSD-3-Clause");
  assert.deepEqual(bundled?.["checksums"], [{ algorithm: "SHA512", checksumValue: "01ff" }]);
  assert.match(JSON.stringify(bundled?.["externalRefs"]), /pkg:npm\/%40a\/b@1\.2\.3/u);
  assert.deepEqual(bill.creationInfo, { created: "2027-01-15T08:00:00Z", creators: ["Tool: podwright-release-1.0.0"] });
  const known = new Set<unknown>(["SPDXRef-DOCUMENT", ...ids]);
  for (const { spdxElementId, relatedSpdxElement } of bill.relationships) {
    assert.ok(known.has(spdxElementId) && known.has(relatedSpdxElement));
  }
});

test("a bundle that is not of the locked packages has no bill of materials", () => {
  const other = packages.map((each) => ({ ...each, version: "1.2.4" }));
  const release = { version: "1.0.0", commit: "abc", epoch: 0, packages: other, lock };
  assert.throws(() => sbomOf(release), /does not have @a\/b 1\.2\.4/u);
});

test("the checksums are those that sha256sum checks, by name", () => {
  const directory = mkdtempSync(join(tmpdir(), "podwright-sums-"));
  try {
    const files = new Map([
      ["podwright_1.deb", Buffer.from("b")],
      ["podwright-1.tgz", Buffer.from([0, 255])],
    ]);
    for (const [name, content] of files) writeFileSync(join(directory, name), content);
    writeFileSync(join(directory, "SHA256SUMS"), checksums(files));
    const checked = execFileSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: directory, encoding: "utf8" });
    assert.equal(checked, "podwright-1.tgz: OK\npodwright_1.deb: OK\n");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("packed files are dated with SOURCE_DATE_EPOCH, else with the commit", async () => {
  const date = process.env["SOURCE_DATE_EPOCH"];
  try {
    process.env["SOURCE_DATE_EPOCH"] = "1800000000";
    assert.equal(await sourceEpoch(), 1_800_000_000);
    process.env["SOURCE_DATE_EPOCH"] = "today";
    await assert.rejects(sourceEpoch(), /SOURCE_DATE_EPOCH is no number: today/u);
    delete process.env["SOURCE_DATE_EPOCH"];
    assert.ok((await sourceEpoch()) > 1_700_000_000);
  } finally {
    if (date === undefined) delete process.env["SOURCE_DATE_EPOCH"];
    else process.env["SOURCE_DATE_EPOCH"] = date;
  }
});

test("the change log's new section comes first, once, before the existing ones", () => {
  const before = "# Changes\n\n## 1.0.0, 2026-11-01\n\n- First\n";
  const once = withSection(before, "1.1.0", "2026-12-01", ["Say why", "Do more"]);
  assert.equal(once, "# Changes\n\n## 1.1.0, 2026-12-01\n\n- Say why\n- Do more\n\n## 1.0.0, 2026-11-01\n\n- First\n");
  assert.equal(
    withSection(once, "1.1.0", "2026-12-02", ["Say why"]),
    "# Changes\n\n## 1.1.0, 2026-12-02\n\n- Say why\n\n## 1.0.0, 2026-11-01\n\n- First\n",
  );
});

test("package.json has the version, and CHANGELOG.md its section", async () => {
  assert.match(await readFile(join(root, "CHANGELOG.md"), "utf8"), new RegExp(`^## ${version}, `, "mu"));
});
