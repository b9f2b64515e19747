import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, test } from "node:test";
import { readRequest } from "../../../test/apiserver/pkcs10.ts";
import type { RequestTemplate } from "../../ports/certificates.ts";
import { systemCertificateTools as tools } from "./certificate-tools.ts";
import { CertificateAuthority } from "./certificates.ts";

const template: RequestTemplate = {
  commonName: "system:node:n",
  organizations: ["system:nodes"],
  dnsNames: ["n", "n.example"],
  ipAddresses: ["10.0.0.1", "fd00::1"],
};

function asked(key: string, wanted: RequestTemplate): ReturnType<typeof readRequest> {
  return readRequest(Buffer.from(tools.signingRequest(key, wanted)).toString("base64"));
}

describe("certificate tools", () => {
  test("a signing request has what its template names and is signed by its key, of either kind", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    for (const key of [tools.newKey(), privateKey.export({ type: "pkcs1", format: "pem" })]) {
      const request = asked(key, template);
      assert.deepEqual(request.subject, { commonName: "system:node:n", organizations: ["system:nodes"] });
      assert.deepEqual([request.dnsNames, request.ipAddresses.length], [template.dnsNames, 2]);
      assert.deepEqual(request.publicKey.export({ type: "spki", format: "der" }), tools.publicKey(key).spki);
    }
    const plain = asked(tools.newKey(), { ...template, dnsNames: [], ipAddresses: [] });
    assert.deepEqual([plain.dnsNames, plain.ipAddresses], [[], []]);
  });

  test("new keys are of the kind that Go's kubelet creates, each different", () => {
    const key = tools.newKey();
    assert.match(key, /^-----BEGIN EC PRIVATE KEY-----\n/);
    assert.equal(tools.publicKey(key).kind, "ec");
    assert.notEqual(tools.newKey(), key);
  });

  test("certificates are read with all their names, addresses in canonical form", () => {
    const now = new Date(Date.UTC(2026, 10, 20));
    const authority = new CertificateAuthority("ca", now);
    const later = new Date(now.getTime() + 5000);
    const subject = { commonName: template.commonName, organizations: template.organizations };
    const names = [...template.dnsNames, ...template.ipAddresses];
    const issued = authority.issue({ subject, names, usages: ["server"], notBefore: now, notAfter: later });
    const text = `# a bundle\r\n${issued.key}${issued.certificate.replaceAll("\n", "\r\n")}${authority.certificate}`;
    const [own, ca, ...more] = tools.certificates(text);
    assert.deepEqual(own, { ...template, notBeforeMs: now.getTime(), notAfterMs: later.getTime() });
    assert.deepEqual([ca?.commonName, more], ["ca", []]);

    const parts = tools.split(text);
    assert.deepEqual(parts, { certificate: issued.certificate + authority.certificate, key: issued.key });
    assert.equal(tools.belong({ certificate: parts.certificate ?? "", key: issued.key }), true);
    assert.equal(tools.belong({ certificate: parts.certificate ?? "", key: tools.newKey() }), false);
  });

  test("errors about unreadable input do not show it", () => {
    const secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
    assert.throws(() => tools.publicKey(secret), /^Error: cannot parse a private key$/);
    const broken = "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n";
    assert.throws(() => tools.certificates(broken), /^Error: cannot parse a certificate$/);
    assert.deepEqual(tools.certificates("nothing"), []);
    assert.deepEqual(tools.split("nothing"), { certificate: undefined, key: undefined });
  });
});
