import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { FileError } from "../ports/files.ts";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { ImageAccess } from "./image-access.ts";
import { countImageRecords } from "./image-records.ts";
import type { SecretCredential, VerificationPolicy } from "./pull-record.ts";

const recordOf = (id: string): string => `/kubelet/image_manager/pulled/sha256-${simHashing.sha256(id)}`;
const clock = new ManualClock();
const image = "r.io/app:1";
const present = { id: "sha256:1", repoTags: ["r.io/app:1"], repoDigests: [] };
const own: SecretCredential = { uid: "u", namespace: "ns", name: "s", credentialHash: "h" };
const other: SecretCredential = { uid: "v", namespace: "ns", name: "t", credentialHash: "i" };
const shown =
  (...secrets: readonly SecretCredential[]) =>
  async (): Promise<readonly SecretCredential[]> =>
    secrets;

const diskFails = async (): Promise<never> => {
  throw new FileError("EIO", "/", "EIO: the disk fails");
};

function open(files: MemoryFiles, policy: VerificationPolicy["policy"] = "NeverVerifyPreloadedImages"): ImageAccess {
  const deps = { clock, files, hashing: simHashing, log: silentLog };
  return new ImageAccess(deps, { policy, allowlist: [] }, "/kubelet");
}

async function disk(): Promise<MemoryFiles> {
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/kubelet", 0o755);
  return files;
}

test("the credentials of a pull are known after a restart", async () => {
  const files = await disk();
  const access = open(files);
  const counts = async (): Promise<unknown> => await countImageRecords(files, "/kubelet");
  assert.deepEqual(await counts(), { intents: 0, pulled: 0 });
  await access.pulling(image);
  assert.deepEqual(await counts(), { intents: 1, pulled: 0 });
  assert.equal(await access.pulled({ image, imageRef: present.id, with: own }), true);
  await access.settled(image, "recorded");
  await files.writeAtomic("/kubelet/image_manager/pulled/notes.txt", new Uint8Array(), 0o600);
  assert.deepEqual(await counts(), { intents: 0, pulled: 1 });
  await files.remove("/kubelet/image_manager/pulled/notes.txt");
  for (const later of [access, open(files)]) {
    assert.equal(await later.isProven(image, present, shown(own)), true);
    assert.equal(await later.isProven(image, present, shown(other)), false);
  }
  assert.deepEqual(await files.list("/kubelet/image_manager/pulling"), []);
  const [record] = await files.list("/kubelet/image_manager/pulled");
  assert.equal((await files.stat(`/kubelet/image_manager/pulled/${record?.name}`))?.mode, 0o600);
});

test("an image whose pull was interrupted by a kill has to be verified, by any of its names", async () => {
  const files = await disk();
  await open(files).pulling("r.io/app:1");
  const next = open(files);
  assert.equal(await next.isProven("alias.io/app", present, shown(own)), false);
  assert.equal(await next.isProven("r.io/else", { ...present, repoTags: [] }, shown()), true);
  await next.pulled({ image, imageRef: present.id, with: own });
  await next.settled(image, "recorded");
  assert.equal(await next.isProven(image, present, shown(own)), true);
});

test("a pull with unknown outcome keeps its marker, and so do others in progress", async () => {
  const files = await disk();
  const access = open(files);
  await access.pulling(image);
  await access.pulling(image);
  await access.settled(image, "recorded");
  assert.equal(await access.isProven(image, present, shown()), false);
  await access.settled(image, "unknown");
  assert.equal(await open(files).isProven(image, present, shown()), false);
});

test("preloaded images are everybody's unless all are to be verified; with policy NeverVerify all are", async () => {
  const files = await disk();
  assert.equal(await open(files).isProven(image, present, shown()), true);
  assert.equal(await open(files, "AlwaysVerify").isProven(image, present, shown(own)), false);
  await open(files).pulled({ image, imageRef: present.id, with: own });
  assert.equal(await open(files, "NeverVerify").isProven(image, present, shown()), true);
});

test("an unreadable record requires a registry check", async () => {
  const files = await disk();
  await open(files).pulled({ image, imageRef: present.id, with: "node" });
  const path = `/kubelet/image_manager/pulled/sha256-${simHashing.sha256(present.id)}`;
  await files.write(path, "no json", 0o600);
  for (const policy of ["NeverVerify", "NeverVerifyAllowlistedImages", "AlwaysVerify"] as const) {
    assert.equal(await open(files, policy).isProven(image, present, shown()), false, policy);
  }
  assert.equal(await open(files, "Off").isProven(image, present, shown()), true);
  const access = open(files);
  assert.equal(await access.isProven(image, present, shown()), false);
  await access.pulled({ image, imageRef: present.id, with: "node" });
  assert.equal(await open(files).isProven(image, present, shown()), true);
});

test("a record that cannot be read once is not written over, and read again", async (t) => {
  const files = await disk();
  await open(files).pulled({ image, imageRef: present.id, with: own });
  const access = open(files);
  t.mock.method(files, "read", diskFails, { times: 2 });
  assert.equal(await access.isProven(image, present, shown(own)), false);
  assert.equal(await access.pulled({ image, imageRef: present.id, with: other }), false, "its marker stays");
  assert.equal(await access.isProven(image, present, shown(own)), true);
  assert.equal(await access.pulled({ image, imageRef: present.id, with: other }), true);
  for (const secret of [own, other]) assert.equal(await open(files).isProven(image, present, shown(secret)), true);
});

test("a record that could not be written is written by the next pull", async (t) => {
  const files = await disk();
  const access = open(files);
  const use = { image, imageRef: present.id, with: own };
  t.mock.method(files, "writeAtomic", diskFails, { times: 1 });
  assert.equal(await access.pulled(use), false);
  assert.equal(await open(files).isPulled(present), false);
  assert.equal(await access.pulled(use), true);
  assert.equal(await open(files).isPulled(present), true);
});

test("an unreadable pull marker requires a registry check for its image, an unreadable directory for every image", async () => {
  const files = await disk();
  await open(files).pulling(image);
  const directory = "/kubelet/image_manager/pulling";
  await files.write(`${directory}/sha256-${simHashing.sha256(image)}`, "no json", 0o600);
  const second = { id: "sha256:2", repoTags: ["r.io/other:1"], repoDigests: [] };
  for (const policy of ["NeverVerify", "NeverVerifyPreloadedImages"] as const) {
    const access = open(files, policy);
    assert.equal(await access.isProven(image, present, shown()), false, policy);
    assert.equal(await access.isProven("r.io/other:1", second, shown()), true, policy);
  }
  await files.removeTree(directory);
  await files.write(directory, "no directory", 0o600);
  const access = open(files);
  assert.equal(await access.isProven("r.io/other:1", second, shown()), false);
  await assert.rejects(access.pulling(image), /^Error: failed to record image pull intent: /u);
  await files.remove(directory);
  assert.equal(await access.isProven("r.io/other:1", second, shown()), true, "it is asked for again");
});

test("with the feature gate off nothing is recorded, as upstream", async () => {
  const files = await disk();
  const access = open(files, "Off");
  await access.pulling(image);
  assert.equal(await access.pulled({ image, imageRef: present.id, with: own }), true);
  await access.settled(image, "recorded");
  assert.deepEqual(await files.list("/kubelet"), []);
  await open(files).pulled({ image, imageRef: present.id, with: own });
  assert.equal(await access.isProven(image, present, shown(other)), true, "what was kept before has no say");
});

test("with the feature gate off nothing is verified or reported", async () => {
  const told: string[] = [];
  const observer = { accessJudged: (judgement: string) => told.push(judgement) };
  const deps = { clock, files: await disk(), hashing: simHashing, log: silentLog, observer };
  for (const policy of ["Off", "NeverVerify", "AlwaysVerify"] as const) {
    const access = new ImageAccess(deps, { policy, allowlist: [] }, "/kubelet");
    assert.equal(await access.isProven(image, present, shown()), policy !== "AlwaysVerify");
  }
  assert.deepEqual(told, ["credentialPolicyAllowed", "mustAuthenticate"]);
});

test("records of removed images are deleted, except for recent pulls that the list may lack", async (t) => {
  const files = await disk();
  const time = new ManualClock();
  const deps = { clock: time, files, hashing: simHashing, log: silentLog };
  const access = new ImageAccess(deps, { policy: "NeverVerifyPreloadedImages", allowlist: [] }, "/kubelet");
  for (const id of ["sha256:1", "sha256:2"]) await access.pulled({ image, imageRef: id, with: own });
  await access.pulled({ image, imageRef: "r.io/app@sha256:3", with: own });
  await time.advance(1000);
  const beganMs = time.monotonic();
  await time.advance(1000);
  await access.pulled({ image, imageRef: "sha256:4", with: own });
  await files.write("/kubelet/image_manager/pulled/notes", "no record", 0o600);
  const there = [present, { id: "sha256:c", repoTags: [], repoDigests: ["r.io/app@sha256:3"] }];
  const fails = t.mock.method(files, "remove", async () => assert.fail("the disk is full"), { times: 1 });
  assert.equal(await access.prune(there, beganMs), false);
  assert.equal(fails.mock.callCount(), 1);
  assert.equal(await access.prune(there, beganMs), true);
  const pulled = async (id: string): Promise<boolean> => await access.isPulled({ ...present, id });
  const left = await Promise.all(["sha256:1", "sha256:2", "r.io/app@sha256:3", "sha256:4"].map(pulled));
  assert.deepEqual(left, [true, false, true, true]);
  assert.equal((await countImageRecords(files, "/kubelet")).pulled, 3);
  const gone = { ...present, id: "sha256:2" };
  assert.equal(await access.isProven(image, gone, shown()), true, "now as one that nobody pulled");
});

test("that nothing is recorded of an image is forgotten with it", async () => {
  const files = await disk();
  const access = open(files);
  assert.equal(await access.isProven(image, present, shown()), true, "a preloaded one");
  await open(files).pulled({ image, imageRef: present.id, with: own });
  for (const [there, isOpen] of [
    [[present], true],
    [[], false],
  ] as const) {
    const record = await files.read(recordOf(present.id), 1e6);
    await access.prune(there, clock.monotonic() + 1);
    await files.write(recordOf(present.id), record, 0o600);
    assert.equal(await access.isProven(image, present, shown()), isOpen);
  }
});

test("a pull that ends while its image's old record is removed keeps its own", async (t) => {
  const files = await disk();
  const access = open(files);
  await access.pulled({ image, imageRef: present.id, with: other });
  await clock.advance(1000);
  const unlink = files.remove.bind(files);
  const pulls: Promise<boolean>[] = [];
  const removal = t.mock.method(files, "remove", async (path: string) => {
    pulls.push(access.pulled({ image, imageRef: present.id, with: own }));
    await setImmediate();
    await unlink(path);
    await setImmediate();
  });
  assert.equal(await access.prune([], clock.monotonic()), true);
  assert.deepEqual(await Promise.all(pulls), [true]);
  assert.equal(removal.mock.callCount(), 1);
  for (const each of [access, open(files)]) {
    assert.equal(await each.isProven(image, present, shown()), false, "it is no preloaded image");
    assert.equal(await each.isProven(image, present, shown(own)), true);
    assert.equal(await each.isProven(image, present, shown(other)), false);
  }
});

test("an image whose record could not be removed still counts as pulled", async (t) => {
  const files = await disk();
  const access = open(files);
  await access.pulled({ image, imageRef: present.id, with: own });
  await clock.advance(1000);
  t.mock.method(files, "remove", diskFails, { times: 1 });
  assert.equal(await access.prune([], clock.monotonic()), false);
  assert.equal(await access.isProven(image, present, shown()), false);
});

test("records that cannot be decoded, read or removed stay, and the others are removed all the same", async (t) => {
  const files = await disk();
  for (const id of ["sha256:1", "sha256:2", "sha256:3"]) await open(files).pulled({ image, imageRef: id, with: own });
  const [first, second] = [recordOf("sha256:1"), recordOf("sha256:2")];
  await files.write(first, `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v9"}`, 0o600);
  await files.write(recordOf("sha256:0"), await files.read(recordOf("sha256:3"), 1e6), 0o600);
  await clock.advance(1000);
  const access = open(files);
  const unlink = files.remove.bind(files);
  const removal = t.mock.method(files, "remove", async (path: string) => {
    await (path === second ? diskFails() : unlink(path));
  });
  const left = async (): Promise<string[]> =>
    (await files.list("/kubelet/image_manager/pulled")).map(({ name }) => `/kubelet/image_manager/pulled/${name}`);
  assert.equal(await access.prune([], clock.monotonic()), false);
  assert.deepEqual(new Set(await left()), new Set([first, second, recordOf("sha256:0")]));
  removal.mock.restore();
  t.mock.method(files, "read", diskFails, { times: 1 });
  assert.equal(await access.prune([], clock.monotonic()), false, "one could not be read");
  assert.equal(await access.prune([], clock.monotonic()), true, "nothing else can be done");
  assert.deepEqual(new Set(await left()), new Set([first, recordOf("sha256:0")]));
});
