import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../ports/clock.ts";
import { CriError, type Cri } from "../ports/cri.ts";
import type { RpcCallOptions } from "../ports/rpc.ts";
import { callLimitMs, describeRequest } from "./call-limits.ts";
import { withDeadlines } from "./deadlines.ts";

const requestTimeoutMs = 120_000;

/** A clock that stands still until it is moved. */
class ManualClock implements Clock {
  #nowMs = 0;
  readonly timers = new Map<object, { readonly name: string; readonly atMs: number; readonly callback: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  timer(name: string, delayMs: number, callback: () => void): Disposable {
    const key = {};
    this.timers.set(key, { name, atMs: this.#nowMs + delayMs, callback });
    return { [Symbol.dispose]: () => void this.timers.delete(key) };
  }

  sleep(): Promise<void> {
    return Promise.reject(new Error("not used here"));
  }

  advance(durationMs: number): void {
    this.#nowMs += durationMs;
    for (const [key, timer] of this.timers) {
      if (timer.atMs <= this.#nowMs && this.timers.delete(key)) timer.callback();
    }
  }
}

interface RecordedCall {
  readonly options: RpcCallOptions;
  readonly answer: PromiseWithResolvers<unknown>;
}

/** A runtime whose every method waits for the test; a class, as a simulated one may be. */
function recordingCri(): { cri: Cri; calls: RecordedCall[] } {
  const calls: RecordedCall[] = [];
  const service = new Proxy(
    {},
    {
      get: () => (_request: object, options: RpcCallOptions) => {
        const answer = Promise.withResolvers<unknown>();
        calls.push({ options, answer });
        return answer.promise;
      },
    },
  );
  const cri = { runtime: service, images: service };
  return { cri: cri as unknown as Cri, calls };
}

function outcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "answered",
    (error: unknown) =>
      error instanceof CriError ? `${error.code}: ${error.message}` : `no CriError: ${String(error)}`,
  );
}

test("each call gets the limit that the Go kubelet gives it", () => {
  const limit = (method: string, request: object): number | undefined => callLimitMs(method, request, requestTimeoutMs);
  assert.equal(limit("ListContainers", {}), 120_000);
  assert.equal(limit("ImageFsInfo", {}), 120_000);
  assert.equal(limit("RunPodSandbox", {}), 240_000);
  assert.equal(limit("StopContainer", { timeout: 30n }), 150_000);
  assert.equal(limit("ExecSync", { timeout: 5n }), 125_000);
  assert.equal(limit("ExecSync", { timeout: 0n }), undefined);
  assert.equal(limit("ExecSync", {}), undefined);
  assert.equal(limit("CheckpointContainer", { timeout: 600n }), 600_000);
  assert.equal(limit("CheckpointContainer", { timeout: 1n }), 120_000);
  assert.equal(limit("PullImage", {}), undefined);
});

test("a call is described by its subject and never by its secrets", () => {
  assert.equal(describeRequest({ containerId: "c1", timeout: 3n }), "c1");
  assert.equal(describeRequest({ podSandboxId: "s1" }), "s1");
  assert.equal(describeRequest({ podSandboxId: "s1", config: { metadata: { name: "app" } } }), "app in s1");
  assert.equal(
    describeRequest({ config: { metadata: { name: "web", namespace: "default", uid: "u" } } }),
    "default/web",
  );
  assert.equal(describeRequest({ image: { image: "busybox:1" }, auth: { password: "geheim" } }), "busybox:1");
  assert.equal(describeRequest({ filter: {} }), "");
});

test("a call that never settles ends at its deadline and aborts the calls below it", async () => {
  const clock = new ManualClock();
  const { cri, calls } = recordingCri();
  const tracked = withDeadlines(cri, clock, requestTimeoutMs);
  const stop = outcome(tracked.runtime.stopContainer({ containerId: "c1", timeout: 30n }));
  assert.equal(calls[0]?.options.timeoutMs, 150_000);
  assert.deepEqual(
    [...clock.timers.values()].map((timer) => timer.name),
    ["CRI StopContainer"],
  );
  clock.advance(149_999);
  assert.equal(tracked.outstanding().length, 1);
  clock.advance(1);
  assert.equal(await stop, "DeadlineExceeded: container runtime did not answer StopContainer for c1 within 150 s");
  assert.equal(calls[0]?.options.signal?.aborted, true);
  assert.deepEqual(tracked.outstanding(), []);
  // A later rejection is ignored, and not unhandled.
  calls[0]?.answer.reject(new CriError("Canceled", "StopContainer", "late"));
  assert.equal(clock.timers.size, 0);
});

test("the caller's signal cancels a call that never settles", async () => {
  const clock = new ManualClock();
  const { cri, calls } = recordingCri();
  const tracked = withDeadlines(cri, clock, requestTimeoutMs);
  const controller = new AbortController();
  const pull = outcome(tracked.images.pullImage({ image: { image: "a" } }, { signal: controller.signal }));
  assert.equal(clock.timers.size, 0);
  controller.abort(new Error("the pod is gone"));
  assert.equal(await pull, "Canceled: canceled by podwright: the pod is gone");
  const again = outcome(tracked.images.pullImage({}, { signal: controller.signal }));
  assert.equal(await again, "Canceled: canceled by podwright: the pod is gone");
  assert.equal(calls.length, 1, "a call whose signal has aborted is not made at all");
});

test("the shorter of upstream's and the caller's limit counts", async () => {
  const clock = new ManualClock();
  const { cri, calls } = recordingCri();
  const tracked = withDeadlines(cri, clock, requestTimeoutMs);
  const short = outcome(tracked.runtime.status({}, { timeoutMs: 1_000 }));
  const none = outcome(tracked.runtime.execSync({ containerId: "c" }, { timeoutMs: 2_000 }));
  const long = outcome(tracked.runtime.version({}, { timeoutMs: 1e9 }));
  assert.deepEqual(
    calls.map((call) => call.options.timeoutMs),
    [1_000, 2_000, 120_000],
  );
  clock.advance(120_000);
  assert.deepEqual(await Promise.all([short, none, long]), [
    "DeadlineExceeded: container runtime did not answer Status within 1 s",
    "DeadlineExceeded: container runtime did not answer ExecSync for c within 2 s",
    "DeadlineExceeded: container runtime did not answer Version within 120 s",
  ]);
});

test("calls under way are listed with the oldest first", async () => {
  const clock = new ManualClock();
  const { cri, calls } = recordingCri();
  const tracked = withDeadlines(cri, clock, requestTimeoutMs);
  const first = outcome(tracked.runtime.podSandboxStatus({ podSandboxId: "s1" }));
  clock.advance(10);
  const second = outcome(tracked.images.pullImage({ image: { image: "busybox" } }));
  assert.deepEqual(tracked.outstanding(), [
    { method: "PodSandboxStatus", detail: "s1", sinceMonotonicMs: 0 },
    { method: "PullImage", detail: "busybox", sinceMonotonicMs: 10 },
  ]);
  calls[0]?.answer.resolve({});
  assert.equal(await first, "answered");
  assert.deepEqual(
    tracked.outstanding().map((call) => call.method),
    ["PullImage"],
  );
  calls[1]?.answer.resolve({});
  await second;
});

test("an implementation that throws something else is reported as Internal", async () => {
  const { cri, calls } = recordingCri();
  const tracked = withDeadlines(cri, new ManualClock(), requestTimeoutMs);
  const status = outcome(tracked.runtime.status({}));
  calls[0]?.answer.reject(new TypeError("x is undefined"));
  assert.equal(await status, "Internal: x is undefined");
});

test("streams pass through without a limit", async () => {
  const clock = new ManualClock();
  const { cri } = recordingCri();
  const seen: RpcCallOptions[] = [];
  const runtime = {
    ...cri.runtime,
    async *getContainerEvents(_request: object, options: RpcCallOptions = {}) {
      seen.push(options);
      yield { containerId: "c" };
    },
  } as unknown as Cri["runtime"];
  const tracked = withDeadlines({ ...cri, runtime }, clock, requestTimeoutMs);
  const { signal } = new AbortController();
  for await (const event of tracked.runtime.getContainerEvents({}, { signal })) assert.equal(event.containerId, "c");
  assert.deepEqual(seen, [{ signal }]);
  assert.equal(clock.timers.size, 0);
});
