import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { withDefaults } from "../config/defaults.ts";
import { type ServingSettings, servingSettings } from "../config/serving.ts";
import { CertificateAuthority, selfSignedCertificate } from "../linux/certificates/certificates.ts";
import { MemoryFiles } from "../sim/files.ts";
import { readClientAuthorities, type ServingParts, tlsMaterial, warnOfExpired } from "./serving-certificates.ts";

const authority = new CertificateAuthority("clients", new Date()).certificate;
const path = "/etc/ca.crt";

async function authorities(text: string | undefined): Promise<string | undefined> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/etc", 0o755);
  if (text !== undefined) await files.write(path, text, 0o644);
  return await readClientAuthorities(files, { clientAuthoritiesFile: path });
}

test("a client CA file is accepted when every certificate in it is valid, whatever else it contains", async () => {
  const text = `# ours\n${authority}${authority}`;
  assert.equal(await authorities(text), text);
});

const useless: Readonly<Record<string, readonly [text: string | undefined, problem: RegExp]>> = {
  missing: [undefined, /\/etc\/ca\.crt/],
  empty: ["", /it is empty/],
  garbage: ["garbage\n", /it holds no PEM certificate/],
  "cut off": [authority.slice(0, 200), /it holds no PEM certificate/],
  broken: [
    `${authority}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
    /cannot parse certificate 2 of 2/,
  ],
};

for (const [name, [text, problem]] of Object.entries(useless)) {
  test(`a client CA file that is ${name} is rejected with its name and a remedy`, async () => {
    await assert.rejects(authorities(text), (error: Error & { remedy?: string }) => {
      assert.match(error.message, /^unable to load client CA file "\/etc\/ca\.crt": /);
      assert.match(error.message, problem);
      assert.match(error.remedy ?? "", /--client-ca-file/);
      return true;
    });
  });
}

/** A node with a self-signed pair, and its warnings. */
async function ownPair(madeAt: Date, clientAuthorities?: string) {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const made = selfSignedCertificate(["node1"], madeAt);
  await files.makeDirectory("/pki", 0o755);
  await files.write("/pki/kubelet.crt", made.certificate, 0o644);
  await files.write("/pki/kubelet.key", made.key, 0o600);
  if (clientAuthorities !== undefined) await files.write("/pki/ca.crt", clientAuthorities, 0o644);
  const warnings: [string, unknown][] = [];
  const parts = {
    from: {
      ports: { files, clock },
      log: { warn: (message: string, fields: unknown) => void warnings.push([message, fields]) },
      nodeName: "node1",
      addresses: { list: [] },
      certificateDirectory: "/pki",
    },
    manager: undefined,
  } as unknown as ServingParts;
  const x509 = clientAuthorities === undefined ? {} : { clientCAFile: "/pki/ca.crt" };
  const settings = servingSettings(withDefaults({ authentication: { x509 } })) as ServingSettings;
  return { clock, parts, settings, warnings };
}

test("invalid changed authorities are rejected, and the previous ones stay in use", async () => {
  const { parts, settings } = await ownPair(new Date(), authority);
  assert.equal((await tlsMaterial(parts, settings)).clientAuthorities, authority);
  await parts.from.ports.files.write("/pki/ca.crt", "garbage", 0o644);
  await assert.rejects(tlsMaterial(parts, settings), /unable to load client CA file/);
});

test("an expired self-signed pair is reported with a remedy", async () => {
  const now = new ManualClock().now();
  const day = 24 * 3_600_000;
  const old = await ownPair(new Date(now - 400 * day));
  warnOfExpired(old.parts, old.settings, await tlsMaterial(old.parts, old.settings));
  assert.equal(old.warnings.length, 1);
  assert.match(JSON.stringify(old.warnings), /has expired.*\/pki\/kubelet\.crt.*delete it and kubelet\.key/);
  const fresh = await ownPair(new Date(now));
  warnOfExpired(fresh.parts, fresh.settings, await tlsMaterial(fresh.parts, fresh.settings));
  assert.deepEqual(fresh.warnings, []);
});
