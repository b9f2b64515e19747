import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { clientTemplate, lackOf, otherNodeOf, requestName, servingTemplate, usagesOf } from "./request-template.ts";

const addresses = [
  { type: "InternalIP", address: "FD00:0::1" },
  { type: "InternalIP", address: "10.0.0.1" },
  { type: "Hostname", address: "n" },
  { type: "ExternalDNS", address: "n.example" },
  { type: "InternalIP", address: "" },
];

test("a client certificate of another node is distinguished from this node's, and from one of no node", () => {
  const other = (commonName: string): string | undefined => otherNodeOf({ commonName }, "node1");
  assert.equal(other("system:node:node2"), "node2");
  assert.equal(other("system:node:node1.example"), "node1.example");
  assert.equal(other("system:node:node1"), undefined);
  assert.equal(other("kubernetes-admin"), undefined);
});

test("a serving certificate is requested for every address and name of the node, in a stable order", () => {
  assert.deepEqual(servingTemplate("n", addresses, false), {
    commonName: "system:node:n",
    organizations: ["system:nodes"],
    dnsNames: ["n", "n.example"],
    ipAddresses: ["10.0.0.1", "fd00::1"],
  });
  assert.deepEqual(servingTemplate("n", [...addresses].reverse(), false), servingTemplate("n", addresses, false));
  assert.deepEqual(servingTemplate("1.2.3.4", [{ type: "Hostname", address: "1.2.3.4" }], false)?.ipAddresses, [
    "1.2.3.4",
  ]);
});

test("a node without an IP address requests no serving certificate, unless names suffice", () => {
  const host = [{ type: "Hostname", address: "n" }];
  assert.equal(servingTemplate("n", host, false), undefined);
  assert.deepEqual(servingTemplate("n", host, true)?.dnsNames, ["n"]);
  assert.equal(servingTemplate("n", [], true), undefined);
});

test("only RSA keys request key encipherment", () => {
  assert.deepEqual(usagesOf("client", { kind: "ec" }), ["digital signature", "client auth"]);
  assert.deepEqual(usagesOf("serving", { kind: "rsa" }), ["digital signature", "server auth", "key encipherment"]);
});

test("a certificate without a name or a group, or for another node, is distinguished from one with more", () => {
  const template = { ...clientTemplate("n"), dnsNames: ["n"], ipAddresses: ["10.0.0.1"] };
  const has = { ...template, notBeforeMs: 0, notAfterMs: 1 };
  assert.equal(
    lackOf({ ...has, dnsNames: ["n", "more"], organizations: ["system:nodes", "more"] }, template),
    undefined,
  );
  assert.equal(lackOf({ ...has, dnsNames: [], ipAddresses: [] }, template), "it does not name n, 10.0.0.1");
  assert.equal(lackOf({ ...has, organizations: [] }, template), "it lacks the group system:nodes");
  assert.equal(
    lackOf({ ...has, commonName: "system:node:m" }, template),
    'its common name is "system:node:m", not "system:node:n"',
  );
});

test("a request's name is a digest of its key, its subject and its usages, as upstream's", () => {
  const sha = (data: string): Uint8Array => createHash("sha512-256").update(data).digest();
  const key = { kind: "ec", spki: Buffer.from("key") } as const;
  const usages = usagesOf("client", key);
  const name = requestName(key, clientTemplate("n"), usages, sha);
  // Base64url parts, each ended by a bar: key, CN, O, usages.
  const digested = "a2V5|c3lzdGVtOm5vZGU6bg|c3lzdGVtOm5vZGVz|ZGlnaXRhbCBzaWduYXR1cmU|Y2xpZW50IGF1dGg|";
  assert.equal(name, `node-csr-${Buffer.from(sha(digested)).toString("base64url")}`);
  assert.equal(name.length, "node-csr-".length + 43);
  const others = [
    requestName({ ...key, spki: Buffer.from("other") }, clientTemplate("n"), usages, sha),
    requestName(key, clientTemplate("m"), usages, sha),
    requestName(key, { ...clientTemplate("n"), dnsNames: ["n"] }, usages, sha),
  ];
  assert.equal(new Set([name, ...others]).size, 4);
});
