import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { withSection } from "../scripts/change-log.ts";
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

test("the bill of materials names what is in the packages, whence it came, and what it hashes to", () => {
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

test("a section of the change log stands on top, once, above those that are there", () => {
  const before = "# Changes\n\n## 1.0.0, 2026-11-01\n\n- First\n";
  const once = withSection(before, "1.1.0", "2026-12-01", ["Say why", "Do more"]);
  assert.equal(once, "# Changes\n\n## 1.1.0, 2026-12-01\n\n- Say why\n- Do more\n\n## 1.0.0, 2026-11-01\n\n- First\n");
  assert.equal(
    withSection(once, "1.1.0", "2026-12-02", ["Say why"]),
    "# Changes\n\n## 1.1.0, 2026-12-02\n\n- Say why\n\n## 1.0.0, 2026-11-01\n\n- First\n",
  );
});

test("the version stands in package.json, and CHANGELOG.md has its section", async () => {
  assert.match(await readFile(join(root, "CHANGELOG.md"), "utf8"), new RegExp(`^## ${version}, `, "mu"));
});
