import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

/** A process that ignores the abort of its termination signal. */
function holding(limitMs: number): { readonly child: ChildProcess; readonly read: (text: string) => Promise<string> } {
  const script = `
    import { terminationSignal } from ${JSON.stringify(new URL("./process-start.ts", import.meta.url).href)};
    import { createServer } from "node:net";
    const told = terminationSignal(${limitMs});
    createServer().listen(0, "127.0.0.1", () => console.log("ready"));
    told.addEventListener("abort", () => console.log(String(told.reason)));
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (output += String(data)));
  const read = async (text: string): Promise<string> => {
    while (!output.includes(text)) await once(child.stdout, "data");
    return output;
  };
  return { child, read };
}

test("a process that does not stop in time reports what it waits for, and exits", async () => {
  const { child, read } = holding(300);
  await read("ready\n");
  const closed = once(child, "close");
  child.kill("SIGTERM");
  const [exitCode] = await closed;
  const output = await read("");
  assert.match(output, /^ready\nError: received SIGTERM\n/);
  assert.match(output, /received SIGTERM, and has not stopped after 0\.3 s.*: .*TCPServerWrap/);
  assert.equal(exitCode, 1);
});

for (const again of ["SIGTERM", "SIGINT"] as const) {
  test(`a process that receives SIGTERM and then ${again} exits immediately`, async () => {
    const { child, read } = holding(60_000);
    await read("ready\n");
    const closed = once(child, "close");
    child.kill("SIGTERM");
    await read("received SIGTERM\n");
    child.kill(again);
    assert.deepEqual(await closed, [null, again]);
  });
}
