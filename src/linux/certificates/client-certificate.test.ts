import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { CertificateAuthority as Authority } from "../../../test/apiserver/certificates.ts";
import { ClientCertificates } from "./client-certificate.ts";
import { CertificateAuthority } from "./certificates.ts";

/** CN=first, O=dev, CN=jane, O=ops */
const twoNames = `-----BEGIN CERTIFICATE-----
MIIBzDCCAXOgAwIBAgIUQ/qiE6DlC3Rm1wNYscJFLsS2fI0wCgYIKoZIzj0EAwIw
OzEOMAwGA1UEAwwFZmlyc3QxDDAKBgNVBAoMA2RldjENMAsGA1UEAwwEamFuZTEM
MAoGA1UECgwDb3BzMCAXDTI2MTEyMjA4MTM1NVoYDzIxMjYxMDI5MDgxMzU1WjA7
MQ4wDAYDVQQDDAVmaXJzdDEMMAoGA1UECgwDZGV2MQ0wCwYDVQQDDARqYW5lMQww
CgYDVQQKDANvcHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARfiWAPa+09iVAT
4sMm0TXlyUrW9VEIyU5e8Qp7NGpepAzjLaxRtMXIzsypsPuybWU0lJyOD/jQVn/0
GPBW41Jdo1MwUTAdBgNVHQ4EFgQURQs2Ly5pG2fK6A/ygCAEjdGjBs4wHwYDVR0j
BBgwFoAURQs2Ly5pG2fK6A/ygCAEjdGjBs4wDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNHADBEAiA+Uyp5x/g6GCQUKcoB7kyNwndQHUYILIHtwpOAn3ZOpwIg
a/BT34ED9aHGdOQsn0liUyI67mnNHKkXCMHKlpO4JrM=
-----END CERTIFICATE-----
`;
/** O=dev, CN=zoe and CN=amy in one set, which DER sorts. */
const oneSet = `-----BEGIN CERTIFICATE-----
MIIBozCCAUmgAwIBAgIUAdv1CjL2tsXUqKkn8XNlboa921wwCgYIKoZIzj0EAwIw
JjEkMAoGA1UEAwwDYW15MAoGA1UEAwwDem9lMAoGA1UECgwDZGV2MCAXDTI2MTEy
MjA4MTM1NVoYDzIxMjYxMDI5MDgxMzU1WjAmMSQwCgYDVQQDDANhbXkwCgYDVQQD
DAN6b2UwCgYDVQQKDANkZXYwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ1gzAM
+Z8RHz1v/qLtF9loSdJ/9I/gIjH/G9vuEUWV1cdVGbh6W0fcnmaZlOHuTwrg/z1S
JleWpP+3DR0xN8p6o1MwUTAdBgNVHQ4EFgQU19H1+un16HixC5ANyblBfMDqAGUw
HwYDVR0jBBgwFoAU19H1+un16HixC5ANyblBfMDqAGUwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiEA9VnlqZTAjH1PWJPiQnvLiZRcSeVyPzCraUeu
pyjexMoCIH6e0/MRgdu0i5umu5rvlvELTrMC4ybOoVL8naWXyvpH
-----END CERTIFICATE-----
`;
/** O=dev, CN=jane, 1.3.6.1.4.1.57683.2=7a1d */
const withUid = `-----BEGIN CERTIFICATE-----
MIIBlzCCAT2gAwIBAgIUZ5RrMMtyqnkzpdPrSN/Z8SJzZBcwCgYIKoZIzj0EAwIw
MjEMMAoGA1UECgwDZGV2MQ0wCwYDVQQDDARqYW5lMRMwEQYJKwYBBAGDwlMCDAQ3
YTFkMCAXDTI2MTEzMDEzMzk1MVoYDzIxMjYxMTA2MTMzOTUxWjAyMQwwCgYDVQQK
DANkZXYxDTALBgNVBAMMBGphbmUxEzARBgkrBgEEAYPCUwIMBDdhMWQwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARVh6d4Sz13cQ1OMuYb31sxsCYHUHWovA/cab3G
+gnyeBh9tV2Af6RxJG+ndhFhnxNv6jqBel/x0DhDuofHYx0Yoy8wLTAMBgNVHRME
BTADAQH/MB0GA1UdDgQWBBSVOOusoJWDkhOrcGIykXpxN/J9NjAKBggqhkjOPQQD
AgNIADBFAiEA7HYy9Zba2C94AFfeA6x/ku042+7X6VjQS7gOuh/ECPsCIAFOcqSQ
BBQoi5J0rLUu+5X/eVAjb5U1pQ8EMxHH/wLr
-----END CERTIFICATE-----
`;

const nowMs = Date.UTC(2027, 0, 1);

/** A connection that presented this certificate, by default its own authority. */
function shown(pem: string, authority = pem, atMs = nowMs): ReturnType<ClientCertificates["of"]> {
  const certificate = new X509Certificate(pem);
  return new ClientCertificates(authority, () => atMs).of({
    authorized: true,
    getPeerCertificate: () => ({ ...certificate.toLegacyObject() }),
    getPeerX509Certificate: () => certificate,
  });
}

/** The user's names, with the groups. */
function namesIn(pem: string): readonly unknown[] {
  const { commonName, organizations } = shown(pem) ?? {};
  return [commonName, organizations];
}

test("of several common names the last is the user's, as in Go, and every organization is a group", () => {
  assert.deepEqual(namesIn(twoNames), ["jane", ["dev", "ops"]]);
  assert.deepEqual(namesIn(oneSet), ["zoe", ["dev"]]);
});

test("a certificate has its digest, and the UID that Kubernetes' own attribute gives its user", () => {
  const sha256 = "e4a1d87115de81821dd7d99af20a9b5de8f7e8275ea9510c2599c20ccdf612d7";
  assert.deepEqual(shown(withUid), { commonName: "jane", organizations: ["dev"], uids: ["7a1d"], sha256 });
  assert.deepEqual(shown(oneSet)?.uids, []);
});

test("a certificate without a common name identifies no user", () => {
  const nobody = new CertificateAuthority("clients", new Date(nowMs)).issue({
    subject: { commonName: "", organizations: ["system:masters"] },
    usages: ["client"],
    notBefore: new Date(nowMs - 1000),
    notAfter: new Date(nowMs + 1000),
  });
  assert.equal(shown(nobody.certificate), undefined);
});

test("an intermediate authority vouches for a client without its root, and only for its own", () => {
  const root = new Authority("company");
  const [between, another] = [new Authority("cluster", root), new Authority("another", root)];
  const { certificate } = between.issue({ subject: { commonName: "jane" }, usages: ["client"] });
  assert.equal(shown(certificate, between.certificate, Date.now())?.commonName, "jane");
  assert.equal(shown(certificate, another.certificate, Date.now()), undefined);
});
