import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import { hideSecrets } from "./hidden-secrets.ts";

const secrets = {
  login: { user: "ab", kind: "secret", password: "swordfish", longer: "swordfish-2" },
  certificate: { "tls.key": "-----BEGIN-----\nMIIEvQIBADANBg\nkqhkiG9w0\n-----END-----\n" },
  other: { word: "harmless" },
};
const encoder = new TextEncoder();
const objects = {
  secret: (namespace: string, name: string) => {
    const data = namespace === "ns" ? Object.entries(secrets).find(([known]) => known === name)?.[1] : undefined;
    if (data === undefined) return undefined;
    const bytes = Object.entries(data).map(([key, value]) => [key, encoder.encode(value)] as const);
    return { uid: "", type: "Opaque", data: new Map(bytes) };
  },
};

const pod = podWith({
  containers: [
    {
      name: "c",
      image: "busybox",
      env: [{ name: "P", valueFrom: { secretKeyRef: { name: "login", key: "password" } } }],
    },
  ],
  volumes: [
    { name: "tls", projected: { sources: [{ secret: { name: "certificate" } }, { secret: { name: "gone" } }] } },
  ],
});

test("values of the pod's secrets are named, not shown, the longest first", () => {
  const hide = hideSecrets(objects, pod);
  assert.equal(hide("it says swordfish!"), "it says <secret login/password>!");
  assert.equal(hide("swordfish-2 swordfish"), "<secret login/longer> <secret login/password>");
});

test("a value within a name is replaced only in the text", () => {
  assert.equal(hideSecrets(objects, pod)("swordfish is secret"), "<secret login/password> is <secret login/kind>");
});

test("lines of a secret are found one by one", () => {
  assert.equal(
    hideSecrets(objects, pod)("key: MIIEvQIBADANBg\r\n  kqhkiG9w0"),
    "key: <secret certificate/tls.key>\r\n  <secret certificate/tls.key>",
  );
});

test("short values, and unknown secrets, are kept", () => {
  assert.equal(hideSecrets(objects, pod)("ab is harmless $&"), "ab is harmless $&");
  const elsewhere = podWith(pod.spec, { namespace: "elsewhere" });
  assert.equal(hideSecrets(objects, elsewhere)("swordfish"), "swordfish");
});

test("tokens are found without knowing them, also for an unknown pod", () => {
  const token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl";
  assert.equal(hideSecrets(objects, undefined)(`Bearer ${token}, swordfish`), "Bearer <token>, swordfish");
});

test("a text is withheld if some of the pod's secrets are unknown, and nothing fails", () => {
  const unknown = {
    secret: (): undefined => {
      throw new Error('secret "login" is not known yet');
    },
  };
  assert.equal(hideSecrets(unknown, pod)("swordfish"), "<hidden while a Secret of the pod cannot be read>");
});
