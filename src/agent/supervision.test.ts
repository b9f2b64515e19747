import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { toldLog } from "../../test/support/told-log.ts";
import type { Health } from "../server/local-api.ts";
import { supervise } from "./supervision.ts";

class Scene implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly sent: string[] = [];
  readonly logged: string[] = [];
  checks: Health["checks"] = [{ name: "pleg", ok: true, detail: "fine" }];
  pods: Parameters<typeof supervise>[1]["nodePods"] = () => [];
  failures = 0;
  readonly #end = new AbortController();
  readonly #run: Promise<void>;

  constructor(watchdogMs: number | undefined, isManaged = true) {
    const notify = async (assignments: readonly string[]): Promise<void> => {
      if (this.failures-- > 0) throw new Error("no room");
      this.sent.push(assignments.join(" "));
    };
    const manager = isManaged ? { watchdogMs, notify, monotonicMicroseconds: () => 0n } : undefined;
    const node = { health: () => this.checks, nodePods: () => this.pods() };
    this.#run = supervise({ clock: this.clock, log: toldLog(this.logged), manager }, node, this.#end.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#run;
  }
}

const pod = (ready: "True" | "False", ended = false): ReturnType<Scene["pods"]>[number] => {
  return { ended, status: { conditions: [{ type: "Ready", status: ready }] } };
};

test("notifications are readiness, two pings per watchdog period, and the stop", async () => {
  const scene = new Scene(8000);
  await scene.clock.advance(8000);
  await scene[Symbol.asyncDispose]();
  assert.deepEqual(scene.sent, ["READY=1 STATUS=0 pods, 0 ready", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]);
});

test("an unhealthy node sends no ping, and reports why", async () => {
  await using scene = new Scene(8000);
  await scene.clock.advance(1);
  scene.checks = [{ name: "pleg", ok: false, detail: "last relist 200.0 s ago" }];
  await scene.clock.advance(8000);
  assert.deepEqual(scene.sent.slice(1), ["STATUS=unhealthy: pleg: last relist 200.0 s ago"]);
  assert.match(scene.logged.at(-1) ?? "", /^error: systemd watchdog not notified, node is unhealthy .*"check":"pleg"/u);
  scene.checks = [];
  await scene.clock.advance(4000);
  assert.equal(scene.sent.at(-1), "WATCHDOG=1 STATUS=0 pods, 0 ready");
});

test("the status counts pods that have not ended, and changes are sent without a watchdog too", async () => {
  await using scene = new Scene(undefined);
  await scene.clock.advance(10_000);
  scene.pods = () => [pod("True"), pod("False"), pod("False", true)];
  await scene.clock.advance(20_000);
  assert.deepEqual(scene.sent, ["READY=1 STATUS=0 pods, 0 ready", "STATUS=2 pods, 1 ready"]);
});

test("a failed message is retried twice", async () => {
  await using scene = new Scene(60_000);
  await scene.clock.advance(1);
  scene.failures = 2;
  await scene.clock.advance(13_000);
  assert.equal(scene.sent.at(-1), "WATCHDOG=1");
  scene.failures = 3;
  await scene.clock.advance(13_000);
  assert.match(scene.logged.at(-1) ?? "", /^error: cannot notify the service manager .*no room/u);
});

test("without a service manager no timer runs", async () => {
  await using scene = new Scene(undefined, false);
  assert.deepEqual(scene.clock.waits, []);
});
