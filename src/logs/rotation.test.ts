import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { CriError } from "../ports/cri.ts";
import { ReopenContainerLogResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { readLog } from "./reader.ts";
import { LogRotation, type RunningLog } from "./rotation.ts";

const signal = new AbortController().signal;
const line = (text: string): string => `2026-11-20T14:00:00Z stdout F ${text}\n`;

/** A runtime that writes logs to memory, rotated at 100 bytes. */
class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly compression = simCompression(this.files);
  readonly entries: JournalInput[] = [];
  readonly reopened: string[] = [];
  running: RunningLog[] = [];
  /** What the runtime does instead of reopening. */
  reopen: ((log: RunningLog) => Promise<void>) | undefined;
  readonly rotation = new LogRotation(
    {
      clock: this.clock,
      files: this.files,
      compression: this.compression,
      runtime: {
        reopenContainerLog: async ({ containerId }) => {
          const log = this.running.find((candidate) => candidate.containerId === containerId);
          assert.ok(log);
          this.reopened.push(containerId ?? "");
          await (this.reopen ?? ((target) => this.files.append(target.path, "", 0o640)))(log);
          return create(ReopenContainerLogResponseSchema);
        },
      },
      journal: { record: (entry) => this.entries.push(entry) },
      log: silentLog,
      running: () => this.running,
    },
    { maxSizeBytes: 100, maxFiles: 4, maxWorkers: 1, monitorIntervalMs: 10_000 },
  );

  async container(name: string): Promise<RunningLog> {
    const pod = { namespace: "default", name: "pod", uid: podUid("uid") };
    const directory = `/var/log/pods/default_pod_uid/${name}`;
    await this.files.makeDirectory(directory, 0o755);
    const log = { pod, container: name, containerId: `${name}-id`, path: `${directory}/0.log` };
    await this.files.append(log.path, "", 0o640);
    this.running.push(log);
    return log;
  }

  async look(): Promise<void> {
    this.rotation.look(signal);
    await this.rotation.idle();
  }

  async names({ path }: RunningLog): Promise<string[]> {
    return (await this.files.list(path.slice(0, path.lastIndexOf("/")))).map(({ name }) => name).toSorted();
  }

  async lines({ path }: RunningLog): Promise<string[]> {
    const texts: string[] = [];
    for await (const { text } of readLog(this, path, {})) texts.push(new TextDecoder().decode(text));
    return texts;
  }
}

test("a large log is renamed, older ones are compressed, the oldest removed, and no kept line is lost", async () => {
  const scene = new Scene();
  const log = await scene.container("c");
  for (let count = 0; count < 6; count++) {
    await scene.files.append(log.path, line(`${count} ${"x".repeat(100)}`), 0o640);
    await scene.look();
  }
  assert.deepEqual(await scene.names(log), [
    "0.log",
    "0.log.20261120-140203.gz",
    "0.log.20261120-140204.gz",
    "0.log.20261120-140205",
  ]);
  assert.deepEqual(
    (await scene.lines(log)).map((text) => text[0]),
    ["3", "4", "5"],
  );
  assert.equal((await scene.files.stat(`${log.path}.20261120-140203.gz`))?.mode, 0o640);
});

test("small logs are not rotated", async () => {
  const scene = new Scene();
  const log = await scene.container("c");
  await scene.files.append(log.path, line("small"), 0o640);
  await scene.look();
  assert.deepEqual([await scene.names(log), scene.reopened, scene.entries], [["0.log"], [], []]);
});

test("a rename is undone when the runtime does not reopen, and kept when it did despite an error", async () => {
  const scene = new Scene();
  const log = await scene.container("c");
  await scene.files.append(log.path, line("x".repeat(100)), 0o640);
  scene.reopen = () => Promise.reject(new CriError("Unimplemented", "reopenContainerLog", "no such call"));
  await scene.look();
  assert.deepEqual(await scene.names(log), ["0.log"]);
  assert.equal((await scene.lines(log)).length, 1);
  scene.reopen = async ({ path }) => {
    await scene.files.append(path, line("in the new file"), 0o640);
    throw new CriError("DeadlineExceeded", "reopenContainerLog", "too late");
  };
  await scene.look();
  assert.equal((await scene.names(log)).length, 2);
  assert.equal((await scene.lines(log))[1], "in the new file");
});

test("a log that is missing after a crash is reopened, and half-compressed files are removed at the next rotation", async () => {
  const scene = new Scene();
  const log = await scene.container("c");
  await scene.files.append(log.path, line("x".repeat(100)), 0o640);
  await scene.files.rename(log.path, `${log.path}.20261120-140000`);
  await scene.files.write(`${log.path}.20261120-140000.tmp`, "half", 0o640);
  await scene.look();
  assert.deepEqual(scene.reopened, ["c-id"]);
  await scene.files.append(log.path, line("y".repeat(100)), 0o640);
  await scene.look();
  assert.deepEqual(await scene.names(log), ["0.log", "0.log.20261120-140000.gz", "0.log.20261120-140200"]);
});

test("a container whose runtime call hangs, or whose log is a link, delays no other", async () => {
  const scene = new Scene();
  const [hung, link, good] = [await scene.container("a"), await scene.container("b"), await scene.container("c")];
  for (const { path } of [hung, good]) await scene.files.append(path, line("x".repeat(100)), 0o640);
  await scene.files.remove(link.path);
  await scene.files.write("/secret", "s".repeat(200), 0o600);
  await scene.files.symlink("/secret", link.path);
  const released = Promise.withResolvers<void>();
  scene.reopen = ({ container, path }) => (container === "a" ? released.promise : scene.files.append(path, "", 0o640));
  scene.rotation.look(signal);
  scene.rotation.look(signal);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(scene.reopened, ["a-id", "c-id"], "the hung one is not asked twice, the link not at all");
  released.resolve();
  await scene.rotation.idle();
  assert.equal((await scene.names(good)).length, 2);
});

test("rotations are recorded with their cause, but not each one of a container that floods its log", async () => {
  const scene = new Scene();
  const log = await scene.container("c");
  const round = async (): Promise<void> => {
    await scene.files.append(log.path, line("x".repeat(100)), 0o640);
    await scene.look();
  };
  for (let count = 0; count < 5; count++) await round();
  assert.deepEqual(
    scene.entries.map(({ kind, what }) => `${kind} ${what}`),
    ["action RotateLog", "outcome RotateLog"],
  );
  assert.match(scene.entries[0]?.cause?.message ?? "", /^the log has \d+ bytes, the limit is 100$/);
  await scene.clock.advance(11 * 60_000);
  await round();
  assert.match(scene.entries[2]?.cause?.message ?? "", /4 earlier rotations were not recorded$/);
});
