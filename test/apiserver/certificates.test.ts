import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { bootstrapTokenSecret } from "./bootstrap-tokens.ts";
import { CertificateAuthority, type Credentials } from "./certificates.ts";
import { type ApiObject, type Fields, itemsAt, textAt } from "./objects.ts";
import { TestApiServer, type TestApiServerOptions } from "./server.ts";
import { TestClient } from "./testing.ts";

const run = promisify(execFile);
const missing = spawnSync("openssl", ["version"]).error === undefined ? false : "openssl is not installed";
const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const clientUsages = ["digital signature", "client auth"];

describe("the certificate authority", () => {
  const authority = new CertificateAuthority("test-ca");

  it("signs certificates that Node.js reads back", () => {
    const { certificate, key } = authority.issue({
      subject: { commonName: "system:node:node1", organizations: ["system:nodes", "extra"] },
      names: ["node1", "192.0.2.2", "2001:db8::1", "::1"],
      usages: ["server", "client"],
      notAfter: new Date("2051-02-03T04:05:06Z"),
    });
    const read = new X509Certificate(certificate);
    assert.equal(read.subject, "O=system:nodes\nO=extra\nCN=system:node:node1");
    assert.match(
      read.subjectAltName ?? "",
      /^DNS:node1, IP Address:192\.0\.2\.2, IP Address:2001:DB8:0:0:0:0:0:1, IP Address:0:0:0:0:0:0:0:1$/,
    );
    assert.equal(read.validToDate.toISOString(), "2051-02-03T04:05:06.000Z");
    assert.ok(read.checkIssued(new X509Certificate(authority.certificate)));
    assert.ok(read.verify(createPublicKey(authority.certificate)));
    assert.match(key, /^-----BEGIN PRIVATE KEY-----/);
  });
  it("signs certificates that OpenSSL accepts", { skip: missing }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "podwright-certificates-"));
    try {
      const { certificate } = authority.issue({ subject: { commonName: "a" }, names: ["a"], usages: ["server"] });
      await writeFile(join(folder, "ca.pem"), authority.certificate);
      await writeFile(join(folder, "leaf.pem"), certificate);
      const { stdout } = await run("openssl", [
        "verify",
        "-purpose",
        "sslserver",
        "-CAfile",
        join(folder, "ca.pem"),
        join(folder, "leaf.pem"),
      ]);
      assert.match(stdout, /leaf\.pem: OK/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
  it("signs keys of other kinds", () => {
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const certificate = new X509Certificate(
      authority.sign({ subject: { commonName: "r" }, publicKey, usages: ["client"] }),
    );
    assert.equal(certificate.publicKey.asymmetricKeyType, "rsa");
  });
});

describe("certificate requests", { skip: missing }, () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "podwright-requests-"));
  });
  after(() => rm(folder, { recursive: true }));

  /** A key and a signing request, created by OpenSSL. */
  async function requestFor(
    subject: string,
    extra: readonly string[] = [],
    kind = "ec",
  ): Promise<{ request: string; key: string }> {
    const key = join(folder, "key.pem");
    const options = kind === "ec" ? ["-pkeyopt", "ec_paramgen_curve:P-256"] : [];
    const command = ["req", "-new", "-newkey", kind, ...options, "-nodes", "-keyout", key, "-subj", subject, ...extra];
    const { stdout } = await run("openssl", command);
    return { request: Buffer.from(stdout).toString("base64"), key: await readFile(key, "utf8") };
  }
  const node = "/O=system:nodes/CN=system:node:node1";
  function signingRequest(name: string, request: string, spec: Fields = {}): Fields {
    const metadata = { name };
    const signerName = "kubernetes.io/kube-apiserver-client-kubelet";
    return { metadata, spec: { request, signerName, usages: clientUsages, ...spec } };
  }
  async function withServer(
    options: TestApiServerOptions,
    work: (server: TestApiServer) => Promise<void>,
  ): Promise<void> {
    await using server = await TestApiServer.start(options);
    await work(server);
  }
  const decided = async (server: TestApiServer, name: string): Promise<ApiObject | undefined> =>
    server.admin.until("certificatesigningrequests", name, (request) => {
      const types = itemsAt(request, "status.conditions").map(({ type }) => type);
      return textAt(request, "status.certificate") !== "" || types.includes("Failed");
    });
  const certificateOf = (request: ApiObject | undefined): string =>
    Buffer.from(textAt(request, "status.certificate"), "base64").toString();

  it("take a node from its bootstrap token to its first and second certificate", async () => {
    const tokens = { "abcdef.0123456789abcdef": { name: "system:bootstrap:abcdef", groups: ["system:bootstrappers"] } };
    await withServer({ tokens }, async (server) => {
      const { request, key } = await requestFor(node);
      using nobody = new TestClient(server);
      const token = "abcdef.0123456789abcdef";
      const created = await nobody.request("POST", requests, { body: signingRequest("first", request), token });
      assert.equal(created.code, 201, created.text);
      assert.equal(textAt(created.body, "spec.username"), "system:bootstrap:abcdef");
      assert.equal((await nobody.request("GET", "/api/v1/pods", { token })).code, 403);
      const first: Credentials = { certificate: certificateOf(await decided(server, "first")), key };
      using kubelet = new TestClient(server, first);
      assert.equal((await kubelet.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1")).code, 200);

      const renewed = await requestFor(node, [], "rsa:2048");
      const body = signingRequest("second", renewed.request, { expirationSeconds: 600 });
      assert.equal((await kubelet.request("POST", requests, { body })).code, 201);
      const second = new X509Certificate(certificateOf(await decided(server, "second")));
      const leftMs = second.validToDate.getTime() - Date.now();
      assert.ok(leftMs > 590_000 && leftMs <= 601_000, `${leftMs}`);
      const foreign = await requestFor("/O=system:nodes/CN=system:node:node2");
      const refused = await kubelet.request("POST", requests, { body: signingRequest("foreign", foreign.request) });
      assert.match(textAt(refused.body, "message"), /can only create a node CSR with CN=system:node:node1/);
    });
  });
  it("are accepted with a Secret's token while that is valid", async () => {
    await withServer({}, async (server) => {
      using nobody = new TestClient(server);
      const path = `${requests}?limit=1`;
      const code = async (token: string): Promise<number> => (await nobody.request("GET", path, { token })).code;
      const token = "abcdef.0123456789abcdef";
      assert.equal(await code(token), 401);
      server.admin.create(bootstrapTokenSecret(token));
      assert.equal(await code(token), 200);
      assert.equal(await code("abcdef.0123456789abcdee"), 401);
      assert.equal((await nobody.request("GET", "/api/v1/pods", { token })).code, 403);
      server.admin.delete("secrets", "kube-system/bootstrap-token-abcdef");
      server.admin.create(bootstrapTokenSecret(token, new Date(Date.now() - 1000)));
      assert.equal(await code(token), 401);
    });
  });
  it("that are approved but invalid fail with the reason", async () => {
    await withServer({ approves: () => true }, async (server) => {
      const signerName = "kubernetes.io/kubelet-serving";
      const usages = ["digital signature", "server auth"];
      const names = ["-addext", "subjectAltName=DNS:node1"];
      const wrong: readonly (readonly [name: string, request: string, spec: Fields, why: RegExp])[] = [
        ["group", (await requestFor("/O=admins/CN=system:node:node1")).request, {}, /organization is not system:nodes/],
        ["name", (await requestFor("/O=system:nodes/CN=node1")).request, {}, /common name does not begin/],
        ["names", (await requestFor(node, names)).request, {}, /subjectAltNames are not allowed/],
        ["nameless", (await requestFor(node)).request, { signerName, usages }, /subjectAltName is required/],
        ["usage", (await requestFor(node)).request, { usages: ["client auth"] }, /usages did not match/],
        [
          "mail",
          (await requestFor(node, ["-addext", "subjectAltName=email:a@b.c"])).request,
          { signerName, usages },
          /Email or URI/,
        ],
      ];
      for (const [name, request, spec, why] of wrong) {
        server.admin.create({
          apiVersion: "certificates.k8s.io/v1",
          kind: "CertificateSigningRequest",
          ...signingRequest(name, request, spec),
        });
        const failed = itemsAt(await decided(server, name), "status.conditions").find(({ type }) => type === "Failed");
        assert.match(textAt(failed, "message"), why, name);
      }
    });
  });
  it("for serving certificates wait for an approval", async () => {
    await withServer({}, async (server) => {
      const { request } = await requestFor(node, ["-addext", "subjectAltName=DNS:node1,IP:::1"]);
      const usages = ["digital signature", "key encipherment", "server auth"];
      const body = signingRequest("serving", request, { signerName: "kubernetes.io/kubelet-serving", usages });
      using kubelet = new TestClient(server, server.credentials("system:node:node1", ["system:nodes"]));
      assert.equal((await kubelet.request("POST", requests, { body })).code, 201);
      assert.deepEqual(server.admin.get("certificatesigningrequests", "serving")["status"], {});
      const approval = { status: { conditions: [{ type: "Approved", status: "True", reason: "Test" }] } };
      server.admin.patch("certificatesigningrequests", "serving", approval, { subresource: "approval" });
      const signed = new X509Certificate(certificateOf(await decided(server, "serving")));
      assert.equal(signed.subjectAltName, "DNS:node1, IP Address:0:0:0:0:0:0:0:1");
    });
  });
  it("that are malformed, or not signed by their key, are rejected", async () => {
    await withServer({ approves: () => true }, async (server) => {
      const { request } = await requestFor(node);
      const bytes = Buffer.from(
        Buffer.from(request, "base64")
          .toString()
          .replaceAll(/-----[^-]+-----/g, ""),
        "base64",
      );
      bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40);
      const broken = `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
      using kubelet = new TestClient(server, server.credentials("system:node:node1", ["system:nodes"]));
      for (const text of ["", "hello", broken]) {
        const body = signingRequest("bad", Buffer.from(text).toString("base64"));
        const { code } = await kubelet.request("POST", requests, { body });
        assert.ok(code === 400 || code === 422, `${code}`);
      }
    });
  });
});
