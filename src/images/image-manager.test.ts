import { podUid } from "../base/ids.ts";
import { simProcesses } from "../sim/machine.ts";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { JournalInput } from "../journal/entry.ts";
import { CriError } from "../ports/cri.ts";
import {
  ImageStatusResponseSchema,
  type PullImageRequestSchema,
  type PullImageResponse,
  PullImageResponseSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { ImageError, type ImageErrorReason } from "./image-error.ts";
import { defaultImageLimits, type EnsureImageRequest, type ImageManagerLimits } from "./image-manager.ts";
import { makeImages } from "./make-images.ts";
import type { PullService } from "./image-puller.ts";
import type { PullSecret } from "./pull-credentials.ts";

interface Pull {
  readonly request: MessageInitShape<typeof PullImageRequestSchema>;
  readonly signal: AbortSignal | undefined;
  readonly end: () => void;
  readonly fail: (error: Error) => void;
}

/** A runtime whose pulls the test ends. */
class FakeImages implements PullService {
  readonly present = new Map<string, { readonly id: string; readonly size?: bigint; readonly username?: string }>();
  readonly pulls: Pull[] = [];
  readonly looks: string[] = [];
  statusError: CriError | undefined;

  async imageStatus({ image }: Parameters<PullService["imageStatus"]>[0]) {
    const name = image?.image ?? "";
    this.looks.push(name);
    if (this.statusError !== undefined) throw this.statusError;
    const found = this.present.get(name);
    return create(ImageStatusResponseSchema, found === undefined ? {} : { image: found });
  }

  pullImage(request: MessageInitShape<typeof PullImageRequestSchema>, options?: { readonly signal?: AbortSignal }) {
    const { promise, resolve, reject } = Promise.withResolvers<PullImageResponse>();
    const name = request.image?.image ?? "";
    const end = (): void => {
      this.present.set(name, { id: `sha256:${name}`, size: 1_000n });
      resolve(create(PullImageResponseSchema, { imageRef: `sha256:${name}` }));
    };
    options?.signal?.addEventListener("abort", () => reject(new CriError("Canceled", "PullImage", "cancelled")));
    this.pulls.push({ request, signal: options?.signal, end, fail: reject });
    return promise;
  }
}

const settings = {
  verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] },
  credentialFiles: ["/kubelet/config.json", "/.dockercfg"],
} as const;

function world(limits: Partial<ImageManagerLimits> = {}) {
  const clock = new ManualClock();
  const images = new FakeImages();
  const entries: JournalInput[] = [];
  const journal = { record: (entry: JournalInput): number => entries.push(entry) };
  const files = new MemoryFiles(clock);
  const limited = { ...defaultImageLimits, ...limits };
  const { manager, leases } = makeImages(
    { clock, images, journal, files, hashing: simHashing, log: silentLog, processes: simProcesses },
    { images: { ...limited, ...settings }, node: { rootDirectory: "/kubelet" } },
  );
  const request = (image: string, change: Partial<EnsureImageRequest> = {}): EnsureImageRequest => ({
    pod: { namespace: "default", name: "web", uid: podUid("uid-web") },
    container: "app",
    image,
    pullPolicy: "IfNotPresent",
    sandboxConfig: { metadata: { name: "web" } },
    lease: leases.take(),
    cause: { code: "ContainerMissing", message: "container app has not been started yet" },
    ...change,
  });
  const ensure = (image: string, change: Partial<EnsureImageRequest> = {}, signal = new AbortController().signal) =>
    manager.ensureImageExists(request(image, change), signal);
  const messages = (): string[] => entries.map((entry) => `${entry.kind} ${entry.what}: ${entry.message}`);
  return { clock, images, entries, ensure, messages, files };
}

async function refusal(promise: Promise<unknown>, reason: ImageErrorReason): Promise<ImageError> {
  const error: unknown = await promise.then(
    () => assert.fail("it was not refused"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ImageError, String(error));
  assert.equal(error.reason, reason);
  return error;
}

test("a present image is used without a pull", async () => {
  const { images, ensure, messages } = world();
  images.present.set("busybox:latest", { id: "sha256:1", username: "nobody" });
  const ensured = await ensure("busybox");
  assert.deepEqual(ensured, { imageRef: "sha256:1", pulled: false, user: { username: "nobody" } });
  assert.deepEqual(messages(), [
    'decision ImagePresent: Container image "busybox" already present on machine and can be accessed by the pod',
  ]);
});

test("an absent image is pulled, with journal entries in upstream's words", async () => {
  const { clock, images, ensure, entries, messages } = world();
  const ensured = ensure("busybox", { annotations: { a: "b" } });
  await settle();
  assert.deepEqual(images.pulls[0]?.request, {
    image: { image: "busybox:latest", annotations: { a: "b" } },
    sandboxConfig: { metadata: { name: "web" } },
  });
  await clock.advance(1_200);
  images.pulls[0]?.end();
  assert.deepEqual(await ensured, { imageRef: "sha256:busybox:latest", pulled: true, user: { uid: 0n } });
  assert.deepEqual(messages(), [
    'action PullImage: Pulling image "busybox"',
    'outcome PullImage: Successfully pulled image "busybox" in 1.2s (1.2s including waiting). Image size: 1000 bytes.',
  ]);
  assert.equal(entries[0]?.cause?.code, "ContainerMissing");
  assert.deepEqual([entries[1]?.of, entries[1]?.result, entries[1]?.durationMs], [1, "done", 1_200]);
});

test("policy Always pulls without a lookup, policy Never does not pull", async () => {
  const { images, ensure } = world();
  images.present.set("app:1", { id: "sha256:old" });
  const ensured = ensure("app:1", { pullPolicy: "Always" });
  await settle();
  assert.deepEqual(images.looks, []);
  images.pulls[0]?.end();
  assert.equal((await ensured).pulled, true);
  assert.equal((await ensure("app:1", { pullPolicy: "Never" })).pulled, false);
  const error = await refusal(ensure("app:2", { pullPolicy: "Never" }), "ErrImageNeverPull");
  assert.equal(error.message, 'Container image "app:2" is not present with pull policy of Never');
  assert.equal(images.pulls.length, 1);
});

test("an invalid name and a failing runtime have different reasons", async () => {
  const { images, ensure } = world();
  const invalid = await refusal(ensure("Bad Image"), "InvalidImageName");
  assert.match(invalid.message, /^Failed to apply default image tag "Bad Image": couldn't parse image name/);
  images.statusError = new CriError("Unavailable", "ImageStatus", "connection refused");
  const unasked = await refusal(ensure("app:1"), "ImageInspectError");
  assert.equal(unasked.message, 'Failed to inspect image "app:1": connection refused');
});

test("a failed pull is not retried before its back-off, which doubles and repeats the error", async () => {
  const { clock, images, ensure, entries } = world();
  for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
    const pull = ensure("app:1");
    await settle();
    images.pulls.at(-1)?.fail(new CriError("Unknown", "PullImage", "no such host"));
    const failed = await refusal(pull, "ErrImagePull");
    assert.equal(failed.message, "no such host");
    assert.equal(failed.retryAtMs, undefined);
    await clock.advance(seconds * 1_000 - 1);
    const waiting = await refusal(ensure("app:1"), "ImagePullBackOff");
    assert.equal(waiting.message, 'Back-off pulling image "app:1": ErrImagePull: no such host');
    assert.equal(waiting.retryAtMs, clock.monotonic() + 1);
    assert.equal(entries.at(-1)?.until, clock.now() + 1);
    await clock.advance(1);
  }
  assert.equal(images.pulls.length, 7);
});

test("an absent runtime causes no back-off", async () => {
  const { images, ensure } = world();
  for (let tries = 0; tries < 3; tries++) {
    const pull = ensure("app:1");
    await settle();
    images.pulls.at(-1)?.fail(new CriError("Unavailable", "PullImage", "cannot reach the runtime"));
    await refusal(pull, "ErrImagePull");
  }
  assert.equal(images.pulls.length, 3);
});

test("back-offs are per pod and image, and an image that appears meanwhile is used", async () => {
  const { images, ensure } = world();
  const failing = ensure("app:1");
  await settle();
  images.pulls[0]?.fail(new CriError("Unknown", "PullImage", "RegistryUnavailable: 503"));
  const failed = await refusal(failing, "RegistryUnavailable");
  assert.equal(failed.message, "image pull failed for app:1 because the registry is unavailable: 503");
  const other = ensure("app:1", { pod: { namespace: "default", name: "db", uid: podUid("uid-db") } });
  const otherImage = ensure("app:2");
  await settle();
  assert.equal(images.pulls.length, 3);
  images.pulls[1]?.end();
  images.pulls[2]?.end();
  await Promise.all([other, otherImage]);
  assert.equal((await ensure("app:1")).pulled, false);
});

test("pods that need the same image share its pull, which continues when one of them leaves", async () => {
  const { images, ensure, entries } = world();
  const leaving = new AbortController();
  const first = ensure("app:1", {}, leaving.signal);
  const second = ensure("app:1", { pod: { namespace: "default", name: "db", uid: podUid("uid-db") } });
  await settle();
  assert.equal(images.pulls.length, 1);
  leaving.abort(new Error("the pod was deleted"));
  await assert.rejects(first, /the pod was deleted/);
  assert.equal(entries.at(-1)?.result, "unknown");
  assert.equal(images.pulls[0]?.signal?.aborted, false);
  images.pulls[0]?.end();
  assert.equal((await second).pulled, true);
});

test("an abandoned pull is canceled, and does not count as a failure", async () => {
  const { images, ensure } = world();
  const leaving = new AbortController();
  const only = ensure("app:1", {}, leaving.signal);
  await settle();
  leaving.abort(new Error("the pod was deleted"));
  await assert.rejects(only, /the pod was deleted/);
  assert.equal(images.pulls[0]?.signal?.aborted, true);
  const again = ensure("app:1");
  await settle();
  images.pulls[1]?.end();
  assert.equal((await again).pulled, true);
});

test("pulls above the parallel limit wait, and the wait is reported apart from the pull", async () => {
  const { clock, images, ensure, messages } = world({ maxParallelImagePulls: 1 });
  const pulls = [ensure("app:1"), ensure("app:2")];
  await settle();
  assert.equal(images.pulls.length, 1);
  await clock.advance(1_000);
  images.pulls[0]?.end();
  await settle();
  await clock.advance(500);
  images.pulls[1]?.end();
  await Promise.all(pulls);
  assert.match(messages().at(-1) ?? "", /in 500ms \(1\.5s including waiting\)/);
});

test("pulls above the registry's rate fail and back off", async () => {
  const { images, ensure } = world({ registryPullQps: 1, registryBurst: 1 });
  const first = ensure("app:1");
  const second = await refusal(ensure("app:2"), "ErrImagePull");
  assert.equal(second.message, "pull QPS exceeded");
  images.pulls[0]?.end();
  await first;
});

test("a pull has a deadline with a name; its outcome is unknown then", async () => {
  const { clock, images, ensure, entries } = world({ pullDeadlineMs: 60_000 });
  const pull = refusal(ensure("app:1"), "ErrImagePull");
  await clock.advance(60_000);
  assert.equal((await pull).message, "pull of image app:1: timed out after 60 s");
  assert.equal(images.pulls[0]?.signal?.aborted, true);
  assert.equal(entries.at(-1)?.result, "unknown");
  assert.deepEqual(clock.waits, []);
});

/** A pull secret of namespace default with one credential for each registry. */
function secret(name: string, password: string, ...registries: readonly string[]): PullSecret {
  const credential = { username: name, password, email: "", identityToken: "" };
  const entries = registries.map((registry) => ({ registry, credential }));
  return { source: { uid: podUid(`uid-${name}`), namespace: "default", name }, entries };
}
const denied = (): CriError => new CriError("Unknown", "PullImage", "401 Unauthorized");

describe("credentials", () => {
  test("are tried in order: the pod's, then the node's own", async () => {
    const { images, files, ensure, entries } = world();
    const auth = Buffer.from("node:own").toString("base64");
    await files.makeDirectory("/kubelet", 0o755);
    await files.write("/kubelet/config.json", JSON.stringify({ auths: { "r.io": { auth } } }), 0o600);
    const pullSecrets = [secret("a", "p1", "r.io", "https://r.io/v1/"), secret("b", "p2", "r.io/team", "else.io")];
    const ensured = ensure("r.io/team/app:1", { pullSecrets });
    for (const [index, username] of ["b", "a", "node"].entries()) {
      await settle();
      assert.equal(images.pulls.length, index + 1);
      assert.equal(images.pulls[index]?.request.auth?.username, username);
      if (username !== "node") images.pulls[index]?.fail(denied());
    }
    images.pulls[2]?.end();
    assert.equal((await ensured).pulled, true);
    assert.deepEqual(entries.at(-1)?.data?.["pullSecret"], undefined);
    assert.doesNotMatch(JSON.stringify(entries), /p1|p2|own|bm9kZTpvd24/);
  });

  test("that all fail are reported with the result of each, equal ones once", async () => {
    const { images, ensure } = world();
    const pull = ensure("r.io/app:1", { pullSecrets: [secret("a", "1", "r.io"), secret("b", "2", "*.io")] });
    for (const index of [0, 1]) {
      await settle();
      images.pulls[index]?.fail(denied());
    }
    assert.equal((await refusal(pull, "ErrImagePull")).message, "401 Unauthorized");
    const repeated = ["a", "c"].map((name) => ({ ...secret("a", "1", "r.io"), source: secret(name, "1").source }));
    const other = ensure("r.io/app:2", { pullSecrets: [...repeated, secret("b", "2", "*.io")] });
    await settle();
    images.pulls[2]?.fail(denied());
    await settle();
    images.pulls[3]?.fail(new CriError("Unknown", "PullImage", "no such host"));
    assert.equal((await refusal(other, "ErrImagePull")).message, "[401 Unauthorized, no such host]");
  });

  test("that fail take nothing of the registry's rate from the right one", async () => {
    const { images, ensure } = world({ registryPullQps: 1, registryBurst: 1 });
    const ensured = ensure("r.io/app:1", { pullSecrets: [secret("a", "1", "r.io"), secret("b", "2", "*.io")] });
    await settle();
    images.pulls[0]?.fail(denied());
    await settle();
    images.pulls[1]?.end();
    assert.equal((await ensured).pulled, true);
  });

  test("with an identity token are sent without the user name", async () => {
    const { images, ensure } = world();
    const source = { uid: podUid("u"), namespace: "default", name: "s" };
    const credential = { username: "0", password: "", email: "", identityToken: "refresh" };
    const ensured = ensure("r.io/app", { pullSecrets: [{ source, entries: [{ registry: "r.io", credential }] }] });
    await settle();
    assert.deepEqual(images.pulls[0]?.request.auth, { identityToken: "refresh" });
    images.pulls[0]?.end();
    await ensured;
  });

  test("of one pod give no other pod access: pods with different ones pull separately", async () => {
    const { images, ensure, entries } = world();
    const db = { namespace: "default", name: "db", uid: podUid("uid-db") };
    const first = ensure("r.io/app:1", { pullSecrets: [secret("a", "1", "r.io")] });
    const second = ensure("r.io/app:1", { pod: db });
    await settle();
    const pullOf = (user: string | undefined): Pull | undefined =>
      images.pulls.find(({ request }) => request.auth?.username === user);
    assert.equal(images.pulls.length, 2);
    pullOf("a")?.end();
    pullOf(undefined)?.fail(denied());
    await first;
    await refusal(second, "ErrImagePull");
    assert.ok(entries.some(({ data }) => data?.["pullSecret"] === "default/a"));
  });
});

describe("an image that was pulled with a pod's secret", () => {
  async function pulledWithSecret(limits: Parameters<typeof world>[0] = {}) {
    const here = world(limits);
    const ensured = here.ensure("r.io/app:1", { pullSecrets: [secret("a", "1", "r.io")] });
    await settle();
    here.images.pulls[0]?.end();
    await ensured;
    return here;
  }

  test("may be used by pods that have the Secret, or one with the same content", async () => {
    const { images, ensure } = await pulledWithSecret();
    assert.equal((await ensure("r.io/app:1", { pullSecrets: [secret("a", "1", "r.io")] })).pulled, false);
    const same = { ...secret("a", "1", "r.io"), source: { uid: podUid("u2"), namespace: "other", name: "b" } };
    assert.equal((await ensure("r.io/app:1", { pullSecrets: [same] })).pulled, false);
    assert.equal((await ensure("r.io/app:1", { pullSecrets: [secret("a", "rotated", "r.io")] })).pulled, false);
    const copy = { ...secret("a", "3", "r.io"), source: { ...same.source, uid: podUid("u3") } };
    assert.equal((await ensure("r.io/app:1", { pullSecrets: [copy, secret("a", "3", "r.io")] })).pulled, false);
    assert.equal(images.pulls.length, 1);
  });

  test("requires a registry check by all others, and counts as absent under policy Never", async () => {
    const { images, ensure } = await pulledWithSecret();
    const never = await refusal(ensure("r.io/app:1", { pullPolicy: "Never" }), "ErrImageNeverPull");
    assert.match(never.message, /is not present/);
    const without = ensure("r.io/app:1");
    await settle();
    assert.equal(images.pulls[1]?.request.auth, undefined);
    images.pulls[1]?.fail(denied());
    await refusal(without, "ErrImagePull");
    const pod = { namespace: "default", name: "db", uid: podUid("uid-db") };
    const other = ensure("r.io/app:1", { pod, pullSecrets: [secret("b", "2", "r.io")] });
    await settle();
    images.pulls[2]?.end();
    assert.equal((await other).pulled, true);
    assert.equal((await ensure("r.io/app:1", { pullSecrets: [secret("b", "2", "r.io")] })).pulled, false);
  });

  test("is everybody's once it was pulled without credentials", async () => {
    const { images, ensure } = await pulledWithSecret();
    const open = ensure("r.io/app:1", { pullPolicy: "Always" });
    await settle();
    images.pulls[1]?.end();
    await open;
    assert.equal((await ensure("r.io/app:1")).pulled, false);
  });
});

test("a request canceled before it begins does nothing", async () => {
  const { images, ensure, entries } = world();
  await assert.rejects(ensure("app:1", {}, AbortSignal.abort(new Error("gone"))), /gone/);
  assert.deepEqual([images.looks, entries], [[], []]);
});
