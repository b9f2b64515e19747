import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import { MemoryRecorder } from "../../../test/support/sources.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import type { SecretContent } from "../../api/object-content.ts";
import type { ObjectLookup } from "../config/environment.ts";
import { pullSecretsOf } from "./pull-secrets.ts";

const cause = { code: "ContainerMissing", message: "not started yet" } as const;
const { signal } = new AbortController();

function content(type: string, key: string, value: unknown): SecretContent {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return { uid: `uid-of-${type}`, type, data: new Map([[key, new TextEncoder().encode(text)]]) };
}
const config = { auths: { "r.io": { username: "u", password: "hunter2" } } };
const secrets: Readonly<Record<string, SecretContent>> = {
  json: content("kubernetes.io/dockerconfigjson", ".dockerconfigjson", config),
  cfg: content("kubernetes.io/dockercfg", ".dockercfg", config.auths),
  opaque: content("Opaque", ".dockerconfigjson", config),
  keyless: content("kubernetes.io/dockercfg", ".dockerconfigjson", config),
  broken: content("kubernetes.io/dockerconfigjson", ".dockerconfigjson", '{"auths": hunter2'),
};
const objects: ObjectLookup = {
  configMap: () => undefined,
  secret: (namespace, name) => {
    assert.equal(namespace, "ns");
    if (name === "unknown") throw new ContainerConfigError("not known yet");
    return secrets[name];
  },
};

async function of(...names: readonly string[]) {
  const journal = new MemoryRecorder();
  const pod = podWith({ imagePullSecrets: names.map((name) => ({ name })) });
  return { found: await pullSecretsOf({ objects, journal }, pod, cause, signal), journal };
}

test("Secrets of both types are read once each, and empty names are ignored", async () => {
  const { found, journal } = await of("json", "", "cfg", "json");
  assert.deepEqual(
    found.map(({ source, entries }) => [source.name, source.uid, entries[0]?.credential.password]),
    [
      ["json", "uid-of-kubernetes.io/dockerconfigjson", "hunter2"],
      ["cfg", "uid-of-kubernetes.io/dockercfg", "hunter2"],
    ],
  );
  assert.deepEqual(journal.entries, []);
});

test("missing and unusable Secrets are reported in upstream's words, and the rest is used", async () => {
  const { found, journal } = await of("missing", "unknown", "opaque", "keyless", "broken", "json");
  assert.deepEqual(
    found.map(({ source }) => source.name),
    ["json"],
  );
  assert.deepEqual(journal.messages("FailedToRetrieveImagePullSecret"), [
    'Unable to retrieve some image pull secrets (missing, unknown, opaque: its type "Opaque" is not a pull secret type, ' +
      "keyless: it has no .dockercfg, broken: its .dockerconfigjson: is not JSON); " +
      "attempting to pull the image may not succeed.",
  ]);
  assert.doesNotMatch(JSON.stringify(journal.entries), /hunter2/);
});

test("a pod without pull secrets reads none", async () => {
  const journal = new MemoryRecorder();
  const failing: ObjectLookup = { ...objects, settle: () => assert.fail("it waited") };
  assert.deepEqual(await pullSecretsOf({ objects: failing, journal }, podWith({}), cause, signal), []);
});
