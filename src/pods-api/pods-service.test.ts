import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { podWith } from "../../test/support/pods.ts";
import { podUid } from "../base/ids.ts";
import { EventType, WatchPodsRequestSchema } from "../ports/gen/pods/v1alpha1/api_pb.js";
import { RpcError } from "../ports/rpc.ts";
import { podsService, type PodNews, type ServedPod } from "./pods-service.ts";

class World {
  readonly pods: ServedPod[] = [];
  readonly listeners = new Set<(news: PodNews) => void>();
  readonly end = new AbortController();
  dropped = 0;

  watch(): AsyncIterator<{ type?: EventType; pod?: Uint8Array }> {
    const service = podsService({
      pods: () => this.pods,
      watch: (listener) => {
        this.listeners.add(listener);
        return { [Symbol.dispose]: () => void this.listeners.delete(listener) };
      },
      dropped: () => void this.dropped++,
    });
    const context: Partial<HandlerContext> = { signal: this.end.signal };
    return service.watchPods(create(WatchPodsRequestSchema), context as HandlerContext)[Symbol.asyncIterator]();
  }

  tell(news: PodNews): void {
    for (const listener of this.listeners) listener(news);
  }
}

const served = (uid: string): ServedPod => ({ pod: podWith({}, { name: uid, uid }), status: { phase: "Running" } });

test("a watch starts with the existing pods, and continues with each change", async () => {
  const world = new World();
  world.pods.push(served("b"), served("a"));
  const events = world.watch();
  const next = async (): Promise<string> => {
    const { value } = await events.next();
    const { type = EventType.UNSPECIFIED, pod = new Uint8Array() } = value as { type?: EventType; pod?: Uint8Array };
    // Pod.metadata.name is field 1 of field 1.
    return `${EventType[type]} ${pod.length === 0 ? "" : String.fromCharCode(pod[4] ?? 0)}`.trim();
  };
  assert.deepEqual([await next(), await next(), await next()], ["ADDED a", "ADDED b", "INITIAL_SYNC_COMPLETE"]);
  world.tell({ type: "modified", pod: served("a") });
  world.tell({ type: "deleted", ref: { namespace: "ns", name: "b", uid: podUid("b") } });
  assert.deepEqual([await next(), await next()], ["MODIFIED a", "DELETED b"]);
  const last = events.next();
  world.end.abort();
  assert.equal((await last).done, true);
  assert.equal(world.listeners.size, 0);
});

test("a watcher that does not keep up is disconnected", async () => {
  const world = new World();
  const events = world.watch();
  await events.next();
  for (let count = 0; count < 150; count++) world.tell({ type: "modified", pod: served("a") });
  for (let count = 0; count < 100; count++) assert.equal((await events.next()).done, false);
  await assert.rejects(events.next(), (error) => error instanceof RpcError && error.code === "ResourceExhausted");
  assert.deepEqual([world.dropped, world.listeners.size], [1, 0]);
});
