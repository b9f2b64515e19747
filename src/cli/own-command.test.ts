import assert from "node:assert/strict";
import { test } from "node:test";
import { ownCommand } from "./own-command.ts";

test("a printed command names the state directory unless it is the usual one", () => {
  assert.equal(ownCommand("/var/lib/podwright", "logs", "-f", "tools/web"), "podwright logs -f tools/web");
  assert.equal(ownCommand("/srv/pods", "logs", "-f", "web"), "podwright logs --state-dir /srv/pods -f web");
  assert.equal(ownCommand("/srv/my pods", "ps"), 'podwright ps --state-dir "/srv/my pods"');
});
