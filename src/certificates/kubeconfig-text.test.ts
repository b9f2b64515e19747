import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeKubeconfig } from "../kube/kubeconfig.ts";
import { kubeconfigText } from "./kubeconfig-text.ts";

test("a written kubeconfig has the Go kubelet's names, and is read back unchanged", () => {
  const ca = { kind: "inline", text: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" } as const;
  const address = { server: "https://api:6443", ca, serverName: undefined, insecure: false };
  const text = kubeconfigText(address, "/pki/kubelet-client-current.pem");
  assert.equal(
    text,
    `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${Buffer.from(ca.text).toString("base64")}
    server: https://api:6443
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    client-certificate: /pki/kubelet-client-current.pem
    client-key: /pki/kubelet-client-current.pem
`,
  );
  const pair = { kind: "file", path: "/pki/kubelet-client-current.pem" };
  assert.deepEqual(decodeKubeconfig(text, "/conf"), { ...address, user: { certificate: { cert: pair, key: pair } } });
});

test("other connection settings are kept", () => {
  const file = { kind: "file", path: "/ca.crt" } as const;
  for (const address of [
    { server: "https://api", ca: file, serverName: "kubernetes", insecure: false },
    { server: "https://api", ca: undefined, serverName: undefined, insecure: true },
    { server: "https://api", ca: file, serverName: undefined, insecure: false, proxyUrl: "http://u:p@proxy:3128" },
  ]) {
    const { user: _user, ...read } = decodeKubeconfig(kubeconfigText(address, "/p"), "/conf") ?? {};
    assert.deepEqual(read, address);
  }
});
