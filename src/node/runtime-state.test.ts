import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { CriError } from "../ports/cri.ts";
import type { RpcCallOptions } from "../ports/rpc.ts";
import { StatusResponseSchema, VersionResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { RuntimeState } from "./runtime-state.ts";

const facts = { name: "sim", version: "1", handlers: [], supplementalGroupsPolicy: false };

/** A runtime with the status that the test sets. */
class World {
  readonly clock = new ManualClock();
  answers = true;
  ready = true;
  network = true;
  /** It takes calls and answers none. */
  hangs = false;
  changes = 0;
  networks = 0;
  version = "1";
  supplementalGroupsPolicy = false;
  readonly stop = new AbortController();
  readonly state: RuntimeState;
  readonly ended: Promise<void>;

  constructor(answers = true) {
    this.answers = answers;
    const status = async (_request: object, { timeoutMs = 120_000 }: RpcCallOptions = {}) => {
      if (this.hangs) {
        // As every unary call ends: at its caller's deadline, or at upstream's.
        await this.clock.sleep("Status", timeoutMs);
        throw new CriError("DeadlineExceeded", "Status", "no answer");
      }
      if (!this.answers) throw new Error("connection refused");
      const condition = (type: string, isSo: boolean): object => {
        return isSo ? { type, status: true } : { type, status: false, reason: "Why", message: "that" };
      };
      const conditions = [condition("RuntimeReady", this.ready), condition("NetworkReady", this.network)];
      const { supplementalGroupsPolicy } = this;
      return create(StatusResponseSchema, { status: { conditions }, features: { supplementalGroupsPolicy } });
    };
    const version = async () => create(VersionResponseSchema, { runtimeName: "sim", runtimeVersion: this.version });
    const deps = { clock: this.clock, runtime: { status, version }, log: silentLog };
    this.state = new RuntimeState(
      deps,
      facts,
      () => this.changes++,
      () => this.networks++,
    );
    this.ended = this.state.run(this.stop.signal);
  }

  async end(): Promise<void> {
    this.stop.abort(new Error("the test is over"));
    await this.ended;
    assert.deepEqual(this.clock.waits, []);
  }
}

test("before the runtime has answered nothing is known of the node", async () => {
  const world = new World(false);
  await settle();
  assert.deepEqual(world.state.problems(), ["container runtime status check may not have completed yet"]);
  const waiting = new AbortController();
  const known = world.state.known(waiting.signal);
  waiting.abort(new Error("canceled"));
  await assert.rejects(known, /canceled/);
  world.answers = true;
  await world.clock.advance(5000);
  await world.state.known(new AbortController().signal);
  assert.deepEqual(world.state.problems(), []);
  assert.equal(world.changes, 1);
  await world.end();
});

test("the runtime's problems are reported in upstream's words, when they change", async () => {
  const world = new World();
  await settle();
  world.network = false;
  await world.clock.advance(5000);
  assert.deepEqual(world.state.problems(), [
    "container runtime network not ready: NetworkReady=false reason:Why message:that",
  ]);
  await world.clock.advance(5000);
  assert.equal(world.changes, 2, "once that it is there, once that its network is not");
  assert.equal(world.state.networkProblem, world.state.problems()[0]);
  world.ready = false;
  await world.clock.advance(35_000);
  assert.deepEqual(world.state.problems(["PLEG is not healthy: why"]), [
    "container runtime is down",
    "PLEG is not healthy: why",
    "container runtime not ready: RuntimeReady=false reason:Why message:that",
    "container runtime network not ready: NetworkReady=false reason:Why message:that",
  ]);
  world.ready = true;
  world.network = true;
  await world.clock.advance(1000);
  assert.deepEqual([world.state.networkProblem, world.networks], [undefined, 1], "asked each second for it");
  await world.end();
});

test("a runtime that has not been well for thirty seconds is down", async () => {
  for (const silent of [true, false]) {
    const world = new World();
    await settle();
    if (silent) world.answers = false;
    else world.ready = false;
    await world.clock.advance(30_000);
    assert.ok(!world.state.problems().includes("container runtime is down"));
    await world.clock.advance(5000);
    assert.ok(world.state.problems().includes("container runtime is down"));
    Object.assign(world, { answers: true, ready: true });
    await world.clock.advance(5000);
    assert.deepEqual(world.state.problems(), []);
    await world.end();
  }
});

test("a runtime that hangs is down after 30 s, and ready again with its next answer although the call never ends", async () => {
  const world = new World();
  await settle();
  world.hangs = true;
  await world.clock.advance(36_000);
  assert.ok(world.state.problems().includes("container runtime is down"));
  world.hangs = false;
  await world.clock.advance(5000);
  assert.deepEqual(world.state.problems(), []);
  await world.end();
});

test("another version of the runtime is noticed: its features at once, its name after an outage or within a minute", async () => {
  const world = new World();
  await settle();
  const { changes } = world;
  Object.assign(world, { version: "2", supplementalGroupsPolicy: true });
  await world.clock.advance(5000);
  assert.deepEqual(world.state.facts, { ...facts, supplementalGroupsPolicy: true });
  assert.equal(world.changes, changes + 1);
  for (let asks = 0; asks < 12; asks++) await world.clock.advance(5000);
  assert.equal(world.state.facts.version, "2");
  world.answers = false;
  await world.clock.advance(5000);
  Object.assign(world, { version: "3", answers: true });
  await world.clock.advance(5000);
  assert.equal(world.state.facts.version, "3");
  await world.end();
});
