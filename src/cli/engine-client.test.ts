import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { testDirectory } from "../linux/processes/testing.ts";
import { unixTransport } from "../linux/http/unix-client.ts";
import { EngineClient, EngineGone } from "./engine-client.ts";

const silenceMs = 400;
const entry: JournalEntry = { seq: 1, time: 1, kind: "note", what: "PodsFound", message: "started" };
const line = `${JSON.stringify(entry)}\n`;

/** A client of a server that answers with `answer`. */
async function clientOf(
  answer: (response: ServerResponse) => void | Promise<void>,
): Promise<AsyncDisposable & { readonly client: EngineClient }> {
  const directory = testDirectory();
  const path = directory.join("engine.sock");
  const server = createServer((_request, response) => void answer(response)).listen(path);
  await once(server, "listening");
  return {
    client: new EngineClient(unixTransport(path), "/state", silenceMs),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      directory[Symbol.dispose]();
    },
  };
}

function hangs(error: unknown): boolean {
  assert.ok(error instanceof PodwrightError && !(error instanceof EngineGone), String(error));
  assert.equal(error.exitCode, ExitCode.failed);
  assert.match(error.message, /^the engine for \/state hangs: no response for /);
  assert.match(error.remedy ?? "", /see its log/);
  return true;
}

test("an engine that never answers a call, or stops in the middle of an answer, is reported as hanging", async () => {
  await using mute = await clientOf(() => {});
  await assert.rejects(mute.client.health(), hangs);
  await assert.rejects(mute.client.entries({}), hangs);

  await using halting = await clientOf((response) => {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.write(line);
  });
  await assert.rejects(halting.client.pods(), hangs);
  await assert.rejects(halting.client.entries({}), hangs);
});

test("an answer may take longer than the silence limit while bytes arrive", async () => {
  await using slow = await clientOf(async (response) => {
    for (let sent = 0; sent < 6; sent++) {
      response.write(line);
      await systemClock.sleep("a moment", silenceMs / 4);
    }
    response.end();
  });
  assert.deepEqual(
    await slow.client.entries({}),
    Array.from({ length: 6 }, () => entry),
  );
});

test("a followed journal has no silence limit", async () => {
  await using quiet = await clientOf(async (response) => {
    response.write(line);
    await systemClock.sleep("nothing to happen", silenceMs * 3);
    response.end(line);
  });
  const told: JournalEntry[] = [];
  const following = (async () => {
    for await (const each of quiet.client.follow({}, new AbortController().signal)) told.push(each);
  })();
  await assert.rejects(following, EngineGone);
  assert.deepEqual(told, [entry, entry]);
});

test("a missing kubelet is started otherwise than an engine", async () => {
  const missing = Object.assign(new Error("connect ENOENT"), { code: "ENOENT" });
  const transport = { request: async () => Promise.reject(missing), lines: () => assert.fail("no journal is read") };
  const kubelet = new EngineClient(transport, "/var/lib/kubelet/podwright", silenceMs, "kubelet");
  await assert.rejects(kubelet.health(), {
    message: "no kubelet runs for /var/lib/kubelet/podwright",
    remedy: "start 'podwright kubelet' or its service again; its pods keep running",
  });
  const engine = new EngineClient(transport, "/srv/pods", silenceMs);
  await assert.rejects(engine.health(), { remedy: /run --state-dir \/srv\/pods' starts one/u });
});

test("a kubelet is named as one, and nobody is told to start an engine in its place", () => {
  const client = new EngineClient(unixTransport("/state/none.sock"), "/state", silenceMs, "kubelet");
  const { message, remedy } = client.gone(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
  assert.equal(message, "no kubelet runs for /state");
  assert.match(
    client.gone(Object.assign(new Error("lost"), { code: "ECONNRESET" })).message,
    /^the kubelet .* stopped$/,
  );
  for (const each of [remedy, client.startRemedy, client.hangRemedy]) {
    assert.match(each ?? "", /'podwright kubelet' or its service/);
    assert.doesNotMatch(each ?? "", /podwright run/);
  }
});
