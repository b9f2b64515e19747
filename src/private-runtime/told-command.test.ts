import assert from "node:assert/strict";
import { test } from "node:test";
import { toldCommand } from "./told-command.ts";

test("a command is told without the options of its interpreter, and cut when it is long", () => {
  const own = ["--max-old-space-size=512", "--disable-warning=ExperimentalWarning"];
  const words = ["/opt/node/bin/node", ...own, "/opt/dist/podwright.js", "engine", "--state-dir", "/x"];
  assert.equal(toldCommand({ arguments: words }), "/opt/node/bin/node /opt/dist/podwright.js engine --state-dir /x");
  assert.equal(toldCommand({ arguments: ["/usr/bin/kubelet", "--config", "/x"] }), "/usr/bin/kubelet --config /x");
  assert.equal(toldCommand({ arguments: ["node", "--version"] }), "node --version");
  assert.equal(toldCommand({ arguments: [] }), "");
  assert.equal(toldCommand({ arguments: ["kubelet", "x".repeat(200)] }), `kubelet ${"x".repeat(152)}…`);
});
