import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeDockerConfig, DockerConfigError } from "./docker-config.ts";

const bytes = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
const pair = Buffer.from("user:pass:word").toString("base64");
const none = { username: "", password: "", email: "", identityToken: "" };

test("name and password are in auth, padded or not, or in their own fields", () => {
  const auths = {
    "https://index.docker.io/v1/": { auth: pair, email: "e" },
    unpadded: { auth: pair.replaceAll("=", "") },
    plain: { username: "u", password: "p" },
    both: { username: "u", password: "p", auth: pair },
    token: { auth: Buffer.from("0:").toString("base64"), identitytoken: "refresh" },
    empty: {},
    nothing: null,
  };
  const user = { username: "user", password: "pass:word" };
  assert.deepEqual(decodeDockerConfig(bytes({ auths, credsStore: "x" }), "config.json"), [
    { registry: "https://index.docker.io/v1/", credential: { ...none, ...user, email: "e" } },
    { registry: "unpadded", credential: { ...none, ...user } },
    { registry: "plain", credential: { ...none, username: "u", password: "p" } },
    { registry: "both", credential: { ...none, ...user } },
    { registry: "token", credential: { ...none, username: "0", identityToken: "refresh" } },
    { registry: "empty", credential: none },
    { registry: "nothing", credential: none },
  ]);
});

test("the older file has its registries at the top level", () => {
  const [entry] = decodeDockerConfig(bytes({ "quay.io": { auth: pair } }), ".dockercfg");
  assert.equal(entry?.registry, "quay.io");
  assert.deepEqual(decodeDockerConfig(bytes({}), "config.json"), []);
});

test("an invalid file is rejected without quoting its contents", () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['{"auths": {"r": {"auth": "c2VjcmV0', /is not JSON/],
    [[], /"auths" is not a map of registries/],
    [{ auths: ["hidden"] }, /"auths" is not a map of registries/],
    [{ auths: { r: "hidden" } }, /the entry of "r" must hold strings only/],
    [{ auths: { r: { password: 5 } } }, /the entry of "r" must hold strings only/],
    [{ auths: { r: { auth: "!hidden" } } }, /"auth" of "r" is not base64\(username:password\)/],
    [{ auths: { r: { auth: Buffer.from("hidden").toString("base64") } } }, /"auth" of "r" is not base64/],
  ];
  for (const [content, problem] of cases) {
    assert.throws(
      () => decodeDockerConfig(bytes(content), "config.json"),
      (error: unknown) => {
        assert.ok(error instanceof DockerConfigError);
        assert.match(error.message, problem);
        assert.doesNotMatch(error.message, /hidden|c2VjcmV0/);
        assert.equal(error.cause, undefined);
        return true;
      },
    );
  }
});
