import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { ListPodSandboxResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import type { SourceState } from "../sources/source.ts";
import { takeUpWithoutServer } from "./without-server.ts";

async function world(work: (world: World) => Promise<void>): Promise<void> {
  const here = new World();
  const stop = new AbortController();
  const ended = takeUpWithoutServer(here, stop.signal);
  await work(here);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(here.clock.waits, []);
}

class World {
  readonly clock = new ManualClock();
  readonly journal = new MemoryRecorder();
  readonly log = silentLog;
  readonly delivered: SourceState[] = [];
  answered = false;
  fails = false;
  readonly isAnswered = (): boolean => this.answered;
  readonly deliver = (state: SourceState): void => void this.delivered.push(state);
  readonly lastKnown = async (uids: readonly string[]) => uids.map((uid) => podWith({}, { uid }));
  readonly runtime = {
    listPodSandbox: async () => {
      if (this.fails) throw new Error("away");
      return create(ListPodSandboxResponseSchema, { items: [{ labels: { "io.kubernetes.pod.uid": "a" } }] });
    },
  };
}

test("running pods are managed from their last known specs when the server does not respond for ten seconds", async () => {
  await world(async ({ clock, delivered, journal }) => {
    await clock.advance(9999);
    assert.equal(delivered.length, 0);
    await clock.advance(1);
    assert.deepEqual(
      delivered.map(({ pods, complete }) => [pods.map(({ pod }) => pod.metadata.uid), complete]),
      [[["a"], false]],
    );
    assert.equal(journal.messages("LastKnownPods").length, 1);
    await clock.advance(60_000);
    assert.equal(delivered.length, 1);
  });
});

test("once the server has responded, only its pods count", async () => {
  await world(async (here) => {
    here.answered = true;
    await here.clock.advance(60_000);
    assert.deepEqual(here.delivered, []);
  });
});

test("a runtime that does not respond either is retried", async () => {
  await world(async (here) => {
    here.fails = true;
    await here.clock.advance(12_000);
    assert.deepEqual(here.delivered, []);
    here.fails = false;
    await here.clock.advance(1000);
    assert.equal(here.delivered.length, 1);
  });
});
