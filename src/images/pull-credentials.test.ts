import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import { MemoryFiles } from "../sim/files.ts";
import { PullCredentials } from "./pull-credentials.ts";

const paths = ["/kubelet/config.json", "/root/.docker/config.json", "/kubelet/.dockercfg"];

async function world() {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const warnings: string[] = [];
  for (const directory of ["/kubelet", "/root", "/root/.docker"]) await files.makeDirectory(directory, 0o700);
  const log = { ...silentLog, warn: (_text: string, fields?: object) => void warnings.push(JSON.stringify(fields)) };
  const credentials = new PullCredentials({ clock, files, log }, paths);
  const users = async (image: string): Promise<string[]> =>
    (await credentials.for(image, [])).map(({ credential }) => credential.username);
  const write = (path: string, value: unknown): Promise<void> =>
    files.write(path, typeof value === "string" ? value : JSON.stringify(value), 0o600);
  return { clock, users, write, warnings };
}

test("the first valid file of the node is used, and read again after five minutes", async () => {
  const { clock, users, write, warnings } = await world();
  assert.deepEqual(await users("busybox"), []);
  await write("/kubelet/.dockercfg", { "r.io": { username: "old", password: "p" } });
  assert.deepEqual(await users("r.io/app"), []);
  await clock.advance(5 * 60_000);
  assert.deepEqual(await users("r.io/app"), ["old"]);
  await write("/root/.docker/config.json", {
    auths: { "https://index.docker.io/v1/": { username: "hub", password: "p" } },
  });
  await write("/kubelet/config.json", '{"auths": hunter2');
  await clock.advance(5 * 60_000);
  assert.deepEqual(await users("r.io/app"), []);
  assert.deepEqual(await users("busybox"), ["hub"]);
  assert.deepEqual(warnings, ['{"path":"/kubelet/config.json","error":"is not JSON"}']);
});

test("plugin credentials come after those of the pod and the node, with their account", async () => {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/kubelet", 0o700);
  await files.write(
    "/kubelet/config.json",
    JSON.stringify({ auths: { "r.io": { username: "node", password: "p" } } }),
    0o600,
  );
  const entry = (registry: string, username: string) => ({
    registry,
    credential: { username, password: "p", email: "", identityToken: "" },
  });
  const account = { uid: podUid("u"), namespace: "ns", name: "robot" };
  const asked: string[] = [];
  const providers = {
    for: async (repository: string) => {
      asked.push(repository);
      return [
        { entries: [entry("r.io", "plugin"), entry("other.io", "stray")], account: undefined },
        { entries: [entry("r.io/team", "account")], account },
      ];
    },
  };
  const credentials = new PullCredentials({ clock, files, log: silentLog }, paths, providers);
  const source = { uid: podUid("s"), namespace: "ns", name: "secret" };
  const pod = { namespace: "ns", name: "p", uid: podUid("p") };
  const cause = { code: "ContainerMissing", message: "m" } as const;
  const asker = { pod, cause, account: undefined, signal: new AbortController().signal };
  const found = await credentials.for("r.io/team/app:1", [{ source, entries: [entry("r.io", "pod")] }], asker);
  assert.deepEqual(
    found.map(({ credential, account: as }) => [credential.username, as?.name]),
    [
      ["pod", undefined],
      ["node", undefined],
      // The more specific name first.
      ["account", "robot"],
      ["plugin", undefined],
    ],
  );
  assert.deepEqual(asked, ["r.io/team/app"]);
});

test("Secrets with equal credentials are all there: each of them may give access to an image", async () => {
  const clock = new ManualClock();
  const credentials = new PullCredentials({ clock, files: new MemoryFiles(clock), log: silentLog }, []);
  const secrets = ["", "robot@example.org"].map((email) => ({
    source: { uid: podUid(`s${email}`), namespace: "ns", name: "secret" },
    entries: [{ registry: "r.io", credential: { username: "robot", password: "p", email, identityToken: "" } }],
  }));
  const found = await credentials.for("r.io/app:1", secrets);
  assert.deepEqual(
    found.map(({ source }) => source?.uid),
    ["s", "srobot@example.org"],
  );
});
