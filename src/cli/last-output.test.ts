import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podView } from "../../test/support/pod-views.ts";
import type { PodView } from "../server/local-api.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { printLastOutput } from "./last-output.ts";
import { Painter } from "./terminal.ts";

type ContainerView = PodView["containers"][number];

test("the last lines of ended containers are shown, of init containers those of failed ones", async () => {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/logs", 0o755);
  const [container] = podView({}).containers;
  assert.ok(container);
  const ended = async (name: string, exitCode: number | undefined): Promise<ContainerView> => {
    const logPath = `/logs/${name}`;
    await files.write(logPath, `2026-11-20T14:02:00.000000001Z stdout F ${name} says so\n`, 0o640);
    return { ...container, name, logPath, exitCode };
  };
  const view = podView({
    initContainers: [
      { ...(await ended("prepare", 0)), sidecar: false, done: true },
      { ...(await ended("migrate", 1)), sidecar: false, done: false },
    ],
    containers: [await ended("app", 0), await ended("waiting", undefined)],
  });
  const printed: string[] = [];
  const terminal = { paint: new Painter(false), print: (text: string) => printed.push(text) };
  await printLastOutput({ terminal: terminal as never, files, compression: simCompression(files) }, [view]);
  assert.deepEqual(
    printed.map((text) => text.split("\n").at(-1)?.trim()),
    ["│ migrate says so", "│ app says so"],
  );
});
