import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import type { JournalInput } from "../journal/entry.ts";
import { CriError } from "../ports/cri.ts";
import {
  ImageStatusResponseSchema,
  type PullImageRequestSchema,
  type PullImageResponse,
  PullImageResponseSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import { ImageError, type ImageErrorReason } from "./image-error.ts";
import { defaultImageLimits, type EnsureImageRequest, ImageManager, type ImageManagerLimits } from "./image-manager.ts";
import type { PullService } from "./image-puller.ts";

interface Pull {
  readonly request: MessageInitShape<typeof PullImageRequestSchema>;
  readonly signal: AbortSignal | undefined;
  readonly end: () => void;
  readonly fail: (error: Error) => void;
}

/** A runtime whose pulls end when the test says so. */
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

function world(limits: Partial<ImageManagerLimits> = {}) {
  const clock = new ManualClock();
  const images = new FakeImages();
  const entries: JournalInput[] = [];
  const journal = { record: (entry: JournalInput): number => entries.push(entry) };
  const manager = new ImageManager({ clock, images, journal }, { ...defaultImageLimits, ...limits });
  const request = (image: string, change: Partial<EnsureImageRequest> = {}): EnsureImageRequest => ({
    pod: { namespace: "default", name: "web", uid: "uid-web" },
    container: "app",
    image,
    pullPolicy: "IfNotPresent",
    sandboxConfig: { metadata: { name: "web" } },
    cause: { code: "ContainerMissing", message: "container app has not been started yet" },
    ...change,
  });
  const ensure = (image: string, change: Partial<EnsureImageRequest> = {}, signal = new AbortController().signal) =>
    manager.ensureImageExists(request(image, change), signal);
  const messages = (): string[] => entries.map((entry) => `${entry.kind} ${entry.what}: ${entry.message}`);
  return { clock, images, entries, ensure, messages, manager };
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

test("an image that is present is used without a pull", async () => {
  const { images, ensure, messages } = world();
  images.present.set("busybox:latest", { id: "sha256:1", username: "nobody" });
  const ensured = await ensure("busybox");
  assert.deepEqual(ensured, { imageRef: "sha256:1", pulled: false, user: { username: "nobody" } });
  assert.deepEqual(messages(), [
    'decision ImagePresent: Container image "busybox" already present on machine and can be accessed by the pod',
  ]);
});

test("an absent image is pulled, and the journal tells it in upstream's words", async () => {
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

test("policy Always pulls without looking first, policy Never does not pull", async () => {
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

test("a name that is none and a runtime that can't be asked are told apart", async () => {
  const { images, ensure } = world();
  const invalid = await refusal(ensure("Bad Image"), "InvalidImageName");
  assert.match(invalid.message, /^Failed to apply default image tag "Bad Image": couldn't parse image name/);
  images.statusError = new CriError("Unavailable", "ImageStatus", "connection refused");
  const unasked = await refusal(ensure("app:1"), "ImageInspectError");
  assert.equal(unasked.message, 'Failed to inspect image "app:1": connection refused');
});

test("a failed pull is not tried again before its back-off, which doubles and tells the failure", async () => {
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

test("a back-off is one pod's and one image's, and an image that appears meanwhile is used", async () => {
  const { images, ensure } = world();
  const failing = ensure("app:1");
  await settle();
  images.pulls[0]?.fail(new CriError("Unknown", "PullImage", "RegistryUnavailable: 503"));
  const failed = await refusal(failing, "RegistryUnavailable");
  assert.equal(failed.message, "image pull failed for app:1 because the registry is unavailable: 503");
  const other = ensure("app:1", { pod: { namespace: "default", name: "db", uid: "uid-db" } });
  const otherImage = ensure("app:2");
  await settle();
  assert.equal(images.pulls.length, 3);
  images.pulls[1]?.end();
  images.pulls[2]?.end();
  await Promise.all([other, otherImage]);
  assert.equal((await ensure("app:1")).pulled, false);
});

test("pods that want one image share its pull; a pod that goes leaves it to the others", async () => {
  const { images, ensure, entries } = world();
  const leaving = new AbortController();
  const first = ensure("app:1", {}, leaving.signal);
  const second = ensure("app:1", { pod: { namespace: "default", name: "db", uid: "uid-db" } });
  await settle();
  assert.equal(images.pulls.length, 1);
  leaving.abort(new Error("the pod was deleted"));
  await assert.rejects(first, /the pod was deleted/);
  assert.equal(entries.at(-1)?.result, "unknown");
  assert.equal(images.pulls[0]?.signal?.aborted, false);
  images.pulls[0]?.end();
  assert.equal((await second).pulled, true);
});

test("a pull that nobody waits for any more is cancelled, and counts as no failure", async () => {
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

test("pulls beyond the parallel bound wait, and the wait is told apart from the pull", async () => {
  const { clock, images, ensure, messages, manager } = world({ maxParallelImagePulls: 1 });
  const pulls = [ensure("app:1"), ensure("app:2")];
  await settle();
  assert.equal(images.pulls.length, 1);
  assert.deepEqual(manager.load, { held: 1, waiting: 1 });
  await clock.advance(1_000);
  images.pulls[0]?.end();
  await settle();
  await clock.advance(500);
  images.pulls[1]?.end();
  await Promise.all(pulls);
  assert.match(messages().at(-1) ?? "", /in 500ms \(1\.5s including waiting\)/);
});

test("pulls beyond the registry's rate fail and back off", async () => {
  const { images, ensure } = world({ registryPullQps: 1, registryBurst: 1 });
  const first = ensure("app:1");
  const second = await refusal(ensure("app:2"), "ErrImagePull");
  assert.equal(second.message, "pull QPS exceeded");
  images.pulls[0]?.end();
  await first;
});

test("a pull has an end, named; what it did is unknown then", async () => {
  const { clock, images, ensure, entries } = world({ pullDeadlineMs: 60_000 });
  const pull = refusal(ensure("app:1"), "ErrImagePull");
  await clock.advance(60_000);
  assert.equal((await pull).message, "pull of image app:1: not done within 60 s");
  assert.equal(images.pulls[0]?.signal?.aborted, true);
  assert.equal(entries.at(-1)?.result, "unknown");
  assert.deepEqual(clock.waits, []);
});

test("a request that is called off before it begins does nothing", async () => {
  const { images, ensure, entries } = world();
  await assert.rejects(ensure("app:1", {}, AbortSignal.abort(new Error("gone"))), /gone/);
  assert.deepEqual([images.looks, entries], [[], []]);
});
