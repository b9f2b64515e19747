import assert from "node:assert/strict";
import { test } from "node:test";
import { answerText, nodeApiDeps, nodeRequest } from "../../test/support/node-api.ts";
import { nodeApi, type NodeApiDependencies } from "./routes.ts";

async function ask(method: string, path: string, changed: Partial<NodeApiDependencies>, body = ""): Promise<string> {
  const handler = nodeApi(await nodeApiDeps(changed));
  return await answerText(await handler(nodeRequest(method, path, { body: async () => body })));
}

test("the log verbosity is set by an integer only", async () => {
  const set: number[] = [];
  const changed = { setVerbosity: (verbosity: number) => void set.push(verbosity) };
  assert.equal(await ask("PUT", "/debug/flags/v", changed, "6"), "200 successfully set klog.logging.verbosity to 6\n");
  assert.match(await ask("PUT", "/debug/flags/v", changed, "all"), /^400 .*"all" is not a number/);
  assert.equal(await ask("GET", "/debug/flags/v", changed), "406 unsupported http method\n");
  assert.deepEqual(set, [6]);
  assert.equal(await ask("PUT", "/debug/flags/v", { debugFlags: false }, "6"), "405 flags endpoint is disabled.\n");
});

test("profiles are rejected with an explanation, or disabled", async () => {
  assert.match(await ask("GET", "/debug/pprof/profile?seconds=30", {}), /^501 podwright is not a Go program/);
  assert.equal(await ask("GET", "/debug/pprof/heap", { profiling: false }), "405 profiling endpoint is disabled.\n");
});
