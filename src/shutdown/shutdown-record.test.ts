import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { ShutdownRecord } from "./shutdown-record.ts";

const path = "/var/lib/kubelet/graceful_node_shutdown_state";

async function emptyRoot(): Promise<MemoryFiles> {
  const files = new MemoryFiles(new SimClock(1_700_000_000_000).incarnation());
  await files.makeDirectory("/var/lib/kubelet", 0o755);
  return files;
}

function record(files: MemoryFiles, warnings: string[] = []): ShutdownRecord {
  return new ShutdownRecord(files, { ...silentLog, warn: (text) => warnings.push(text) }, "/var/lib/kubelet");
}

test("the state of a shutdown is written in the Go kubelet's format", async () => {
  const files = await emptyRoot();
  await record(files).store({ startMs: Date.UTC(2026, 0, 2, 3, 4, 5, 600), endMs: 0 });
  assert.equal(
    new TextDecoder().decode(await files.read(path, 1000)),
    '{"startTime":"2026-01-02T03:04:05.600Z","endTime":"0001-01-01T00:00:00Z"}',
  );
  assert.deepEqual(await record(files).load(), { startMs: Date.UTC(2026, 0, 2, 3, 4, 5, 600), endMs: 0 });
});

test("the Go kubelet's state is read, with time zone and nanoseconds", async () => {
  const files = await emptyRoot();
  const [startTime, endTime] = ["2026-01-02T03:04:05.123456789+02:00", "2026-01-02T03:05:05.987654321+02:00"];
  await files.write(path, JSON.stringify({ startTime, endTime }), 0o644);
  const startMs = Date.UTC(2026, 0, 2, 1, 4, 5, 123);
  assert.deepEqual(await record(files).load(), { startMs, endMs: Date.UTC(2026, 0, 2, 1, 5, 5, 987) });
});

test("how far a shutdown has come is known until the machine starts again", async () => {
  const files = await emptyRoot();
  await files.makeDirectory("/proc/sys/kernel/random", 0o755);
  await files.write("/proc/sys/kernel/random/boot_id", "one\n", 0o444);
  const startMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  const shutdown = { startMs, endMs: 0, group: { priority: 1000, startMs: startMs + 5000 } };
  await record(files).store(shutdown);
  const text = new TextDecoder().decode(await files.read(path, 1000));
  assert.match(text, /"boot":"one","group":\{"priority":1000,"startTime":"2026-01-02T03:04:10.000Z"\}/u);
  assert.deepEqual(await record(files).load(), shutdown);
  await files.write("/proc/sys/kernel/random/boot_id", "two\n", 0o444);
  assert.deepEqual(await record(files).load(), { startMs, endMs: 0 });
  await files.write(path, '{"boot":"two","group":{"priority":"high","startTime":5}}', 0o644);
  assert.deepEqual(await record(files).load(), { startMs: 0, endMs: 0, group: undefined });
});

test("a missing file means no shutdown; an unreadable one is logged and means the same", async () => {
  const files = await emptyRoot();
  const warnings: string[] = [];
  assert.deepEqual(await record(files, warnings).load(), { startMs: 0, endMs: 0 });
  assert.deepEqual(warnings, []);
  await files.write(path, "{", 0o644);
  assert.deepEqual(await record(files, warnings).load(), { startMs: 0, endMs: 0 });
  assert.deepEqual(warnings, ["cannot read the state of the last graceful shutdown"]);
});
