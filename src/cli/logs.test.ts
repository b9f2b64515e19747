import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { containerView, podView } from "../../test/support/pod-views.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { EngineClient } from "./engine-client.ts";
import type { PodView } from "../server/local-api.ts";
import { logsCommand, type LogsOptions } from "./logs.ts";
import { Terminal } from "./terminal.ts";

const layout = runtimeLayout("/var/lib/podwright", systemHashing);
const directory = "/logs/web/app";
const line = (text: string): string => `2026-11-20T14:02:00.000000001Z stdout F ${text}\n`;

/** A restarting pod: each request returns the next restart count. */
class Scene {
  readonly files = new MemoryFiles(new ManualClock());
  printed = "";

  async previous(...restarts: readonly number[]): Promise<number> {
    const answers = restarts.map((count) => {
      const [logPath, previousLogPath] = [`${directory}/${count}.log`, `${directory}/${count - 1}.log`];
      return podView({ containers: [containerView({ name: "app", logPath, previousLogPath })] });
    });
    return await this.#logs(answers, { previous: true });
  }

  async current(phase: PodView["phase"], options: LogsOptions = {}): Promise<number> {
    const containers = [containerView({ name: "app", logPath: `${directory}/0.log` })];
    return await this.#logs([podView({ phase, containers })], options);
  }

  async #logs(answers: PodView[], options: LogsOptions): Promise<number> {
    const request = async (): Promise<{ status: number; body: string }> => {
      return { status: 200, body: JSON.stringify(answers.length > 1 ? answers.shift() : answers[0]) };
    };
    const engine = new EngineClient({ request, lines: () => assert.fail("not asked for") }, layout.stateDirectory);
    const write = (text: string | Uint8Array): boolean => {
      this.printed += typeof text === "string" ? text : new TextDecoder().decode(text);
      return true;
    };
    const terminal = new Terminal({ write }, { write }, {});
    const { files } = this;
    const compression = simCompression(files);
    const context = { terminal, clock: new ManualClock(), files, compression, engine, layout };
    return await logsCommand(context, "web", undefined, options);
  }
}

test("when the previous instance is removed meanwhile, the log of its successor is shown", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory(directory, 0o755);
  await scene.files.write(`${directory}/1.log`, line("second"), 0o640);
  assert.equal(await scene.previous(1, 2), 0);
  assert.equal(scene.printed, "second\n");
});

test("the log of an ended pod that was collected is gone, that of another pod is to come", async () => {
  const scene = new Scene();
  await assert.rejects(scene.current("Failed"), /the log of container app is gone: its pod has ended/u);
  await assert.rejects(scene.current("Running"), /container app has no log yet/u);
});

test("a removed previous log is an error, not an empty log", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory(directory, 0o755);
  await assert.rejects(scene.previous(1), /the log of container app's previous instance is gone/u);
  await scene.files.write(`${directory}/0.log`, "", 0o640);
  assert.equal(await scene.previous(1), 0);
  assert.equal(scene.printed, "");
});

test("a line's time has nine fractional digits, whatever the runtime wrote", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory(directory, 0o755);
  await scene.files.write(`${directory}/0.log`, line("one").replace(".000000001", ".25"), 0o640);
  assert.equal(await scene.current("Running", { timestamps: true }), 0);
  assert.equal(scene.printed, "2026-11-20T14:02:00.250000000Z one\n");
});
