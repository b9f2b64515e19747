import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { testContainer, testStatus } from "../../../test/support/observed.ts";
import { podUid } from "../../base/ids.ts";
import { systemCompression } from "../../linux/files/compression.ts";
import { systemFiles } from "../../linux/files/files.ts";
import type { ContainerStatus } from "./pod-status.ts";
import { type MessageDependencies, readTerminationMessages } from "./termination-messages.ts";

const pod = { namespace: "default", name: "pod", uid: podUid("uid-1") };
const bytes = (text: string): number => new TextEncoder().encode(text).length;

/** A pod with one exited container on a real disk. */
class Scene {
  readonly root: string;
  readonly deps: MessageDependencies;
  readonly file: string;
  readonly log: string;

  constructor(root: string) {
    this.root = root;
    const node = { rootDirectory: join(root, "kubelet"), podLogsRoot: join(root, "logs") };
    this.deps = { node, logs: { files: systemFiles, compression: systemCompression }, files: systemFiles };
    this.file = join(node.rootDirectory, "pods/uid-1/containers/c/0badcafe");
    this.log = join(node.podLogsRoot, "default_pod_uid-1/c/0.log");
  }

  async message(container: Partial<ContainerStatus> = {}): Promise<string> {
    const ended = testContainer({
      state: "exited",
      exitCode: 1,
      terminationMessageHostPath: this.file,
      logPath: this.log,
      ...container,
    });
    const messages = await readTerminationMessages(this.deps, pod, testStatus([], [ended]), new Map());
    return messages.get(ended.id) ?? "none";
  }

  async writeLog(lines: readonly string[]): Promise<void> {
    await writeFile(this.log, lines.map((line) => `2026-11-20T14:00:00Z stderr F ${line}\n`).join(""));
  }
}

function onDisk(name: string, work: (scene: Scene) => Promise<void>): void {
  test(name, async () => {
    const root = await mkdtemp(join(tmpdir(), "podwright-messages-"));
    const scene = new Scene(root);
    try {
      await mkdir(join(scene.file, ".."), { recursive: true });
      await mkdir(join(scene.log, ".."), { recursive: true });
      await work(scene);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });
}

onDisk("a message is read as it is, control characters included, and what is no UTF-8 replaced", async (scene) => {
  await writeFile(scene.file, Buffer.from([0xef, 0xbb, 0xbf, 0x1b, 0x5b, 0x41, 0x00, 0xff, 0x0a]));
  assert.equal(await scene.message(), "\ufeff\u001b[A\0\ufffd\n");
});

onDisk("of a long message the end is taken, never more than 4096 bytes and no part of a character", async (scene) => {
  await writeFile(scene.file, `${"a".repeat(5000)}the end`);
  const message = await scene.message();
  assert.equal(message.length, 4096);
  assert.ok(message.endsWith("the end"));
  await writeFile(scene.file, "€".repeat(3000));
  assert.match(await scene.message(), /^€+$/);
  await writeFile(scene.file, Buffer.alloc(4096, 0xff));
  assert.ok(bytes(await scene.message()) <= 4096);
});

onDisk("the log's end stands in only when asked for, after a failure, and for an empty file", async (scene) => {
  const fallback = { terminationMessagePolicy: "FallbackToLogsOnError" } as const;
  await writeFile(scene.file, "");
  await scene.writeLog(["first", "last"]);
  assert.equal(await scene.message(fallback), "first\nlast\n");
  assert.equal(await scene.message({ ...fallback, terminationMessageHostPath: "" }), "first\nlast\n");
  assert.equal(await scene.message({ ...fallback, exitCode: 0 }), "");
  assert.equal(await scene.message({ ...fallback, reason: "ContainerCannotRun" }), "");
  assert.equal(await scene.message(), "");
  await writeFile(scene.file, "own words");
  assert.equal(await scene.message(fallback), "own words");
});

onDisk("of the log at most 80 lines and 2048 bytes are taken", async (scene) => {
  const policy = { terminationMessagePolicy: "FallbackToLogsOnError" } as const;
  await scene.writeLog(Array.from({ length: 100 }, (_, index) => `line ${index}`));
  const lines = (await scene.message(policy)).trim().split("\n");
  assert.deepEqual([lines.length, lines[0], lines.at(-1)], [80, "line 20", "line 99"]);
  await scene.writeLog(Array.from({ length: 80 }, () => "x".repeat(100)));
  assert.equal(bytes(await scene.message(policy)), 2048);
});

onDisk("a hostile file tells nothing: a link, a pipe, a directory, a place elsewhere", async (scene) => {
  const secret = join(scene.root, "shadow");
  await writeFile(secret, "root:secret");
  await symlink(secret, scene.file);
  assert.match(await scene.message(), /^Error on reading termination log .*: not a regular file$/);
  await rm(scene.file);
  execFileSync("mkfifo", [scene.file]);
  assert.match(await scene.message(), /not a regular file$/);
  await rm(scene.file);
  await mkdir(scene.file);
  assert.match(await scene.message(), /not a regular file$/);
  for (const path of [secret, join(scene.file, "../../../../../../shadow"), `${scene.file}/../0badcafe`]) {
    assert.match(await scene.message({ terminationMessageHostPath: path }), /it is not in /);
  }
});

onDisk("a runtime may report the real path, if the node's root directory is below a link", async (scene) => {
  const real = await realpath(scene.root);
  await rename(join(scene.root, "kubelet"), join(scene.root, "disk"));
  await symlink(join(scene.root, "disk"), join(scene.root, "link"));
  await symlink("link", join(scene.root, "kubelet"));
  const directory = join(real, "disk/pods/uid-1/containers/c");
  await writeFile(scene.file, "own words");
  assert.equal(await scene.message(), "own words");
  assert.equal(await scene.message({ terminationMessageHostPath: join(directory, "0badcafe") }), "own words");
  // Links that the pod may have made count as before.
  const secret = join(real, "shadow");
  await writeFile(secret, "root:secret");
  await symlink(secret, join(directory, "linked"));
  assert.match(await scene.message({ terminationMessageHostPath: join(directory, "linked") }), /not a regular file$/);
  await mkdir(join(directory, "volume"));
  await writeFile(join(directory, "volume/file"), "root:secret");
  for (const path of [secret, join(directory, "volume/file"), `${directory}/../c/0badcafe`, join(real, "link")]) {
    assert.match(await scene.message({ terminationMessageHostPath: path }), /it is not in .*\/disk\/pods\/uid-1\//);
  }
});

onDisk("a file of a gigabyte costs no more than a small one", async (scene) => {
  await writeFile(scene.file, "");
  await truncate(scene.file, 1 << 30);
  const before = process.memoryUsage().rss;
  assert.equal(await scene.message(), "\0".repeat(4096));
  assert.ok(process.memoryUsage().rss - before < 64 << 20);
});

onDisk("a log that is a link, or lies elsewhere, tells nothing of what is there", async (scene) => {
  const secret = join(scene.root, "shadow");
  await writeFile(secret, "root:secret\n");
  await symlink(secret, scene.log);
  const policy = { terminationMessagePolicy: "FallbackToLogsOnError" } as const;
  assert.match(await scene.message(policy), /^Error on reading termination message from logs: /);
  assert.doesNotMatch(await scene.message(policy), /root:/);
  assert.match(await scene.message({ ...policy, logPath: secret }), /it is not in /);
});

onDisk("each container is read once, and forgotten when it is gone", async (scene) => {
  await writeFile(scene.file, "first");
  const ended = testContainer({ state: "exited", exitCode: 1, terminationMessageHostPath: scene.file });
  const first = await readTerminationMessages(scene.deps, pod, testStatus([], [ended]), new Map());
  await writeFile(scene.file, "changed");
  const again = await readTerminationMessages(scene.deps, pod, testStatus([], [ended]), first);
  assert.equal(again, first);
  assert.deepEqual([...(await readTerminationMessages(scene.deps, pod, testStatus([], []), first))], []);
});
