import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { podUid } from "../../src/base/ids.ts";
import { connectCri } from "../../src/cri/client.ts";
import { ImageError, type ImageErrorReason } from "../../src/images/image-error.ts";
import { defaultImageLimits, type EnsureImageRequest } from "../../src/images/image-manager.ts";
import { makeImages } from "../../src/images/make-images.ts";
import type { JournalInput } from "../../src/journal/entry.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import { runtimeLayout } from "../../src/private-runtime/layout.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import { silentLog } from "../support/sources.ts";
import { freePort } from "../support/free-port.ts";
import { machine } from "../support/machine.ts";
import { patience } from "../support/patience.ts";
import { Registry } from "../support/registry.ts";
import { removeDirectories } from "../support/traces.ts";

const skip = needsRoot() || (existsSync("/usr/bin/docker-registry") ? false : "docker-registry is not installed");
const cleanUps = new AsyncDisposableStack();
let registry: Registry;
let cri: Cri;
/** Where the image manager keeps with which credentials images were pulled. */
let records: string;
const verification = { policy: "NeverVerifyPreloadedImages", allowlist: [] } as const;

before(async () => {
  if (skip !== false) return;
  registry = cleanUps.use(await Registry.start());
  cri = await privateRuntime();
  records = await mkdtemp(join(tmpdir(), "podwright-image-records-"));
  cleanUps.defer(() => rm(records, { recursive: true, force: true }));
});

after(() => cleanUps.disposeAsync());

/** A containerd of this file's own; it runs no pod. */
async function privateRuntime(): Promise<Cri> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-images-"));
  const layout = runtimeLayout(directory, systemHashing);
  const facts = requireReady(await preflight({ ...machine, layout, searchPath: [] }));
  cleanUps.defer(async () => {
    await stopPrivateRuntime(machine, layout, facts.programs);
    await removeDirectories(layout);
  });
  const { endpoint } = await ensurePrivateRuntime(machine, layout, facts);
  return cleanUps.use(connectCri(endpoint, systemClock));
}

function world() {
  const entries: JournalInput[] = [];
  const journal = { record: (entry: JournalInput): number => entries.push(entry) };
  const log = silentLog;
  const { manager, leases } = makeImages(
    {
      clock: systemClock,
      images: cri.images,
      journal,
      files: systemFiles,
      hashing: systemHashing,
      log,
      processes: systemProcesses,
    },
    { images: { ...defaultImageLimits, verification, credentialFiles: [] }, node: { rootDirectory: records } },
  );
  const ensure = (image: string, change: Partial<EnsureImageRequest> = {}, signal = new AbortController().signal) =>
    manager.ensureImageExists(
      {
        pod: { namespace: "default", name: "web", uid: podUid("uid-web") },
        container: "app",
        image,
        pullPolicy: "IfNotPresent",
        sandboxConfig: { metadata: { name: "web", uid: "uid-web", namespace: "default" } },
        lease: leases.take(),
        cause: { code: "ContainerMissing", message: "container app has not been started yet" },
        ...change,
      },
      signal,
    );
  return { entries, ensure };
}

async function refusal(promise: Promise<unknown>, reason: ImageErrorReason): Promise<ImageError> {
  const error: unknown = await promise.then(
    () => assert.fail("it was not refused"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ImageError, String(error));
  assert.equal(error.reason, reason, error.message);
  return error;
}

test("an image is pulled from the registry once and then present", { skip }, async () => {
  const image = await registry.push("team/app", "1", "one", "1000");
  const { entries, ensure } = world();
  await refusal(ensure(image, { pullPolicy: "Never" }), "ErrImageNeverPull");
  const first = await ensure(image);
  assert.match(first.imageRef, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(first, { imageRef: first.imageRef, pulled: true, user: { uid: 1000n } });
  assert.match(
    entries.at(-1)?.message ?? "",
    /^Successfully pulled image ".*\/team\/app:1" in .*s including waiting\)\. Image size: [1-9]\d* bytes\.$/,
  );
  for (const pullPolicy of ["IfNotPresent", "Never"] as const) {
    assert.deepEqual(await ensure(image, { pullPolicy }), { ...first, pulled: false });
  }
});

test("policy Always gets the tag's current image", { skip }, async () => {
  const { ensure } = world();
  const image = await registry.push("team/moving", "latest", "one");
  const first = await ensure(image, { pullPolicy: "Always" });
  await registry.push("team/moving", "latest", "two", "app");
  assert.equal((await ensure(image)).imageRef, first.imageRef);
  const second = await ensure(image, { pullPolicy: "Always" });
  assert.notEqual(second.imageRef, first.imageRef);
  assert.deepEqual(second.user, { username: "app" });
});

test("many pods can pull at once, some of them the same image", { skip }, async () => {
  const { entries, ensure } = world();
  const images = await Promise.all(
    [1, 2, 3].map((index) => registry.push("team/many", String(index), `content ${index}`)),
  );
  const wanted = images.flatMap((image) => [image, image]);
  const ensured = await Promise.all(
    wanted.map((image, index) =>
      ensure(image, { pod: { namespace: "default", name: `pod-${index}`, uid: podUid(`uid-${index}`) } }),
    ),
  );
  assert.equal(new Set(ensured.map((one) => one.imageRef)).size, images.length);
  assert.equal(entries.filter((entry) => entry.result === "done").length, wanted.length);
});

test("a missing image fails with the registry's message, and then waits", { skip }, async () => {
  const { ensure } = world();
  const image = `${registry.address}/team/none:1`;
  const failed = await refusal(ensure(image), "ErrImagePull");
  assert.match(failed.message, /none:1.*not found/);
  const waiting = await refusal(ensure(image), "ImagePullBackOff");
  assert.equal(waiting.message, `Back-off pulling image "${image}": ErrImagePull: ${failed.message}`);
  assert.equal(failed.retryAtMs, undefined, "the next try tells that it waits");
  assert.ok((waiting.retryAtMs ?? 0) > systemClock.monotonic());
});

test("an unavailable registry is reported", { skip }, async () => {
  const failed = await refusal(world().ensure(`127.0.0.1:${await freePort()}/app:1`), "ErrImagePull");
  assert.match(failed.message, /connection refused/);
});

test("canceling a pull that hangs takes effect immediately, and ends it in the runtime", { skip }, async () => {
  const asked = Promise.withResolvers<void>();
  const hungUp = Promise.withResolvers<void>();
  const silent = await listening(
    createServer((request) => {
      asked.resolve();
      request.socket.once("close", hungUp.resolve);
    }),
  );
  using _silent = { [Symbol.dispose]: () => silent.server.close().closeAllConnections() };
  const leaving = new AbortController();
  const pull = world().ensure(`${silent.address}/app:1`, {}, leaving.signal);
  await asked.promise;
  const calledOffMs = performance.now();
  leaving.abort(new Error("the pod was deleted"));
  await assert.rejects(pull, /the pod was deleted/);
  assert.ok(performance.now() - calledOffMs < 10_000 * patience);
  await hungUp.promise;
});

async function listening(server: Server): Promise<{ readonly server: Server; readonly address: string }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address !== "string");
  return { server, address: `127.0.0.1:${address.port}` };
}
