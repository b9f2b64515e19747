import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { passed, warned } from "../private-runtime/preflight/check.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { asTyped } from "./doctor.ts";
import { printError, printWarning } from "./error-output.ts";
import { messageAsTyped, ownCommand, remedyAsTyped } from "./own-command.ts";
import { buildProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

const calledAs = "PODWRIGHT_CALLED_AS";

/** What the work returns where PATH has no podwright. */
function called<T>(work: () => T): T {
  process.env[calledAs] = "bin/podwright";
  try {
    return work();
  } finally {
    Reflect.deleteProperty(process.env, calledAs);
  }
}

test("a printed command names the state directory unless it is the usual one", () => {
  assert.equal(ownCommand("/var/lib/podwright", "logs", "-f", "tools/web"), "podwright logs -f tools/web");
  assert.equal(ownCommand("/srv/pods", "logs", "-f", "web"), "podwright logs --state-dir /srv/pods -f web");
  assert.equal(ownCommand("/srv/my pods", "ps"), 'podwright ps --state-dir "/srv/my pods"');
});

test("a printed command calls a podwright that is not in PATH as the user did", () => {
  assert.equal(
    called(() => ownCommand("/var/lib/podwright", "ps")),
    "bin/podwright ps",
  );
});

/** All commands but the one that only shells call. */
function commandsOf(): Command[] {
  const silent = { write: () => true };
  const { commands } = buildProgram(new Terminal(silent, silent, {}), () => {});
  return commands.filter((command) => command.name() !== "complete");
}

test("remedies of other rooms call every command as the user did, once", () => {
  const names = commandsOf().map((command) => command.name());
  assert.ok(names.length > 20);
  for (const name of names) {
    const remedy = `see 'podwright ${name} --help', or podwright ${name}`;
    const typed = called(() => remedyAsTyped(remedy));
    assert.equal(typed, `see 'bin/podwright ${name} --help', or bin/podwright ${name}`);
    assert.equal(
      called(() => remedyAsTyped(typed)),
      typed,
    );
    assert.equal(remedyAsTyped(remedy), remedy);
  }
  const others =
    "install a podwright that runs here; podwright running; /usr/bin/podwright run; podwright-run; podwright goes";
  assert.equal(
    called(() => remedyAsTyped(others, "/srv/pods")),
    others,
  );
});

test("a remedy whose state directory is known names it, unless it has one or the command takes none", () => {
  const typed = (remedy: string): string => remedyAsTyped(remedy, "/srv/pods");
  assert.equal(typed("'podwright gc' frees some"), "'podwright gc --state-dir /srv/pods' frees some");
  for (const same of ["podwright ps --state-dir /a", "podwright join --from-kubeadm", "'podwright explain X'"]) {
    assert.equal(typed(same), same);
  }
  const checks = [passed("a", "podwright run"), warned("b", "podwright run", "podwright evict --confirm allows it")];
  assert.deepEqual(
    called(() => asTyped(checks, "/srv/pods")),
    [
      passed("a", "podwright run"),
      warned("b", "podwright run", "bin/podwright evict --state-dir /srv/pods --confirm allows it"),
    ],
  );
});

test("a remedy names the state directory for exactly the commands that have the option", () => {
  // The engine is started by others, with its state directory.
  for (const command of commandsOf().filter((each) => each.name() !== "engine")) {
    const takes = command.options.some(({ long }) => long === "--state-dir");
    const named = remedyAsTyped(`podwright ${command.name()}`, "/srv/pods").endsWith(" --state-dir /srv/pods");
    assert.equal(named, takes, command.name());
  }
});

test("of a message only what is in quotes is a command", () => {
  assert.equal(
    called(() => messageAsTyped("no pods of podwright run ('podwright ps' lists them)")),
    "no pods of podwright run ('bin/podwright ps' lists them)",
  );
  let told = "";
  const stream = { write: (text: string | Uint8Array) => Boolean((told += String(text))) };
  const terminal = new Terminal(stream, stream, { NO_COLOR: "1" });
  called(() => {
    printError(terminal, new PodwrightError(ExitCode.failed, "a: see 'podwright doctor'", { remedy: "podwright ps" }));
    printWarning(terminal, new Error("more: 'podwright ps'"));
  });
  assert.equal(
    told,
    "podwright: a: see 'bin/podwright doctor'\n  → bin/podwright ps\npodwright: warning: more: 'bin/podwright ps'\n",
  );
});
