import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "../linux/processes/clock.ts";
import { Node } from "../ports/gen/csi/v1/csi_pb.js";
import { pluginClient } from "./plugin-client.ts";

test("a caller hears that the connection was lost, and not that it closed it itself", async () => {
  const directory = mkdtempSync(join(tmpdir(), "podwright-plugin-"));
  const path = join(directory, "d.sock");
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer((socket) => accepted.resolve(socket));
  server.listen(path);
  try {
    let losses = 0;
    const calls = pluginClient(systemClock).connect(Node, path, "CSI driver d", () => losses++);
    const asked = assert.rejects(calls.nodeGetCapabilities({}), { code: "Unavailable" });
    (await accepted.promise).destroy();
    await asked;
    assert.equal(losses, 1);
    calls[Symbol.dispose]();
    assert.equal(losses, 1);
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
});
