import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { readySandbox, runtimeStatus } from "../../test/support/runtime-status.ts";
import type { Decision } from "../pods/decision-recorder.ts";
import type { Logger } from "../ports/log.ts";
import { FileError } from "../ports/files.ts";
import { computePodActions } from "../runtime/actions/pod-actions.ts";
import { firstStart } from "../runtime/actions/pod-actions-context.ts";
import { MemoryFiles } from "../sim/files.ts";
import { FlightRecorder } from "./flight-recorder.ts";
import { replay } from "./replay.ts";

const path = "/var/node.rec";
const limits = {
  flushDelayMs: 200,
  retryDelayMs: 10_000,
  maxPendingCharacters: 100_000,
  closeDeadlineMs: 2000,
};

function decisionAt(nowMs: number): Decision {
  const pod = podWith({ containers: [{ name: "web", image: "a:1" }] });
  const status = runtimeStatus(pod, [], [readySandbox()]);
  const context = { ...firstStart, nowMs };
  return { pod, status, context, actions: computePodActions(pod, status, context) };
}

/** A disk, a clock and a log that is read. */
class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly told: string[] = [];
  diskFull = false;
  maxFileBytes = 1_000_000;
  readonly log: Logger = {
    debug: () => {},
    info: (message) => void this.told.push(message),
    warn: (message) => void this.told.push(message),
    error: (message) => void this.told.push(message),
    child: () => this.log,
  };

  async open(): Promise<FlightRecorder> {
    await this.files.makeDirectory("/var", 0o755);
    const { clock, log } = this;
    const files = {
      stat: (at: string) => this.files.stat(at),
      chmod: (at: string, mode: number) => this.files.chmod(at, mode),
      readRange: (at: string, offset: number, length: number) => this.files.readRange(at, offset, length),
      rename: (from: string, to: string) => this.files.rename(from, to),
      append: async (at: string, data: string | Uint8Array, mode: number) => {
        if (!this.diskFull) return await this.files.append(at, data, mode);
        await this.files.append(at, String(data).slice(0, 40), mode);
        throw new FileError("ENOSPC", at, "no space left on device");
      },
    };
    return await FlightRecorder.open({
      files,
      clock,
      log,
      path,
      version: "test",
      limits: { ...limits, maxFileBytes: this.maxFileBytes },
    });
  }

  async text(at = path): Promise<string> {
    return new TextDecoder().decode(await this.files.read(at, 1_000_000));
  }
}

describe("the flight recorder", () => {
  test("writes decisions to a file that only root can read, and the next run continues it", async () => {
    const scene = new Scene();
    for (let life = 0; life < 2; life++) {
      const recorder = await scene.open();
      recorder.record(decisionAt(life));
      await recorder.close();
    }
    const { decisions, lives, different, cutOff } = replay(await scene.text());
    assert.deepEqual([decisions, lives, different, cutOff], [2, 2, 0, []]);
    assert.equal((await scene.files.stat(path))?.mode, 0o600);
  });

  test("keeps the newest decisions, in two files that never grow beyond their bound", async () => {
    const scene = new Scene();
    scene.maxFileBytes = 4000;
    const recorder = await scene.open();
    for (let nowMs = 1; nowMs <= 50; nowMs++) {
      recorder.record(decisionAt(nowMs));
      await scene.clock.advance(limits.flushDelayMs);
    }
    const [newest, older] = [await scene.text(), await scene.text(`${path}.1`)];
    assert.match(newest, /"nowMs":50/);
    for (const text of [newest, older]) {
      assert.ok(text.length <= scene.maxFileBytes + 200, `${text.length} bytes`);
      assert.ok(replay(text).decisions > 0);
    }
    assert.deepEqual((await scene.files.list("/var")).length, 2);
  });

  test("reports a full disk once, continues when there is space, and truncated records remain readable", async () => {
    const scene = new Scene();
    const recorder = await scene.open();
    scene.diskFull = true;
    for (let nowMs = 1; nowMs <= 3; nowMs++) {
      recorder.record(decisionAt(nowMs));
      await scene.clock.advance(limits.retryDelayMs);
    }
    assert.equal(scene.told.length, 1, scene.told.join());
    scene.diskFull = false;
    await scene.clock.advance(limits.retryDelayMs);
    await recorder.close();
    assert.deepEqual(scene.told.slice(1), ["recording of decisions works again"]);
    const { decisions, different, cutOff } = replay(await scene.text());
    assert.deepEqual([decisions, different], [3, 0]);
    assert.ok(cutOff.length > 0);
  });

  test("does not touch a file of another kind, and rejects a missing directory", async () => {
    const scene = new Scene();
    await scene.files.makeDirectory("/var", 0o755);
    await scene.files.write(path, "root:x:0:0\n", 0o644);
    await assert.rejects(scene.open(), /--record \/var\/node\.rec: the file exists and is not a recording/);
    assert.equal(await scene.text(), "root:x:0:0\n");
    const { files, clock, log } = scene;
    const elsewhere = FlightRecorder.open({ files, clock, log, path: "/none/node.rec", version: "test" });
    await assert.rejects(elsewhere, /--record \/none\/node\.rec: /);
  });
});
