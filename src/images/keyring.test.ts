import assert from "node:assert/strict";
import { test } from "node:test";
import { credentialsFor, makeKeyring } from "./keyring.ts";
import { matchesRepository } from "./registry-pattern.ts";

/** A keyring with one user for each registry, named after it. */
function keyringOf(...registries: readonly string[]) {
  const entries = registries.map((registry) => {
    return { registry, credential: { username: registry, password: "p", email: "", identityToken: "" } };
  });
  return makeKeyring([{ entries, source: undefined }]);
}
const users = (repository: string, ...registries: readonly string[]): string[] =>
  credentialsFor(keyringOf(...registries), repository).map(({ credential }) => credential.username);

test("a registry name or pattern matches repositories", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["registry.example.org", "registry.example.org/app", true],
    ["registry.example.org", "registry.example.org:5000/app", false],
    ["registry.example.org:5000", "registry.example.org:5000/app", true],
    ["registry.example.org:5000", "registry.example.org/app", false],
    ["registry.example.org/team", "registry.example.org/team/app", true],
    ["registry.example.org/team", "registry.example.org/teamster", true],
    ["registry.example.org/team", "registry.example.org/other/app", false],
    ["*.example.org", "registry.example.org/app", true],
    ["*.example.org", "a.b.example.org/app", false],
    ["*.example.org", "example.org/app", false],
    ["*", "localhost/app", true],
    ["*.*.example.org:443/x", "a.b.example.org:443/x/y", true],
    ["reg*y.example.org", "registry.example.org/app", true],
    ["reg*y.example.org", "registries.example.org/app", false],
    ["r?g.example.org", "reg.example.org/app", true],
    ["r[a-f]g.example.org", "reg.example.org/app", true],
    ["r[^a-f]g.example.org", "reg.example.org/app", false],
    ["r[f-hea-c]g.example.org", "reg.example.org/app", true],
    ["r[a-]g.example.org", "r-g.example.org/app", true],
    ["r[a-]g.example.org", "rbg.example.org/app", false],
    ["r[^-a]g.example.org", "reg.example.org/app", true],
    ["r[^]g.example.org", "reg.example.org/app", false],
    ["r[eg.example.org", "r[eg.example.org/app", false],
    [String.raw`\*.example.org`, "registry.example.org/app", false],
    ["[::1]:5000", "[::1]:5000/app", true],
    ["example.org/*", "example.org/app", false],
  ];
  for (const [pattern, repository, matches] of cases) {
    assert.equal(matchesRepository(pattern, repository), matches, `${pattern} for ${repository}`);
  }
});

test("a pathological pattern is matched quickly", { timeout: 5000 }, () => {
  assert.equal(matchesRepository("*a".repeat(2000), "a".repeat(63)), false);
  assert.equal(matchesRepository(`*[${"b".repeat(1_000_000)}]`, "b/app"), false);
  const many = Array.from({ length: 200 }, () => `*[${"b".repeat(4_000)}]`);
  for (const pattern of many) assert.equal(matchesRepository(pattern, `${"a".repeat(63)}/app`), false);
});

test("no pattern matches what is no name of a host", () => {
  const label = "a".repeat(63);
  assert.equal(matchesRepository("*", `${label}/app`), true);
  assert.equal(matchesRepository("*", `${label}a/app`), false);
  assert.equal(matchesRepository("*.*.*.*", `${label}.${label}.${label}.${"a".repeat(61)}/app`), true);
  assert.equal(matchesRepository("*.*.*.*", `${label}.${label}.${label}.${"a".repeat(62)}/app`), false);
});

test("credentials are tried from the most specific to the most general", () => {
  const all = ["example.org", "*.example.org", "example.org/team", "example.org/team/app", "https://example.org/v2/"];
  assert.deepEqual(users("example.org/team/app", ...all), [
    "example.org/team/app",
    "example.org/team",
    "example.org",
    "https://example.org/v2/",
  ]);
  assert.deepEqual(users("example.org/else", ...all), ["example.org", "https://example.org/v2/"]);
  assert.deepEqual(users("else.org/app", ...all), []);
});

test("docker login's names of Docker Hub match its images", () => {
  const login = "https://index.docker.io/v1/";
  assert.deepEqual(users("docker.io/library/busybox", login), [login]);
  assert.deepEqual(users("docker.io/library/busybox", login, "docker.io/library"), ["docker.io/library"]);
  assert.deepEqual(users("quay.io/app", login), []);
});

test("schemes, queries, users and API versions in a registry name are ignored", () => {
  for (const registry of ["http://r:1/", "https://r:1/v1/", "r:1/v2/", "https://me@r:1/?x#y"]) {
    assert.deepEqual(users("r:1/app", registry), [registry]);
  }
  assert.deepEqual(users("r:1/app", "", "https://", "r r"), []);
  assert.deepEqual(users("r:1/team/app", "https://r:1/v2/team"), ["https://r:1/v2/team"]);
});
