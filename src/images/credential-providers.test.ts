import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import type { CommandOptions, CommandResult } from "../ports/processes.ts";
import { simHashing } from "../sim/hashing.ts";
import { decodePluginAnswer } from "./credential-plugin.ts";
import type { CredentialProvider, PullAccount } from "./credential-provider.ts";
import { CredentialProviders } from "./credential-providers.ts";
import { SharedWork } from "./shared-work.ts";

const apiVersion = "credentialprovider.kubelet.k8s.io/v1";
const plain: CredentialProvider = {
  name: "plugin",
  matchImages: ["r.io", "*.r.io/team"],
  defaultCacheMs: 60_000,
  apiVersion,
  args: ["--get"],
  env: { MODE: "test" },
  tokens: undefined,
};
const ofAccounts: CredentialProvider = {
  ...plain,
  tokens: {
    audience: "registry",
    cacheType: "ServiceAccount",
    required: true,
    requiredAnnotations: ["example.org/role"],
    optionalAnnotations: ["example.org/team", "example.org/none"],
  },
};
const account: PullAccount = {
  namespace: "ns",
  name: "robot",
  look: async () => ({ uid: "u1", annotations: { "example.org/team": "t", "example.org/role": "r", other: "x" } }),
  token: async (audience, uid) => `token-of-${audience}-${uid}`,
};

const answer = (cacheKeyType: string, more: object = {}): string =>
  JSON.stringify({
    kind: "CredentialProviderResponse",
    apiVersion,
    cacheKeyType,
    auth: { "r.io": { username: "user", password: "hunter2" } },
    ...more,
  });

interface Run {
  readonly program: string;
  readonly arguments_: readonly string[];
  readonly options: CommandOptions;
}

class World {
  readonly clock = new ManualClock();
  readonly journal = new MemoryRecorder();
  readonly runs: Run[] = [];
  stdout = answer("Image");
  failure: Partial<CommandResult> | Error | undefined;
  readonly #providers: CredentialProviders;

  constructor(provider: CredentialProvider) {
    const { clock, journal } = this;
    const run = async (program: string, arguments_: readonly string[], options: CommandOptions) => {
      this.runs.push({ program, arguments_, options });
      if (this.failure instanceof Error) throw this.failure;
      return { exitCode: 0, signal: undefined, stdout: this.stdout, stderr: "", ...this.failure };
    };
    this.#providers = new CredentialProviders(
      { clock, journal, log: silentLog, hashing: simHashing, processes: { run }, shared: new SharedWork() },
      [provider],
      "/plugins",
    );
  }

  /** User names of the credentials for a repository, with their account. */
  async users(
    repository: string,
    as?: PullAccount,
  ): Promise<readonly (readonly [string | undefined, string | undefined])[]> {
    const asker = {
      pod: { namespace: "ns", name: "p", uid: podUid("p1") },
      cause: { code: "ContainerMissing", message: "container app has not been started yet" } as const,
      account: as,
      signal: new AbortController().signal,
    };
    const provided = await this.#providers.for(repository, asker);
    return provided.map(({ entries, account: source }) => [entries[0]?.credential.username, source?.name]);
  }

  get asked(): unknown {
    return JSON.parse(this.runs.at(-1)?.options.stdin ?? "null");
  }
}

test("a plugin is run for matching images, with the request on its standard input", async () => {
  const world = new World(plain);
  assert.deepEqual(await world.users("other.io/app"), []);
  assert.equal(world.runs.length, 0);
  assert.deepEqual(await world.users("r.io/app"), [["user", undefined]]);
  const [run] = world.runs;
  assert.deepEqual([run?.program, run?.arguments_], ["/plugins/plugin", ["--get"]]);
  assert.deepEqual([run?.options.environment, run?.options.timeoutMs], [{ MODE: "test" }, 60_000]);
  assert.deepEqual(world.asked, { kind: "CredentialProviderRequest", apiVersion, image: "r.io/app" });
  assert.doesNotMatch(JSON.stringify(world.journal.entries), /hunter2/u);
});

test("a response is cached for its image, its registry or all images, as long as it or the configuration says", async () => {
  const runs = async (stdout: string, ...repositories: readonly string[]): Promise<number> => {
    const world = new World({ ...plain, matchImages: ["r.io", "a.r.io"] });
    world.stdout = stdout;
    for (const repository of repositories) await world.users(repository);
    return world.runs.length;
  };
  const all = ["r.io/app", "r.io/app", "r.io/other", "a.r.io/app"] as const;
  assert.equal(await runs(answer("Image"), ...all), 3);
  assert.equal(await runs(answer("Registry"), ...all), 2);
  assert.equal(await runs(answer("Global"), ...all), 1);
  assert.equal(await runs(answer("Global", { cacheDuration: "0s" }), ...all), 4);

  const world = new World(plain);
  for (const [afterMs, count] of [
    [0, 1],
    [59_999, 1],
    [1, 2],
  ] as const) {
    await world.clock.advance(afterMs);
    await world.users("r.io/app");
    assert.equal(world.runs.length, count);
  }
  world.stdout = answer("Image", { cacheDuration: "1h" });
  await world.users("r.io/long");
  await world.clock.advance(3_599_999);
  await world.users("r.io/long");
  assert.equal(world.runs.length, 3);
});

test("concurrent equal requests share one response", async () => {
  const world = new World({ ...plain, defaultCacheMs: 0 });
  await Promise.all([world.users("r.io/app"), world.users("r.io/app"), world.users("r.io/other")]);
  assert.equal(world.runs.length, 2);
});

test("a plugin may be called as the pod's service account: with its token and the requested annotations", async () => {
  const world = new World(ofAccounts);
  assert.deepEqual(await world.users("r.io/app", account), [["user", "robot"]]);
  assert.deepEqual(world.asked, {
    kind: "CredentialProviderRequest",
    apiVersion,
    image: "r.io/app",
    serviceAccountToken: "token-of-registry-u1",
    serviceAccountAnnotations: { "example.org/role": "r", "example.org/team": "t" },
  });
  await world.users("r.io/app", account);
  assert.equal(world.runs.length, 1);
  const other = { ...account, look: async () => ({ uid: "u2", annotations: { "example.org/role": "r" } }) };
  assert.deepEqual(await world.users("r.io/app", other), [["user", "robot"]]);
  assert.equal(world.runs.length, 2, "another account of that name");
  assert.doesNotMatch(JSON.stringify(world.journal.entries), /token-of|hunter2/u);
});

test("the plugin is not run for an account that does not opt in, or for a pod without account", async () => {
  const world = new World(ofAccounts);
  const silent = { ...account, look: async () => ({ uid: "u1", annotations: {} }) };
  assert.deepEqual(await world.users("r.io/app", silent), []);
  assert.deepEqual(await world.users("r.io/app"), []);
  assert.deepEqual([world.runs.length, world.journal.entries.length], [0, 0]);
  const { tokens } = ofAccounts;
  const optional = new World({ ...ofAccounts, tokens: tokens && { ...tokens, required: false } });
  assert.deepEqual(await optional.users("r.io/app"), [["user", undefined]]);
  assert.deepEqual(optional.asked, { kind: "CredentialProviderRequest", apiVersion, image: "r.io/app" });
});

test("a token as password requires a cache by token", async () => {
  const auth = { "r.io": { username: "user", password: "token-of-registry-u1" } };
  const world = new World(ofAccounts);
  world.stdout = answer("Global", { auth });
  assert.deepEqual(await world.users("r.io/app", account), []);
  assert.match(
    world.journal.messages("CredentialProviderFailed").join(),
    /returned the service account's token as the password/u,
  );
  const { tokens } = ofAccounts;
  const byToken = new World({ ...ofAccounts, tokens: tokens && { ...tokens, cacheType: "Token" } });
  byToken.stdout = world.stdout;
  assert.deepEqual(await byToken.users("r.io/app", account), [["user", "robot"]]);
  const renewed = { ...account, token: async () => "another" };
  await byToken.users("r.io/app", renewed);
  assert.equal(byToken.runs.length, 2);
});

const failures: readonly (readonly [what: string, set: (world: World) => void, message: RegExp])[] = [
  ["cannot run", (world) => (world.failure = new Error("cannot run /plugins/plugin: ENOENT")), /cannot run .*ENOENT/u],
  [
    "fails",
    (world) => (world.failure = { exitCode: 3, stderr: "no token-of-registry-u1 here" }),
    /it exited with exit code 3: no … here$/u,
  ],
  ["is killed", (world) => (world.failure = { exitCode: undefined, signal: "SIGKILL" }), /it exited with SIGKILL$/u],
  ["prints no JSON", (world) => (world.stdout = "hunter2"), /it printed something that is not JSON$/u],
  [
    "prints something else",
    (world) => (world.stdout = '{"auth":"hunter2"}'),
    /it printed no CredentialProviderResponse$/u,
  ],
  [
    "has another protocol",
    (world) => (world.stdout = answer("Image", { apiVersion: "hunter2" })),
    /returned apiVersion another instead of/u,
  ],
  ["keeps in an unknown way", (world) => (world.stdout = answer("hunter2")), /did not return a valid cacheKeyType/u],
  [
    "keeps for no time",
    (world) => (world.stdout = answer("Image", { cacheDuration: "hunter2" })),
    /a cacheDuration that is not a duration$/u,
  ],
];

for (const [what, set, message] of failures) {
  test(`a plugin that ${what} is reported, and provides nothing`, async () => {
    const world = new World(ofAccounts);
    set(world);
    assert.deepEqual(await world.users("r.io/app", account), []);
    const [told = ""] = world.journal.messages("CredentialProviderFailed");
    assert.match(told, /^Credential provider plugin failed for r\.io\/app, pulling without it: /u);
    assert.match(told, message);
    assert.doesNotMatch(JSON.stringify(world.journal.entries), /hunter2|token-of/u);
  });
}

test("what a plugin printed on standard error is in the journal, and not in the pod's Event", async () => {
  const world = new World(plain);
  world.failure = { exitCode: 3, stderr: "cannot log in as admin:hunter2" };
  assert.deepEqual(await world.users("r.io/app"), []);
  const entry = world.journal.entries.find(({ what }) => what === "CredentialProviderFailed");
  const failed = "Credential provider plugin failed for r.io/app, pulling without it: it exited with exit code 3";
  assert.equal(entry?.message, `${failed}: cannot log in as admin:hunter2`);
  assert.deepEqual(entry.data, { eventMessage: `${failed}; the kubelet's log says what it printed` });
});

test("an account lookup failure is reported", async () => {
  const world = new World(ofAccounts);
  const gone = { ...account, look: async () => await Promise.reject(new Error("not found")) };
  assert.deepEqual(await world.users("r.io/app", gone), []);
  assert.match(world.journal.messages("CredentialProviderFailed").join(), /failed to get service account: not found$/u);
});

test("credentials of a response match by its registry names", () => {
  const { entries, cacheKeyType, cacheMs } = decodePluginAnswer(answer("Registry", { cacheDuration: "90s" }), plain);
  assert.deepEqual(
    [entries[0]?.registry, entries[0]?.credential.password, cacheKeyType, cacheMs],
    ["r.io", "hunter2", "Registry", 90_000],
  );
  assert.deepEqual(decodePluginAnswer(answer("Image", { auth: null }), plain).entries, []);
});
