import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { webPod } from "../../test/support/node-api.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { containerLogs } from "./container-logs.ts";

const directory = "/var/log/pods/web/app";
const path = `${directory}/0.log`;
const line = (text: string): string => `2026-11-20T14:02:00.000000001Z stdout F ${text}\n`;

/** Requests the log at {@link path}. */
async function request(files: MemoryFiles, onPiece = async (): Promise<void> => {}): Promise<string> {
  const deps = {
    clock: new ManualClock(),
    store: { files, compression: simCompression(files) },
    pods: () => [webPod()],
  };
  const target = { namespace: "default", name: "web", uid: undefined, container: "app" };
  const { body } = await containerLogs(deps, target, new URLSearchParams(), AbortSignal.any([]));
  assert.ok(typeof body === "object" && Symbol.asyncIterator in body);
  let text = "";
  for await (const piece of body) {
    text += new TextDecoder().decode(piece as Uint8Array);
    await onPiece();
  }
  return text;
}

test("a missing log is an error with upstream's message, and an empty one is not", async () => {
  const files = new MemoryFiles(new ManualClock());
  const message = `failed to try resolving symlinks in path "${path}": lstat ${path}: no such file or directory\n`;
  await assert.rejects(request(files), { name: "ApiError", status: 400, message });
  await files.makeDirectory(directory, 0o755);
  await files.write(path, "", 0o640);
  assert.equal(await request(files), "");
  await files.write(path, line("one"), 0o640);
  assert.equal(await request(files), "one\n");
});

test("the response breaks off when the log is removed while it is sent", async () => {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory(directory, 0o755);
  await files.write(path, Array.from({ length: 20_000 }, (_, index) => line(`line ${index}`)).join(""), 0o640);
  await assert.rejects(
    request(files, () => files.removeTree(directory)),
    { code: "ENOENT" },
  );
});
