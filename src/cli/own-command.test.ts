import assert from "node:assert/strict";
import { test } from "node:test";
import { ownCommand } from "./own-command.ts";

const calledAs = "PODWRIGHT_CALLED_AS";

test("a printed command names the state directory unless it is the usual one", () => {
  assert.equal(ownCommand("/var/lib/podwright", "logs", "-f", "tools/web"), "podwright logs -f tools/web");
  assert.equal(ownCommand("/srv/pods", "logs", "-f", "web"), "podwright logs --state-dir /srv/pods -f web");
  assert.equal(ownCommand("/srv/my pods", "ps"), 'podwright ps --state-dir "/srv/my pods"');
});

test("a printed command calls a podwright that is not in PATH as the user did", () => {
  process.env[calledAs] = "bin/podwright";
  try {
    assert.equal(ownCommand("/var/lib/podwright", "ps"), "bin/podwright ps");
  } finally {
    Reflect.deleteProperty(process.env, calledAs);
  }
});
