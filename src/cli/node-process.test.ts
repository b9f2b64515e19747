import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

test("a process that is told to end and doesn't says what holds it, and ends", async () => {
  const script = `
    import { terminationSignal } from ${JSON.stringify(new URL("node-process.ts", import.meta.url).href)};
    import { createServer } from "node:net";
    const told = terminationSignal(300);
    createServer().listen(0, "127.0.0.1", () => console.log("ready"));
    told.addEventListener("abort", () => console.log(String(told.reason)));
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (output += String(data)));
  const closed = once(child, "close");
  await once(child.stdout, "data");
  child.kill("SIGTERM");
  const [exitCode] = await closed;
  assert.match(output, /^ready\nError: told to end by SIGTERM\n/);
  assert.match(output, /told to end by SIGTERM, and still not done after 0\.3 s.*: .*TCPServerWrap/);
  assert.equal(exitCode, 1);
});
